"""What describes a built-in function: its name and code, and what its documentation says.

Every module of a function has one :class:`Builtin` named ``FUNCTION``; ``builtins.py`` lists them, and
``docs/reference/functions.md`` is written from them.
"""

from collections.abc import Callable
from dataclasses import dataclass

from krm.functions.images import Image, Version
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList


@dataclass(frozen=True, slots=True)
class Option:
    """One field of a function's configuration."""

    name: str
    meaning: str
    required: bool = False


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What the function does from one tag on, up to the next."""

    tags: str
    """Readable: ``v0.1.x``, ``v0.2.0 and later, latest``."""
    difference: str


def _always(_config: FunctionConfig | None) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Builtin:
    """A function of the catalog that runs in this process."""

    name: str
    """The last part of the image's name."""
    run: Callable[[ResourceList, Image, Version], FunctionResult]
    summary: str
    """One sentence."""
    source: str
    """Where the behaviour is specified."""
    tags: tuple[str, ...]
    """The released tags it stands in for, oldest first: what a version range chooses from (``kpt.md`` 2.14)."""
    config_kinds: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    behaviours: tuple[Behaviour, ...] = ()
    is_deterministic: Callable[[FunctionConfig | None], bool] = _always
    """Whether with this configuration the same input always gives the same output, so that it may be remembered."""
