"""What printer columns and field selectors take out of a decoded object, and the column that every kind has."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from apiserver.machinery.definition import Column, Json


def path_value(*path: str) -> Callable[[Json], Any]:
    """Return an extractor of the value at a path; None where anything on the way is missing."""

    def extract(obj: Json) -> Any:
        value: Any = obj
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        return value

    return extract


def path_text(*path: str) -> Callable[[Json], str]:
    """Return an extractor of the text at a path, "" where it is missing; for field selectors."""
    extract = path_value(*path)
    return lambda obj: str(extract(obj) or "")


def count_of(*fields: str) -> Callable[[Json], int]:
    """Return an extractor of the number of items in the lists or maps named, together."""
    return lambda obj: sum(len(obj.get(name) or ()) for name in fields)


AGE: Final = Column("Age", "date", path_value("metadata", "creationTimestamp"), "Time since the object was created.")
BUILT_IN_AGE: Final = replace(AGE, told_type="string")
"""The age column of Kubernetes' own kinds."""
