"""Sentences about values that are not of the shape that a field has; any JSON gives sentences, never an error."""

import json
from collections.abc import Collection, Iterator
from typing import Any, Final

Json = dict[str, Any]

MOST_SHOWN: Final = 512
"""Characters of a value that a sentence repeats."""


def text(value: object, path: str) -> Iterator[str]:
    """Check a text."""
    if not isinstance(value, str | None):
        yield f"{path} must be a text, not {shown(value)}"


def truth(value: object, path: str) -> Iterator[str]:
    """Check true or false."""
    if not isinstance(value, bool | None):
        yield f"{path} must be true or false"


def choice(value: object, path: str, allowed: Collection[str]) -> Iterator[str]:
    """Check one of some texts; an empty one stands for none."""
    if value not in (None, "") and not (isinstance(value, str) and value in allowed):
        quoted = [f'"{one}"' for one in allowed]
        yield f"{path} can only be {' or '.join([', '.join(quoted[:-1]), quoted[-1]])}"


def string_map(value: object, path: str) -> Iterator[str]:
    """Check a map from texts to texts."""
    if value is None:
        return
    if not isinstance(value, dict):
        yield f"{path} must be an object"
    elif not all(isinstance(each, str) for each in value.values()):
        yield f"{path} must have texts as values"


def string_list(value: object, path: str) -> Iterator[str]:
    """Check a list of texts."""
    if value is not None and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
        yield f"{path} must be a list of texts"


def objects(value: object, path: str) -> Iterator[tuple[str, Json] | str]:
    """Go through a list of objects: path and object of each item, or a sentence."""
    if value is None:
        return
    if not isinstance(value, list):
        yield f"{path} must be a list"
        return
    for place, one in enumerate(value):
        yield (f"{path}[{place}]", one) if isinstance(one, dict) else f"{path}[{place}] must be an object"


def shown(value: object) -> str:
    """Write a value as compact JSON with sorted keys, shortened where it is long."""
    try:
        written = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    except RecursionError:
        written = f"a {type(value).__name__} that is nested too deeply"
    return written if len(written) <= MOST_SHOWN else f"{written[:MOST_SHOWN]}…"
