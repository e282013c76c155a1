"""A YAML file as a row of documents, so that each can be read and edited apart from the others.

Cut at lines that start with ``---`` or ``...``; joining the pieces gives the file back byte for byte.
Source: ``kpt.md`` 7.1.
"""

import re
from dataclasses import dataclass
from typing import Any

from krm.package.yaml_reader import YamlError, decoded, read_document

_MARKER = re.compile(r"^((?:---|\.\.\.)(?:[ \t][^\n]*|\r)?(?:\n|\Z))", re.MULTILINE)
MAX_DOCUMENTS = 20_000
"""Of one file."""
_MARKERS = ("---", "...")
_BOM = "\ufeff"


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


def _read(text: str) -> Any:
    # Between separators there is often nothing, which needs no parser.
    return read_document(text) if text.strip(" \r\n") else None
