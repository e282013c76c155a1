"""Reaching into resources along field paths, through lists, creating maps where asked to."""

from collections.abc import Iterator
from typing import Any

from krm.package.comments import Path

EACH = "[]"
"""In a path: every element of the list."""


class FieldTypeError(Exception):
    """A field on the way is not what the path says; the text names it."""


def maps_at(data: dict[str, Any], path: tuple[str, ...], *, create: bool) -> Iterator[dict[str, Any]]:
    """Yield the maps at ``path``; absent ones are created when ``create`` says so, else skipped.

    Raises:
        FieldTypeError: something on the way is neither map nor list.
    """
    for place, name in enumerate(path):
        if name == EACH:
            continue
        value = data.get(name)
        following = path[place + 1 :]
        if following[:1] == (EACH,):
            yield from _each(value, name, following[1:], create=create)
            return
        if value is None:
            if not create:
                return
            value = data[name] = {}
        if not isinstance(value, dict):
            raise FieldTypeError(f"field {'.'.join(path)}: {name} is not a map")
        data = value
    yield data


def _each(value: Any, name: str, following: tuple[str, ...], *, create: bool) -> Iterator[dict[str, Any]]:
    if value is None:
        return
    if not isinstance(value, list):
        raise FieldTypeError(f"field {name} is not a list")
    for item in value:
        if not isinstance(item, dict):
            raise FieldTypeError(f"an element of {name} is not a map")
        yield from maps_at(item, following, create=create)


def shown_path(path: Path) -> str:
    """Return a path as results show it: ``spec.containers[0].image``."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")
