"""The comments of a YAML document, by the path of the value they stand at. Source: ``kpt.md`` 7.4."""

from collections.abc import Mapping
from dataclasses import dataclass

Path = tuple[str | int, ...]
"""Keys and list places from the document's root."""


@dataclass(frozen=True, slots=True)
class Comment:
    """What stands at one value; every line with its ``#``, lines joined by newlines, empty when absent."""

    head: str = ""
    """The lines above its key, or above the list element."""
    line: str = ""
    """On its line: behind a scalar or flow collection, or behind the key of a block collection."""
    foot: str = ""
    """Below it, set off by a blank line or closing its collection."""


def read_comments(text: str) -> dict[Path, Comment]:
    """Return the comments of a document; paths without any are left out.

    Raises:
        YamlError: ``text`` is not one YAML document.
    """
    raise NotImplementedError


def write_comments(text: str, comments: Mapping[Path, Comment]) -> str:
    """Return ``text`` with the comments at these paths replaced; an empty :class:`Comment` removes.

    The data stays what it is: the result is read again and compared. Paths that do not exist are skipped.

    Raises:
        YamlError: ``text`` is not one YAML document.
    """
    raise NotImplementedError
