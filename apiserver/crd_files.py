"""Writes the CustomResourceDefinitions of this project to ``charts/``: ``python -m apiserver.crd_files``.

Clusters get them from there. With ``--check`` nothing is written, and the exit code says whether the files are what
would be written.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from apiserver.resources.custom.own import GROUP, own_definitions
from krm.generated_files import write_or_check

FOLDER = Path("charts/porch/files/crds")


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
    wanted = {path: text.encode() for path, text in files().items()}
    return write_or_check(wanted, arguments, command="python -m apiserver.crd_files", present=FOLDER.glob("*.yaml"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
