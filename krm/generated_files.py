"""Files in the tree that are written by a program: kept in the repository so that reviews see them, checked for being fresh."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


def write_or_check(
    files: Mapping[Path, bytes], arguments: Sequence[str], *, command: str, present: Iterable[Path] = ()
) -> int:
    """Write the files that are not what they should be; with ``--check`` among the arguments name them instead.

    ``present`` are files that the program once wrote: those not among ``files`` are removed. Returns the exit
    code: 1 if a check found something, which ``command`` would put right. Paths are relative to the project's root.
    """
    stale = sorted(path for path, content in files.items() if not path.exists() or path.read_bytes() != content)
    superfluous = sorted(set(present) - files.keys())
    if "--check" in arguments:
        for path in [*stale, *superfluous]:
            sys.stderr.write(f"{path} is stale: run {command}\n")
        return 1 if stale or superfluous else 0
    for path in superfluous:
        path.unlink()
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[path])
    return 0
