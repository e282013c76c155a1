"""Validation of a Kptfile's pipeline, before any of its functions runs. Source: ``kpt.md`` 1.3."""

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from krm.functions.go_text import quoted
from krm.functions.images import is_reference
from krm.package.contents import Contents
from krm.package.kptfile import Function, Kptfile
from krm.package.resource_identity import krm_problem
from krm.package.yaml_reader import YamlError, read_documents


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
        shown = f"\nValue: {quoted(value)}" if value else ""
        super().__init__(f"Kptfile is invalid:\nField: `{field}`{shown}\nReason: {reason}\n")
        self.field = field
        self.value = value
        self.reason = reason


class InvalidPipeline(Exception):
    """A pipeline that cannot be run as it stands; the text names function, field and reason."""


def mutators_of(kptfile: Kptfile) -> list[Step]:
    """Return the steps that change resources."""
    return [Step(function, is_validator=False, place=place) for place, function in enumerate(kptfile.mutators)]


def validators_of(kptfile: Kptfile) -> list[Step]:
    """Return the steps that only look."""
    return [Step(function, is_validator=True, place=place) for place, function in enumerate(kptfile.validators)]


def check_pipeline(steps: Sequence[Step], contents: Contents, package: str, shown: str) -> None:
    """Check every function of a pipeline and the file of its configuration.

    ``package`` is the package's directory in ``contents``, ``shown`` what it is called in messages.

    Raises:
        InvalidPipeline: for the first rule that is broken.
    """
    checked = {""}
    for step in steps:
        path = step.function.config_path or ""
        try:
            _check_function(step.field, step.function)
            if path not in checked:
                _check_config_file(f"{step.field}.configPath", path, contents, package, shown)
                checked.add(path)
        except InvalidKptfile as error:
            raise InvalidPipeline(f"invalid pipeline: function {quoted(step.function.image)}: {error}") from None


def _check_function(field: str, function: Function) -> None:
    if function.image and function.exec:
        raise InvalidKptfile(field, "", "must not specify both `image` and `exec` at the same time")
    if not function.image and not function.exec:
        # The misspelling is upstream's, and what clients have seen.
        raise InvalidKptfile(field, "", "must specify a functon (`image` or `exec`) to execute")
    if function.image and not is_reference(function.image):
        reason = (
            f"function image reference {quoted(function.image)} is invalid: it must be [registry/]name[:tag][@digest]"
        )
        raise InvalidKptfile(f"{field}.image", function.image, reason)
    if function.config_map and function.config_path:
        reason = "functionConfig must not specify both `configMap` and `configPath` at the same time"
        raise InvalidKptfile(field, "", reason)
    if function.config_path:
        _check_config_path(f"{field}.configPath", function.config_path)


def _check_config_path(field: str, path: str) -> None:
    if not path.strip():
        raise InvalidKptfile(field, path, "path must not be empty")
    if path.startswith("/"):
        raise InvalidKptfile(field, path, "path must be relative")
    if ".." in posixpath.normpath(path):
        raise InvalidKptfile(field, path, "path must not be outside the package")


def _check_config_file(field: str, path: str, contents: Contents, package: str, shown: str) -> None:
    """Look into the file as it is before the render: one document at most, and that a resource."""
    file = contents.get(posixpath.join(package, posixpath.normpath(path)))
    if file is None:
        reason = (
            f"failed to open functionConfig from path {quoted(path)}: open {shown}/{path}: no such file or directory"
        )
        raise InvalidKptfile(field, path, reason)
    try:
        documents = read_documents(file.data)
    except YamlError as error:
        raise InvalidKptfile(field, path, f"failed to read functionConfig {quoted(path)}: {error}") from None
    if len(documents) > 1:
        reason = f"functionConfig {quoted(path)} must not contain more than one config, got {len(documents)}"
        raise InvalidKptfile(field, path, reason)
    if problem := krm_problem(documents[0] if documents else {}, path):
        raise InvalidKptfile(field, path, problem)
