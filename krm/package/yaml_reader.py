"""YAML text → plain data, fast and with limits.

A builder over libyaml's events, because no library has Kubernetes' scalar rules (``yaml_scalars``).
Nothing is constructed but dicts, lists, strings, numbers, booleans and None; mapping keys are always
text. Comments and styles are not here: edits keep them in ``yaml_edit_text``. Source: ``libraries.md``
2.3–2.4, ``kpt.md`` 7.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Self

import yaml
from yaml.cyaml import CParser  # type: ignore[attr-defined] # the stubs forgot to export it

from krm.package.yaml_scalars import TAGGED, resolve_scalar, text_scalar

__all__ = [
    "ALIAS_BUDGET",
    "MAX_BYTES",
    "MAX_DEPTH",
    "DuplicateKey",
    "Located",
    "YamlError",
    "decoded",
    "locate_keys",
    "plain_copy",
    "read_document",
    "read_documents",
    "resolve_scalar",
    "same",
    "text_scalar",
]

MAX_BYTES = 16 << 20
"""Of one text; far above any package file, far below what would hurt the process."""
MAX_DEPTH = 256
"""Levels of nesting, as yaml-edit allows too."""
ALIAS_BUDGET = 100_000
"""Nodes that all aliases of one text may copy, together (``libraries.md`` 2.3)."""

# Names of the module, because the loop over events asks for them all the time.
_SCALAR_EVENT, _ALIAS_EVENT = yaml.ScalarEvent, yaml.AliasEvent
_MAPPING_START, _SEQUENCE_START = yaml.MappingStartEvent, yaml.SequenceStartEvent


class YamlError(ValueError):
    """The text is not YAML we read; ``line`` and ``column`` count from 1, 0 when unknown."""

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        where = f"yaml: line {line}: " if line else "yaml: "
        super().__init__(where + problem)
        self.problem = problem
        self.line = line
        self.column = column

    def moved(self, lines: int) -> Self:
        """Return the same error, ``lines`` further down: for a document inside a file."""
        return type(self)(self.problem, self.line + lines if self.line else 0, self.column)


class DuplicateKey(YamlError):
    """A mapping has the same key twice."""


@dataclass(frozen=True, slots=True)
class Located:
    """A document, and the line (from 1) on which each mapping key stands, by path."""

    data: Any
    key_lines: dict[tuple[str | int, ...], int]


def same(one: Any, other: Any) -> bool:
    """Compare plain data as YAML does: ``1``, ``1.0`` and ``true`` differ, the order of keys does not count."""
    if one is other:
        return True
    kind = type(one)
    if kind is not type(other):
        return False
    if kind is dict:
        if len(one) != len(other):
            return False
        for key, item in one.items():  # noqa: SIM110 - a generator takes twice as long
            if key not in other or not same(item, other[key]):
                return False
        return True
    if kind is list:
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) or (one != one and other != other)  # noqa: PLR0124 - only NaN differs from itself


def read_documents(text: str | bytes, *, strict: bool = True, as_text: bool = False) -> list[Any]:
    """Read all documents; ones without content are left out.

    ``strict`` refuses duplicate keys; else the last wins. ``as_text`` leaves scalars their text, as
    decoding into string fields does.

    Raises:
        YamlError: not UTF-8, not YAML, or over a limit.
    """
    return list(_Builder(decoded(text), strict=strict, scalar=text_scalar if as_text else resolve_scalar).documents())


def read_document(text: str | bytes, *, strict: bool = True, as_text: bool = False) -> Any:
    """Read a text of one document; None when there is none.

    Raises:
        YamlError: as :func:`read_documents`, or there are several documents.
    """
    documents = read_documents(text, strict=strict, as_text=as_text)
    if len(documents) > 1:
        raise YamlError(f"expected one document, got {len(documents)}")
    return documents[0] if documents else None


def locate_keys(text: str | bytes) -> Located:
    """Read the first document as text and note the line of each key; slower, for error messages.

    Raises:
        YamlError: as :func:`read_documents`.
    """
    lines: dict[tuple[str | int, ...], int] = {}
    documents = list(_Builder(decoded(text), strict=True, scalar=text_scalar, key_lines=lines).documents())
    return Located(documents[0] if documents else None, lines)


def decoded(text: str | bytes) -> str:
    """Return ``text`` as a string without a byte-order mark, checked against the size limit.

    Raises:
        YamlError: not UTF-8, or over the limit.
    """
    if len(text) > MAX_BYTES:
        raise YamlError(f"document is larger than {MAX_BYTES >> 20} MiB")
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise YamlError("invalid UTF-8", text.count(b"\n", 0, error.start) + 1) from None


_MERGE = "<<"
_NO_KEY: Any = object()
_ITEM: Any = object()
_MERGE_KEY: Any = object()


class _Level:
    """A mapping or sequence that is being read; ``key`` says where the next value goes."""

    __slots__ = ("anchor", "data", "key", "merged")

    def __init__(self, anchor: str | None, *, is_mapping: bool) -> None:
        self.data: Any = {} if is_mapping else []
        self.key: Any = _NO_KEY if is_mapping else _ITEM
        self.anchor = anchor
        self.merged: list[tuple[Any, int]] = []


class _Builder:
    """One pass over the events of one text, with an explicit stack: depth costs no recursion."""

    __slots__ = ("_aliased", "_anchors", "_key_lines", "_next", "_scalar", "_stack", "_strict", "_text")

    def __init__(
        self,
        text: str,
        *,
        strict: bool,
        scalar: Callable[[str], Any],
        key_lines: dict[tuple[str | int, ...], int] | None = None,
    ) -> None:
        self._text = text
        self._strict = strict
        self._scalar = scalar
        self._key_lines = key_lines
        self._anchors: dict[str, Any] = {}
        self._aliased = 0
        self._stack: list[_Level] = []

    def documents(self) -> Iterator[Any]:
        """Yield each document's data."""
        try:
            self._next = CParser(self._text).get_event
            while (event := self._next()) is not None:
                if type(event) is yaml.DocumentStartEvent:
                    self._anchors = {}
                    first = self._next()
                    # A document without content is one empty plain scalar of no width.
                    if type(first) is _SCALAR_EVENT and first.value == "" and first.implicit[0] and not first.anchor:
                        continue
                    yield self._document(first)
        except yaml.MarkedYAMLError as error:
            # A scanner's context is where the faulty key began; a parser's is only where its collection did.
            scanned = isinstance(error, yaml.scanner.ScannerError) and error.context_mark
            mark: Any = scanned or error.problem_mark or error.context_mark
            problem = str(error.problem or error.context)
            raise YamlError(problem, mark.line + 1 if mark else 0, mark.column + 1 if mark else 0) from None
        except yaml.reader.ReaderError as error:
            # Of a character that YAML allows nowhere; libyaml counts in bytes.
            line = self._text.encode()[: error.position].count(b"\n") + 1
            raise YamlError(str(error).splitlines()[0], line) from None
        except yaml.YAMLError as error:
            raise YamlError(str(error).splitlines()[0]) from None
        except UnicodeEncodeError as error:
            raise YamlError("invalid UTF-8", self._text.count("\n", 0, error.start) + 1) from None

    def _document(self, event: Any) -> Any:  # noqa: C901, PLR0912, PLR0915 - a call for each event would cost a third
        """Read one node and all below it; the hot loop, hence its plainness."""
        stack = self._stack = []
        following, scalar, anchors = self._next, self._scalar, self._anchors
        with_lines = self._key_lines is not None
        level: _Level | None = None
        while True:
            kind = type(event)
            if kind is _SCALAR_EVENT:
                value, anchor = event.value, event.anchor
                if level is not None and level.key is _NO_KEY:
                    if anchor or value == _MERGE or with_lines or value in level.data:
                        self._start_entry(level, event)
                    else:
                        level.key = value
                    event = following()
                    continue
                if event.implicit[0]:
                    value = scalar(value)
                elif event.tag is not None:
                    value = self._tagged_scalar(event)
            elif kind is _MAPPING_START or kind is _SEQUENCE_START:
                level = self._open(event)
                event = following()
                continue
            elif kind is _ALIAS_EVENT:
                if level is not None and level.key is _NO_KEY:
                    self._start_entry(level, event)
                    event = following()
                    continue
                value, anchor = self._alias(event), None
            else:
                value, anchor = _closed(stack.pop())
                level = stack[-1] if stack else None
            if anchor:
                anchors[anchor] = value
            if level is None:
                return value
            key = level.key
            if key is _ITEM:
                level.data.append(value)
            elif key is _MERGE_KEY:
                level.merged.append((value, _line(event)))
                level.key = _NO_KEY
            else:
                level.data[key] = value
                level.key = _NO_KEY
            event = following()

    def _open(self, event: Any) -> _Level:
        stack = self._stack
        if len(stack) >= MAX_DEPTH:
            raise YamlError(f"nested deeper than {MAX_DEPTH} levels", _line(event))
        if stack and stack[-1].key is _NO_KEY:
            raise YamlError("mapping keys must be scalars", _line(event))
        level = _Level(event.anchor, is_mapping=type(event) is _MAPPING_START)
        stack.append(level)
        return level

    def _start_entry(self, level: _Level, event: Any) -> None:
        """Take ``event`` as the next key of the mapping ``level``."""
        if type(event) is _ALIAS_EVENT:
            key: Any = self._anchors.get(event.anchor or "")
            if not isinstance(key, str):
                raise YamlError("mapping keys must be scalars", _line(event))
        else:
            key = event.value
            if event.anchor:
                self._anchors[event.anchor] = key
            if key == _MERGE and event.implicit[0]:
                level.key = _MERGE_KEY
                return
        duplicate = self._strict and key in level.data
        level.key = key
        if duplicate or self._key_lines is not None:
            self._note_key(_line(event), duplicate=duplicate)

    def _note_key(self, line: int, *, duplicate: bool) -> None:
        path = tuple(len(up.data) if up.key is _ITEM else up.key for up in self._stack)
        if duplicate:
            first: dict[tuple[Any, ...], int] = {}
            # Only a faulty text pays for a second pass, which finds where the key stood before.
            list(_Builder(self._text, strict=False, scalar=self._scalar, key_lines=first).documents())
            raise DuplicateKey(f'mapping key "{path[-1]}" already defined at line {first[path]}', line)
        if self._key_lines is not None:
            self._key_lines.setdefault(path, line)

    def _tagged_scalar(self, event: Any) -> Any:
        tag = event.tag
        if tag in TAGGED and self._scalar is resolve_scalar:
            try:
                return TAGGED[tag](event.value)
            except ValueError:
                raise YamlError(f"cannot decode {event.value!r} as {tag}", _line(event)) from None
        return event.value

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            raise YamlError(f"unknown anchor {event.anchor!r} referenced", _line(event))
        value = self._anchors[event.anchor]
        self._aliased += _size(value, ALIAS_BUDGET - self._aliased)
        if self._aliased > ALIAS_BUDGET:
            raise YamlError("document contains excessive aliasing", _line(event))
        return plain_copy(value)


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def plain_copy(value: Any) -> Any:
    """Copy plain data; much faster than ``copy.deepcopy``."""
    if isinstance(value, dict):
        return {key: plain_copy(item) if type(item) in _CONTAINERS else item for key, item in value.items()}
    if isinstance(value, list):
        return [plain_copy(item) if type(item) in _CONTAINERS else item for item in value]
    return value


_CONTAINERS = (dict, list)


def _size(value: Any, limit: int) -> int:
    """Count the nodes of ``value``, giving up soon after ``limit``."""
    count, todo = 1, [value]
    while todo and count <= limit:
        items = todo.pop()
        if type(items) in _CONTAINERS:
            count += len(items)
            below = items.values() if type(items) is dict else items
            todo.extend(item for item in below if type(item) in _CONTAINERS)
    return count


def _closed(level: _Level) -> tuple[Any, str | None]:
    for source, line in level.merged:
        _merge(level.data, source, line)
    return level.data, level.anchor


def _merge(data: dict[str, Any], source: Any, line: int) -> None:
    """Fill ``data`` from the value of a ``<<`` key: explicit keys win, earlier sources win."""
    for mapping in source if isinstance(source, list) else [source]:
        if not isinstance(mapping, dict):
            raise YamlError("map merge requires map or sequence of maps as the value", line)
        for key, value in mapping.items():
            data.setdefault(key, value)
