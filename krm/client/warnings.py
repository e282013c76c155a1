"""What a server says besides its answer: the texts of ``Warning`` headers, for whoever asks to hear them.

Source: RFC 7234, 5.5, as Kubernetes uses it (code 299); ``kube-api.md`` on warnings.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

MOST_WARNINGS: Final = 64
"""Texts kept of one block."""

_WARNING: Final = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')
_ESCAPED: Final = re.compile(r"\\(.)")
_HEARD: Final = ContextVar[list[str] | None]("heard", default=None)


@contextmanager
def warnings_heard() -> Iterator[list[str]]:
    """Collect the texts of all warnings that answers to this task's requests carry inside the block, each once."""
    heard: list[str] = []
    token = _HEARD.set(heard)
    try:
        yield heard
    finally:
        _HEARD.reset(token)


def hear(headers: Iterable[str]) -> None:
    """Give the ``Warning`` headers of an answer to whoever listens; malformed ones are left out."""
    heard = _HEARD.get()
    if heard is None:
        return
    for header in headers:
        for found in _WARNING.finditer(header):
            text = _ESCAPED.sub(r"\1", found.group(1))
            if text not in heard and len(heard) < MOST_WARNINGS:
                heard.append(text)
