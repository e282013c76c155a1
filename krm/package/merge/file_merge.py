"""Three-way merge of files whose content is not looked into: README, JSON, binaries, symbolic links.

Upstream replaces what nobody touched here; what was added, edited or deleted here stays so.
Source: ``kpt.md`` 3.9.
"""

from krm.package.contents import EXECUTABLE, REGULAR, Contents, File
from krm.package.merge.conflicts import MAX_SHOWN, Conflict, Kept, shown

_PLAIN = frozenset((REGULAR, EXECUTABLE))


def merge_files(origin: Contents, updated: Contents, local: Contents) -> tuple[dict[str, File], list[Conflict]]:
    """Merge file by file, bytes and mode; a conflict is a change here that upstream changed as well.

    A file that was deleted here stays deleted, and one that was edited here stays as it is, whatever
    upstream did; both are reported when upstream changed the file too.
    """
    merged: dict[str, File] = {}
    conflicts: list[Conflict] = []
    for path in sorted(origin.keys() | updated.keys() | local.keys()):
        before, upstream, here = origin.get(path), updated.get(path), local.get(path)
        file = _merged(before, upstream, here)
        if file is not None:
            merged[path] = file
        if file == here and upstream not in (before, here):
            conflicts.append(file_conflict(path, before, upstream, here, Kept.LOCAL))
    return merged, conflicts


def _merged(before: File | None, upstream: File | None, here: File | None) -> File | None:
    if here == before:
        return upstream
    if before is None or upstream is None or here is None:
        return here
    if here.data == before.data and before.mode == upstream.mode and {here.mode, before.mode} <= _PLAIN:
        # Only the mode was changed here: that needs not cost the new content.
        return File(upstream.data, here.mode)
    return here


def file_conflict(path: str, origin: File | None, updated: File | None, local: File | None, kept: Kept) -> Conflict:
    """Return the conflict about a file as a whole; text is shown, cut, and of binaries the size."""
    return Conflict("", _shown(origin), _shown(updated), _shown(local), kept, file=path)


def _shown(file: File | None) -> str | None:
    if file is None:
        return None
    mode = "" if file.mode == REGULAR else f"mode {file.mode:o} "
    try:
        # A character has at most four bytes; the last one may be cut.
        text = file.data[: 4 * MAX_SHOWN].decode(errors="strict" if len(file.data) <= 4 * MAX_SHOWN else "ignore")
    except UnicodeDecodeError:
        text = "\0"
    return mode + (f"{len(file.data)} bytes" if "\0" in text else shown(text) or "")
