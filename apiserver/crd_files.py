"""Writes the CustomResourceDefinitions of this project to ``charts/``: ``python -m apiserver.crd_files``.

Clusters get them from there. With ``--check`` nothing is written, and the exit code says whether the files are what
would be written.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from apiserver.resources.custom.own import GROUP, own_definitions

FOLDER = Path("charts/porch/crds")


class _Dumper(yaml.CSafeDumper):
    """Writes shared parts in full: anchors in a manifest help nobody."""

    def ignore_aliases(self, _data: object) -> bool:
        return True


def files() -> Mapping[Path, str]:
    """Return every file by its path below the project's root."""
    written = {}
    for name, crd in own_definitions().items():
        text = yaml.dump(crd, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
        written[FOLDER / f"{GROUP}_{name.partition('.')[0]}.yaml"] = (
            f"# Written by python -m apiserver.crd_files.\n{text}"
        )
    return written


def main(arguments: Sequence[str]) -> int:
    """Write the files under the working directory, or check them."""
    stale = [path for path, text in files().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in arguments:
        for path in stale:
            sys.stderr.write(f"{path} is stale: run python -m apiserver.crd_files\n")
        return 1 if stale else 0
    for path, text in files().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
