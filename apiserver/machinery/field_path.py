"""Paths of fields in pieces, which the schema walkers put together on the way up, and only for what is wrong.

Kubernetes prints a path in two ways: value validations put a dot before every name, all others put keys of maps in
brackets. Source: ``kube-api.md`` 2.12 and 2.17.
"""

from collections.abc import Callable
from typing import TypeVar

from krm.meta.errors import Cause

T = TypeVar("T")
Problem = tuple[tuple[str, ...], T]
"""Where and what; the path is in pieces (``.spec``, ``[0]``) until somebody wants to read it."""
CauseAt = Callable[[str], Cause]
"""A cause that still needs its field's path."""
NO_FIELD = "<nil>"
"""What Kubernetes prints where a cause belongs to no single field."""


def at_field(name: str) -> str:
    """Return the piece of a path for a field; keys of maps that hold dots stand in brackets."""
    return f"[{name}]" if "." in name or "/" in name else f".{name}"


def at_name(name: str) -> str:
    """Return the piece of a path for a field that is declared, or that a value validation names."""
    return f".{name}"


def at_key(name: str) -> str:
    """Return the piece of a path for a key of a map."""
    return f"[{name}]"


def at_index(index: int) -> str:
    """Return the piece of a path for a list item."""
    return f"[{index}]"


def path_text(path: tuple[str, ...]) -> str:
    """Join the pieces as Kubernetes prints field paths: ``spec.tasks[0].type``."""
    return "".join(path).removeprefix(".")
