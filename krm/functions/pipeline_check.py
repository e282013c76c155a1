"""Validation of a Kptfile's pipeline, before any of its functions runs. Source: ``kpt.md`` 1.3."""

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from krm.functions.images import is_reference
from krm.package.kptfile import Function, Kptfile


@dataclass(frozen=True, slots=True)
class Step:
    """A function and its place in the pipeline."""

    function: Function
    is_validator: bool
    place: int

    @property
    def field(self) -> str:
        """The path of the function in the Kptfile."""
        return f"pipeline.{self.kind}s[{self.place}]"

    @property
    def kind(self) -> str:
        """What the function is called in messages."""
        return "validator" if self.is_validator else "mutator"


class InvalidKptfile(Exception):
    """A pipeline breaks a rule: which field, its value (empty when absent), and why."""

    def __init__(self, field: str, value: str, reason: str) -> None:
        shown = f'\nValue: "{value}"' if value else ""
        super().__init__(f"Kptfile is invalid:\nField: `{field}`{shown}\nReason: {reason}")
        self.field = field
        self.value = value
        self.reason = reason


def steps_of(kptfile: Kptfile) -> list[Step]:
    """Return all steps, mutators first."""
    mutators = [Step(function, is_validator=False, place=i) for i, function in enumerate(kptfile.mutators)]
    return mutators + [Step(function, is_validator=True, place=i) for i, function in enumerate(kptfile.validators)]


def check_pipeline(steps: Sequence[Step]) -> None:
    """Check every function of a pipeline.

    Raises:
        InvalidKptfile: for the first rule that is broken.
    """
    for step in steps:
        _check_function(step.field, step.function)


def _check_function(field: str, function: Function) -> None:
    if function.image and function.exec:
        raise InvalidKptfile(field, "", "must not specify both `image` and `exec` at the same time")
    if not function.image and not function.exec:
        # The misspelling is upstream's, and what clients have seen.
        raise InvalidKptfile(field, "", "must specify a functon (`image` or `exec`) to execute")
    if function.image and not is_reference(function.image):
        reason = f'function image reference "{function.image}" is invalid: it must be [registry/]name[:tag][@digest]'
        raise InvalidKptfile(f"{field}.image", function.image, reason)
    if function.config_map and function.config_path is not None:
        reason = "functionConfig must not specify both `configMap` and `configPath` at the same time"
        raise InvalidKptfile(field, "", reason)
    if function.config_path is not None:
        _check_config_path(f"{field}.configPath", function.config_path)


def _check_config_path(field: str, path: str) -> None:
    if not path.strip():
        raise InvalidKptfile(field, path, "path must not be empty")
    if path.startswith("/"):
        raise InvalidKptfile(field, path, "path must be relative")
    if ".." in posixpath.normpath(path):
        raise InvalidKptfile(field, path, "path must not be outside the package")
