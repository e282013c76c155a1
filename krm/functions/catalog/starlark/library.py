"""What scripts and the modules for them are made of, and how a module's functions fail."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import starlark


def _dialect() -> starlark.Dialect:
    """Return the dialect: statements and reassignment at the top level, as upstream; no types, no f-strings."""
    dialect = starlark.Dialect.extended()
    dialect.enable_f_strings = False
    dialect.enable_types = starlark.DialectTypes.DISABLE
    return dialect


DIALECT = _dialect()
OWN_GLOBALS = starlark.Globals.extended_by([starlark.LibraryExtension.StructType, starlark.LibraryExtension.Json])
"""For code of this package; scripts have the standard ones."""


class LibraryError(Exception):
    """A script loads what there is not, or calls a function with what it cannot work on; the text is for users."""


_BAD_ARGUMENTS = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError)
"""What Python functions raise when a script gives them values of other types."""


@dataclass(frozen=True, slots=True)
class Library:
    """One module: its Starlark text, and the Python functions that the text calls, by name.

    What goes to these functions and comes back is JSON-like: nothing else crosses the border.
    """

    text: str
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)

    def module(self, name: str) -> starlark.FrozenModule:
        """Make the module, frozen: what one script does with it cannot be seen by the next."""
        module = starlark.Module()
        for function, body in self.functions.items():
            module.add_callable(function, _guarded(body))
        starlark.eval(module, starlark.parse(name, self.text, DIALECT), OWN_GLOBALS)
        return module.freeze()


def _guarded(body: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(body)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return body(*arguments, **named)
        except _BAD_ARGUMENTS as error:
            raise LibraryError(f"invalid arguments: {error}") from None

    return call
