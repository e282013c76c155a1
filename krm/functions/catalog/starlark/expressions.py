"""The module ``re.star``: regular expressions with Go's syntax, in linear time. Source: ``kpt.md`` 4.9 and 0.3."""

from functools import lru_cache
from typing import Any

import re2

from krm.functions.catalog.starlark.library import Library, LibraryError

_MEMORY = 8 << 20
"""Bytes that one compiled expression may take."""


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error.args[0]
        raise LibraryError(f"error parsing regexp: {reason}") from None


def _compile(pattern: str) -> str:
    _compiled(pattern)
    return pattern


def _matches(pattern: str, text: str) -> list[list[str]]:
    return [[found.group(), *(group or "" for group in found.groups())] for found in _compiled(pattern).finditer(text)]


def _findall(pattern: str, text: str) -> list[str]:
    return [found.group() for found in _compiled(pattern).finditer(text)]


def _search(pattern: str, text: str) -> list[int] | None:
    found = _compiled(pattern).search(text)
    return None if found is None else [found.start(), found.end()]


def _split(pattern: str, text: str, most: int) -> list[str]:
    parts: list[str] = []
    last = 0
    for found in _compiled(pattern).finditer(text):
        if most and len(parts) >= most:
            break
        if found.end() > found.start():
            parts.append(text[last : found.start()])
            last = found.end()
    return [*parts, text[last:]]


def _sub(pattern: str, replacement: str, text: str, count: int) -> str:
    parts: list[str] = []
    last = 0
    for number, found in enumerate(_compiled(pattern).finditer(text)):
        if count and number >= count:
            break
        parts += [text[last : found.start()], replacement]
        last = found.end()
    return "".join([*parts, text[last:]])


RE = Library(
    """
def _findall(pattern, text, flags=0):
    return tuple(_re_findall(pattern, text))

def _match(pattern, string, flags=0):
    return [tuple(groups) for groups in _re_matches(pattern, string)]

def _search(pattern, string, flags=0):
    return _re_search(pattern, string)

def _split(pattern, text, maxsplit=0, flags=0):
    return tuple(_re_split(pattern, text, maxsplit))

def _sub(pattern, repl, text, count=0, flags=0):
    return _re_sub(pattern, repl, text, count)

def _compile(pattern):
    _re_compile(pattern)
    return struct(
        match=lambda text, flags=0: _match(pattern, text),
        findall=lambda text, flags=0: _findall(pattern, text),
        search=lambda text, flags=0: _search(pattern, text),
        split=lambda text, maxsplit=0, flags=0: _split(pattern, text, maxsplit),
        sub=lambda repl, text, count=0, flags=0: _sub(pattern, repl, text, count),
    )

re = struct(compile=_compile, findall=_findall, match=_match, search=_search, split=_split, sub=_sub)
""",
    {
        "_re_compile": _compile,
        "_re_findall": _findall,
        "_re_matches": _matches,
        "_re_search": _search,
        "_re_split": _split,
        "_re_sub": _sub,
    },
)
