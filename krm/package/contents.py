"""A package in memory: every file with its bytes and mode, nothing interpreted, nothing lost."""

from collections.abc import Mapping
from dataclasses import dataclass

REGULAR = 0o100644
EXECUTABLE = 0o100755
SYMLINK = 0o120000
SUBMODULE = 0o160000


@dataclass(frozen=True, slots=True)
class File:
    """One file: its bytes as they are, and its Git mode."""

    data: bytes
    mode: int = REGULAR


Contents = Mapping[str, File]
"""Path inside the package, with slashes → file."""
