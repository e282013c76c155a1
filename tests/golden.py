"""Which golden cases of ``variants.md`` section 5 a test proves: ``@golden("G-F01")``.

The mark is read out of the source by the tests of completeness, so that a case without a test cannot hide.
"""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

T = TypeVar("T", bound=Callable[..., object])


def golden(*ids: str) -> Callable[[T], T]:
    """Say which golden cases and requirements the test proves."""
    assert ids

    def mark(test: T) -> T:
        return test

    return mark


def proven(folder: Path) -> dict[str, list[str]]:
    """Return the tests below a folder for each id."""
    found: dict[str, list[str]] = {}
    for module in sorted(folder.glob("test_*.py")):
        for test, name in _marks(ast.parse(module.read_text())):
            found.setdefault(name, []).append(f"{module.name}::{test}")
    return found


def _marks(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or not node.name.startswith("test_"):
            continue
        for mark in node.decorator_list:
            if isinstance(mark, ast.Call) and isinstance(mark.func, ast.Name) and mark.func.id == "golden":
                yield from ((node.name, str(ast.literal_eval(argument))) for argument in mark.args)
