"""The merged documents of one file, put together on the text of the file they came from.

Documents that stay keep their bytes and what stands between them. Source: ``kpt.md`` 3.4, 7.1.
"""

from collections.abc import Sequence
from typing import NamedTuple

from krm.package.documents import Document

_BOM = "\ufeff"


class Placed(NamedTuple):
    """One document of the new file."""

    text: str
    place: int | None = None
    """Which document of the old file it was, counting those with content; None when it is new there."""


class DocumentRow:
    """A file as a row of documents with content, each led by what stands between it and the one before."""

    def __init__(self, pieces: Sequence[str], documents: Sequence[Document]) -> None:
        self._pieces = pieces
        self._places = [2 * place for place, document in enumerate(documents) if document.data is not None]
        self._newline = "\r\n" if "\r\n" in "".join(pieces) else "\n"

    def text(self, placed: Sequence[Placed]) -> str:
        """Return the file with these documents instead of its own; the very same text when nothing changed."""
        out = [self._lead(0) if self._places else self._ended("".join(self._pieces))]
        for number, document in enumerate(placed):
            if number:
                out[-1] = self._ended(out[-1])
                out.append(self._between(document.place))
            elif document.place:
                out.append(self._after_separator(self._lead(document.place)))
            out.append(document.text.removeprefix(_BOM) if number or document.place is None else document.text)
        tail = "".join(self._pieces[self._places[-1] + 1 :]) if self._places else ""
        if tail:
            out[-1] = self._ended(out[-1])
        return "".join([*out, tail])

    def _between(self, place: int | None) -> str:
        # What led the first document leads the file, whichever document is first now.
        return self._lead(place) if place else "---" + self._newline

    def _lead(self, place: int) -> str:
        """Return what stands before a document, separators and documents without content."""
        start = self._places[place - 1] + 1 if place else 0
        return "".join(self._pieces[start : self._places[place]])

    def _after_separator(self, lead: str) -> str:
        """Return what is left of a lead without its first line, a separator; nothing, if that is one more."""
        rest = lead.partition("\n")[2]
        return rest if rest.strip() not in ("", "---") else ""

    def _ended(self, text: str) -> str:
        return text if not text or text.endswith("\n") else text + self._newline
