"""A YAML file as a row of documents, so that each can be read and edited apart from the others.

Cut at lines that start with ``---`` or ``...``; joining the pieces gives the file back byte for byte.
Source: ``kpt.md`` 7.1.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from krm.package.yaml_reader import MAX_DEPTH, YamlError, decoded, read_document

_MARKER = re.compile(r"^((?:---|\.\.\.)(?:[ \t][^\n]*|\r)?(?:\n|\Z))", re.MULTILINE)
MAX_DOCUMENTS = 20_000
"""Of one file."""
_MARKERS = ("---", "...")
_RESOURCE_SUFFIXES = (".yaml", ".yml", ".json")
_BOM = "\ufeff"
_COLLECTIONS = (dict, list)


@dataclass(slots=True)
class Document:
    """One document: its text without the separators, and its data (None when it has no content)."""

    text: str
    data: Any
    line: int
    """The line in the file on which ``text`` starts, from 1."""


def split_documents(text: str) -> list[str]:
    """Cut ``text`` into bodies (even places) and separator lines (odd places); joined they are ``text``.

    Raises:
        YamlError: a separator carries content, or there are too many.
    """
    body = text.removeprefix(_BOM)
    # Most files are one document, which two searches tell faster than an expression asked at every line.
    has_marker = body.startswith(_MARKERS) or "\n---" in body or "\n..." in body
    pieces = _MARKER.split(body, maxsplit=MAX_DOCUMENTS) if has_marker else [body]
    line = 1
    for place, piece in enumerate(pieces) if has_marker else ():
        rest = piece[3:].strip() if place % 2 else ""
        if rest and not rest.startswith("#"):
            raise YamlError("invalid document separator: " + piece.strip()[:80], line)
        line += piece.count("\n")
    if len(pieces) > 2 * MAX_DOCUMENTS:
        raise YamlError(f"the file has more than {MAX_DOCUMENTS} documents", line)
    if text.startswith(_BOM):
        pieces[0] = _BOM + pieces[0]
    return pieces


def read_file(data: bytes) -> tuple[list[str], list[Document]]:
    """Return the pieces of a file, and a :class:`Document` for each even piece.

    Raises:
        YamlError: not UTF-8, not YAML, a duplicate key, or over a limit; the line counts in the file.
    """
    text = decoded(data)
    if data.startswith(_BOM.encode()):
        text = _BOM + text
    pieces = split_documents(text)
    documents = []
    line = 1
    for place, piece in enumerate(pieces):
        if place % 2 == 0:
            try:
                documents.append(Document(piece, _read(piece), line))
            except YamlError as error:
                raise error.moved(line - 1) from None
        line += piece.count("\n")
    return pieces, documents


def is_resource_file(path: str) -> bool:
    """Say whether a file of this path holds resources (``kpt.md`` 1.6); what its package ignores is not regarded."""
    name = path.rpartition("/")[2]
    return name == "Kptfile" or name.endswith(_RESOURCE_SUFFIXES)


def read_resources(path: str, data: bytes) -> tuple[list[str], list[Document], bool]:
    """Return a file's pieces and documents, and whether it is JSON, which an edit must leave JSON.

    Raises:
        YamlError: as :func:`read_file`.
    """
    if path.endswith(".json"):
        text = decoded(data)
        try:
            document = json.loads(text, object_pairs_hook=_without_duplicates)
        except (ValueError, RecursionError) as error:
            if isinstance(error, YamlError):
                raise
            return *read_file(data), False  # YAML in a .json file is read as YAML
        limit_depth(document)
        return [text], [Document(text, document, 1)], True
    return *read_file(data), False


def limit_depth(data: Any) -> None:
    """Refuse data that the YAML reader would not read again.

    Raises:
        YamlError: it is nested deeper than ``MAX_DEPTH`` levels.
    """
    level = [data] if isinstance(data, _COLLECTIONS) else []
    for _ in range(MAX_DEPTH):
        level = [
            item
            for value in level
            for item in (value.values() if isinstance(value, dict) else value)
            if isinstance(item, _COLLECTIONS)
        ]
        if not level:
            return
    raise YamlError(f"nested deeper than {MAX_DEPTH} levels")


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise YamlError("mapping key already defined")
    return data


def _read(text: str) -> Any:
    # Between separators there is often nothing, which needs no parser.
    return read_document(text) if text.strip(" \r\n") else None
