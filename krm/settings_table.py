"""Rows of a page that tells settings: what each variable may be, what it is by default and what it means.

Made from the fields of a settings class, so that the page cannot tell anything else.
"""

import enum
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic.fields import FieldInfo

HEAD = """| Variable | Default | Allowed | Meaning |
| --- | --- | --- | --- |
"""


def row(variable: str, field: FieldInfo, default: str = "") -> str:
    """Return the row of one variable; ``default`` stands in for one that a function computes."""
    return f"| `{variable}` | {default or _default(field)} | {_allowed(field)} | {field.description} |\n"


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        return "see the meaning"
    value = field.default
    if not value and not isinstance(value, int | list | dict):
        return "empty"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _allowed(field: FieldInfo) -> str:
    choices = _choices(field.annotation)
    if choices:
        return ", ".join(f"`{choice}`" if choice else "empty" for choice in choices)
    low = high = ""
    for bound in field.metadata:
        match bound:
            case annotated_types.Ge():
                low = f"{bound.ge} ≤"
            case annotated_types.Gt():
                low = f"{bound.gt} <"
            case annotated_types.Le():
                high = f"≤ {bound.le}"
    if low or high:
        return f"{low} number {high}".strip()
    return "path" if _is_path(field.annotation) else "text"


def _choices(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return [str(choice) for choice in get_args(annotation)]
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return [str(member.value) for member in annotation]
    return []


def _is_path(annotation: Any) -> bool:
    return annotation is Path or (get_origin(annotation) in {Union, type(int | str)} and Path in get_args(annotation))
