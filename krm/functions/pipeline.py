"""Rendering a package: the pipelines of it and its subpackages, in order, all or nothing.

Source: ``kpt.md`` 2, ``porch-api.md`` 5.4 and 5.5.
"""

from dataclasses import dataclass, field
from typing import Any

from krm.functions.package_tree import Package, PackageTree, RenderError, load_tree
from krm.functions.pipeline_check import InvalidKptfile, Step, check_pipeline, steps_of
from krm.functions.render_status import render_status, result_list, summary
from krm.functions.resource import Resource
from krm.functions.runner import FunctionRunner
from krm.functions.step_config import load_config
from krm.functions.steps import StepFailed, StepRecord, full_image, input_problem, run_step
from krm.functions.write_back import write_back
from krm.package.contents import Contents, File
from krm.package.kptfile import KptfileEdit, KptfileError, RenderedStatus, edit_kptfile

_BREADTH_FIRST = "kpt.dev/bfs-rendering"


@dataclass(frozen=True, slots=True)
class Rendered:
    """The outcome of a render."""

    contents: dict[str, File]
    """The package afterwards; after a failure the package as it was given."""
    results: dict[str, Any]
    """The FunctionResultList of the functions that ran, empty when none did."""
    error: str = ""
    """Of a failure: the chain of causes, for clients."""
    failed: bool = False
    status: RenderedStatus | None = None
    """What belongs into the root Kptfile: already there after a success, not after a failure."""


def render(contents: Contents, runner: FunctionRunner) -> Rendered:
    """Render the package whose Kptfile is at the root of ``contents``; blocking, for a worker thread.

    On success the root Kptfile has the condition ``Rendered``. Without a Kptfile nothing is done. A
    failure of any kind is told in the answer, never raised.
    """
    if "Kptfile" not in contents:
        return Rendered(dict(contents), {})
    run = _Run(runner)
    try:
        tree = load_tree(contents)
        resources = run.render(tree)
        new = write_back(contents, tree, resources) if run.has_run else dict(contents)
        status = RenderedStatus(render_status=render_status(run.mutations, run.validations))
        if kptfile := new.get("Kptfile"):
            new["Kptfile"] = File(edit_kptfile(kptfile.data, KptfileEdit(rendered=status)), kptfile.mode)
    except RenderError as error:
        return _failure(contents, run, str(error))
    except KptfileError as error:
        # A function left a Kptfile whose status cannot be written.
        return _failure(contents, run, f"pkg.render: pkg .:\n\tpkg.WriteKptfile: {error}")
    return Rendered(new, result_list(run.steps), status=status)


def _failure(contents: Contents, run: "_Run", message: str) -> Rendered:
    reported = RenderedStatus(
        succeeded=False, message=message, render_status=render_status(run.mutations, run.validations)
    )
    details = [line for step in run.steps if step.exit_code for line in _details(step)]
    error = "\n".join([message, *(line for line in details if line not in message)])
    return Rendered(dict(contents), result_list(run.steps), error=error, failed=True, status=reported)


def _details(step: StepRecord) -> list[str]:
    """Say which function failed and why: the chain itself only says that it was handled already."""
    errors = [str(result.get("message")) for result in step.errors]
    return [summary(step)] + [f"  [error] {message}" for message in errors] + ([step.stderr] if step.stderr else [])


@dataclass(slots=True)
class _Run:
    """One traversal of a package tree, and what its steps reported."""

    runner: FunctionRunner
    steps: list[StepRecord] = field(default_factory=list)
    mutations: list[StepRecord] = field(default_factory=list)
    validations: list[StepRecord] = field(default_factory=list)

    @property
    def has_run(self) -> bool:
        """Whether any function ran."""
        return bool(self.steps)

    def render(self, tree: PackageTree) -> list[Resource]:
        """Run all pipelines and return the resources of the whole tree.

        Raises:
            RenderError: a pipeline is invalid or failed.
        """
        if tree.root.kptfile.annotations.get(_BREADTH_FIRST) == "true":
            return self._breadth_first(tree)
        return self._depth_first(tree.root, tree)

    def _depth_first(self, package: Package, tree: PackageTree) -> list[Resource]:
        """Subpackages first; the package then sees its own resources and all theirs."""
        items = list(package.resources)
        for child in package.children:
            items += self._depth_first(child, tree)
        try:
            return self._pipeline(package, tree, items)
        except InvalidKptfile as error:
            raise RenderError(f"pkg.render: pkg {package.display}: {error}") from None
        except _PipelineFailed as error:
            raise RenderError(f"pkg.render: pkg {package.display}:\n\tpipeline.run: {error}") from None

    def _breadth_first(self, tree: PackageTree) -> list[Resource]:
        """The root first; every package sees its own resources and those of all below, as they are by then."""
        packages = list(tree.root.walk())
        items = [resource for package in packages for resource in package.resources]
        for package in packages:
            below = f"{package.path}/" if package.path else ""
            scope = [item for item in items if item.package == package.path or item.package.startswith(below)]
            try:
                output = self._pipeline(package, tree, scope)
            except InvalidKptfile as error:
                raise RenderError(f"pkg.render: pkg {package.display}: {error}") from None
            except _PipelineFailed as error:
                where = "" if package is tree.root else f"pkg {package.display}: "
                raise RenderError(f"pkg.render: pkg .:\n\tpipeline.run: {where}{error}") from None
            items = _replaced(items, scope, output)
        return items

    def _pipeline(self, package: Package, tree: PackageTree, items: list[Resource]) -> list[Resource]:
        """Run one package's mutators, then its validators, each of these on copies."""
        steps = steps_of(package.kptfile)
        check_pipeline(steps)
        if problem := input_problem(items):
            raise self._not_krm(steps, problem)
        images = [self._image(step) for step in steps]
        for step in steps:
            load_config(step, package, tree, items)
        for step, image in zip(steps, images, strict=True):
            given = [item.copy() for item in items] if step.is_validator else items
            config = load_config(step, package, tree, given)
            try:
                output, record = run_step(step.function, image, package, given, config=config, runner=self.runner)
            except StepFailed as error:
                self._record(step, error.record)
                raise _PipelineFailed(str(error)) from None
            self._record(step, record)
            items = items if step.is_validator else output
        return items

    def _image(self, step: Step) -> str:
        try:
            return full_image(step.function, self.runner)
        except StepFailed as error:
            self._record(step, error.record)
            raise _PipelineFailed(str(error)) from None

    def _not_krm(self, steps: list[Step], problem: str) -> "_PipelineFailed":
        if steps:
            self._record(steps[0], StepRecord(steps[0].function, steps[0].function.image, 1, problem))
        return _PipelineFailed(problem)

    def _record(self, step: Step, record: StepRecord) -> None:
        self.steps.append(record)
        (self.validations if step.is_validator else self.mutations).append(record)


class _PipelineFailed(Exception):
    """One package's pipeline failed; the caller knows how to tell where."""


def _replaced(items: list[Resource], scope: list[Resource], output: list[Resource]) -> list[Resource]:
    """Put what a package's pipeline made of its scope into the place of the scope."""
    seen = set(map(id, scope))
    left = set(map(id, output))
    kept = [item for item in items if id(item) not in seen or id(item) in left]
    return kept + [item for item in output if id(item) not in seen]
