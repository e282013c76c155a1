"""One step of a pipeline: choose resources, find the configuration, run, check what came back.

Source: ``kpt.md`` 2.2–2.7.
"""

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from krm.functions.images import is_version_constraint, parse_image
from krm.functions.package_tree import Package
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, FunctionNotFound, FunctionResult, FunctionRunner, ResourceList
from krm.package.kptfile import Function, Selector
from krm.package.resource_identity import annotations_of, identity_of, krm_problem

_NO_EXEC = "must run with `--allow-exec` option to allow running function binaries"


@dataclass(slots=True)
class StepRecord:
    """What one executed step reports."""

    function: Function
    image: str
    exit_code: int = 0
    execution_error: str = ""
    stderr: str = ""
    results: list[dict[str, Any]] = field(default_factory=list)

    @property
    def title(self) -> str:
        """What the step is called in summaries."""
        return self.function.name or self.image or self.function.exec

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The results of severity error."""
        return [result for result in self.results if result.get("severity") == "error"]


class StepFailed(Exception):
    """A function could not be run, failed, or gave back what it must not; ``record`` says more."""

    def __init__(self, message: str, record: StepRecord) -> None:
        super().__init__(message)
        self.record = record


def full_image(function: Function, runner: FunctionRunner) -> str:
    """Return the step's full image reference, after making sure that it could run.

    Raises:
        StepFailed: an ``exec`` function, a version range, or an image that nothing here runs.
    """
    if function.exec:
        raise StepFailed(_NO_EXEC, StepRecord(function, "", 1, _NO_EXEC))
    if function.tag and is_version_constraint(function.tag):
        message = f'no tag could be found matching the version constraint "{function.tag}"'
        raise StepFailed(message, StepRecord(function, function.image, 1, message))
    image = str(parse_image(function.image, function.tag))
    try:
        runner.require(image)
    except FunctionNotFound as error:
        raise StepFailed(*_not_found(function, image, error)) from None
    return image


def run_step(
    function: Function,
    image: str,
    package: Package,
    items: list[Resource],
    *,
    config: FunctionConfig | None,
    runner: FunctionRunner,
) -> tuple[list[Resource], StepRecord]:
    """Run one function on the resources it selects; return all resources afterwards, and the record.

    Raises:
        StepFailed: see there.
    """
    selected = [item for item in items if is_selected(item, function)]
    record = StepRecord(function, image)
    try:
        result = runner.run(image, ResourceList(list(selected), config))
    except FunctionNotFound as error:
        raise StepFailed(*_not_found(function, image, error)) from None
    record.results, record.stderr, record.exit_code = result.results, result.stderr, result.exit_code
    if result.exit_code:
        raise StepFailed("already handled error", record)
    merged = _merge_back(items, selected, result)
    if problem := _complete(merged, package) or _krm_problem(merged, "output"):
        record.execution_error, record.exit_code = problem, 1
        raise StepFailed(problem, record)
    return merged, record


def _not_found(function: Function, image: str, error: FunctionNotFound) -> tuple[str, StepRecord]:
    message = f'function runtime failed to evaluate function "{image}": {error}'
    return message, StepRecord(function, image, 1, message)


def is_selected(resource: Resource, function: Function) -> bool:
    """Say whether the step sees ``resource``: any selector matches (or there is none), no exclusion does."""
    if function.selectors and not any(_matches(resource.data, selector) for selector in function.selectors):
        return False
    return not any(exclusion != Selector() and _matches(resource.data, exclusion) for exclusion in function.exclude)


def input_problem(resources: Sequence[Resource]) -> str:
    """Say which resource is not KRM; empty when all are."""
    return _krm_problem(resources, "input")


def _matches(data: dict[str, Any], selector: Selector) -> bool:
    """Compare every field that the selector gives, exactly."""
    metadata = data.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    labels = metadata.get("labels")
    return (
        selector.api_version in ("", data.get("apiVersion"))
        and selector.kind in ("", data.get("kind"))
        and selector.name in ("", metadata.get("name"))
        and selector.namespace in ("", metadata.get("namespace"))
        and selector.labels.items() <= (labels if isinstance(labels, dict) else {}).items()
        and selector.annotations.items() <= annotations_of(data).items()
    )


def _merge_back(items: list[Resource], selected: list[Resource], result: FunctionResult) -> list[Resource]:
    """Put the function's output in the place of what it was given; new resources go to the end."""
    offered = set(map(id, selected))
    returned = set(map(id, result.items))
    kept = [item for item in items if id(item) not in offered or id(item) in returned]
    return kept + [item for item in result.items if id(item) not in offered]


def _complete(items: list[Resource], package: Package) -> str:
    """Give generated resources their package and file; return what is wrong with the paths, if anything."""
    taken: set[tuple[str, int | None]] = set()
    for item in items:
        if not item.path:
            item.path, item.package = _default_path(item.data), package.path
        path = posixpath.normpath(item.path)
        if path.startswith("/"):
            return "package paths may not be absolute paths"
        if path == ".." or path.startswith("../"):
            return f"function must not modify resources outside of package: resource has path {path}"
        key = (posixpath.join(item.package, path), item.index)
        if key in taken:
            return f'resource at path "{path}" and index "{"" if item.index is None else item.index}" already exists'
        taken.add(key)
        item.path = path
    return ""


def _default_path(data: dict[str, Any]) -> str:
    now = identity_of(data)
    file = f"{now.kind.lower()}_{now.name}.yaml"
    return f"{now.namespace}/{file}" if now.namespace else file


def _krm_problem(resources: Sequence[Resource], side: str) -> str:
    for resource in resources:
        if problem := krm_problem(resource.data, resource.path):
            return f"{side} resource list must contain only KRM resources: {resource.path}: {problem}"
    return ""
