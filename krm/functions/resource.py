"""A resource on its way through a pipeline: data that functions change, and the text it came from.

The text is kept up to date on demand, so comments never get lost and untouched documents stay byte for
byte what they were.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from krm.package.comments import Comment, Path, read_comments, write_comments
from krm.package.yaml_edit_text import edit_document, edit_json, new_document
from krm.package.yaml_reader import plain_copy, read_document, same


@dataclass(slots=True, eq=False)
class Resource:
    """One resource; functions may change ``data``, ``path`` and ``index``."""

    data: dict[str, Any]
    path: str = ""
    """Of its file, relative to ``package``; empty for generated resources until they get a default."""
    index: int | None = None
    """Of its document in the file, from 0."""
    package: str = ""
    """Directory of its package relative to the root package; empty for the root."""
    origin: tuple[str, int] | None = None
    """The file (relative to the root package) and the place of the document it was read from."""
    is_json: bool = False
    """Whether the text is JSON, which an edit must leave JSON."""
    metadata_keys: tuple[str, ...] = ()
    """The fields of ``metadata`` in the document that was read."""
    _text: str = ""
    _source: str = ""
    """The text it was read from."""
    _source_read: Any = None
    """What that text reads as."""
    _read: Any = None
    """What the text reads as now; never changed in place, so copies share it."""

    @classmethod
    def of_document(cls, data: dict[str, Any], text: str, **where: Any) -> "Resource":
        """Wrap a document that reads as ``data``; ``where`` are the other fields."""
        resource = cls(data, **where)
        resource._text = resource._source = text
        resource._read = resource._source_read = plain_copy(data)
        metadata = data.get("metadata") if isinstance(data, dict) else None  # type: ignore[redundant-expr] # or a list
        resource.metadata_keys = tuple(metadata) if isinstance(metadata, dict) else ()
        return resource

    @property
    def root_path(self) -> str:
        """The file's path relative to the root package."""
        return f"{self.package}/{self.path}" if self.package else self.path

    @property
    def is_changed(self) -> bool:
        """Whether data or text are no longer what was read, or nothing was."""
        return self._text != self._source or self._is_stale

    @property
    def _is_stale(self) -> bool:
        """Whether the data is no longer what the text says, or there is no text yet."""
        return self._read is None or not same(self._read, self.data)

    def mark_as_read(self, path: str, index: int, package: str) -> None:
        """Take the document as it is now for one that was read from there."""
        text = self.text()
        if not _in_same_order(self._source_read, self.data):
            # The order of keys alone is nothing to edit a text for, so that it may have another one.
            self.set_text(text)
        self._source, self._source_read = text, self._read
        self.path, self.index, self.package = path, index, package
        self.origin = self.root_path, index

    def text(self) -> str:
        """Return the document's text, brought up to date with ``data``."""
        if not self._is_stale:
            return self._text
        if self._read is None:
            self._text = new_document(self.data)
        elif self.is_json:
            self._text = edit_json(self._text, self.data, self._read)
        else:
            self._text = edit_document(self._text, self.data, self._read)
        self._read = plain_copy(self.data)
        return self._text

    def json_text(self) -> str:
        """Return the document as JSON: what it was read from, else indented by two with sorted keys."""
        if self.is_json:
            return self.text()
        return json.dumps(self.data, indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    def yaml_text(self) -> str:
        """Return the document as YAML, written anew when it was read from JSON."""
        return new_document(self.data) if self.is_json else self.text()

    def set_text(self, text: str) -> None:
        """Replace text and data at once: for functions that work on comments.

        Raises:
            YamlError: ``text`` is not a document.
        """
        self.data = read_document(text)
        self._text = text
        self._read = plain_copy(self.data)

    def comments(self) -> dict[Path, Comment]:
        """Return the comments of the document as ``data`` has it now, by the path of what they stand at."""
        return read_comments(self.text())

    def set_comments(self, comments: Mapping[Path, Comment]) -> None:
        """Replace the comments at these paths; an empty :class:`Comment` removes."""
        self.set_text(write_comments(self.text(), comments))

    def copy(self) -> "Resource":
        """Return an independent copy."""
        where = (self.path, self.index, self.package, self.origin, self.is_json, self.metadata_keys)
        twin = Resource(plain_copy(self.data), *where)
        twin._text, twin._source, twin._read = self._text, self._source, self._read
        return twin

    def become(self, twin: "Resource") -> None:
        """Take over data, text and place of ``twin``, of which nothing else may be used afterwards."""
        self.data, self.path, self.index, self.package = twin.data, twin.path, twin.index, twin.package
        self.is_json, self._text, self._read = twin.is_json, twin._text, twin._read  # noqa: SLF001 - its own kind

    def state(self) -> tuple[Any, ...]:
        """Return all that a function can see of the resource and its text, not to be changed."""
        return self.package, self.path, self.index, self._text, self.data


def _in_same_order(before: Any, after: Any) -> bool:
    """Say whether the keys that both have stand in the same order in both; list items pair by place."""
    if isinstance(before, dict) and isinstance(after, dict):
        common = [key for key in after if key in before]
        if common != [key for key in before if key in after]:
            return False
        return all(_in_same_order(before[key], after[key]) for key in common if isinstance(after[key], (dict, list)))
    if isinstance(before, list) and isinstance(after, list):
        return all(map(_in_same_order, before, after))
    return True
