"""One step of a pipeline: choose resources, run the function, check what came back.

Source: ``kpt.md`` 2.2–2.7 and 2.14.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from krm.functions.go_text import quoted
from krm.functions.images import DEFAULT_PREFIX, is_version_constraint, parse_image
from krm.functions.pipeline_check import Step
from krm.functions.placement import Place, PlacementError, place_of, refuse_duplicates, settle
from krm.functions.progress import Observer, Silence
from krm.functions.resource import Resource
from krm.functions.runner import (
    CommandRunner,
    FunctionConfig,
    FunctionNotFound,
    FunctionResult,
    FunctionRunner,
    NoMatchingTag,
    ResourceList,
)
from krm.functions.selection import selected
from krm.functions.step_cache import StepCache
from krm.functions.step_record import StepRecord
from krm.package.kptfile import Function
from krm.package.resource_identity import krm_problem

_NO_EXEC = "must run with `--allow-exec` option to allow running function binaries"
_HANDLED = "already handled error"
"""What upstream's chain of errors ends in when a function failed: its results have said why."""


class StepFailed(Exception):
    """A function could not be run, failed, or gave back what it must not; ``record`` says more."""

    def __init__(self, message: str, record: StepRecord) -> None:
        super().__init__(message)
        self.record = record

    @property
    def cause(self) -> str:
        """What there is to say beyond the function's own results; empty when they say it all."""
        return self.record.execution_error


@dataclass(frozen=True, slots=True)
class PreparedStep:
    """A step whose function is known to be runnable."""

    step: Step
    package: str
    image: str
    """The full reference; empty for a command."""
    call: Callable[[ResourceList], FunctionResult]


@dataclass(slots=True)
class StepRunner:
    """Prepares and runs the steps of one render."""

    runner: FunctionRunner
    commands: CommandRunner | None = None
    cache: StepCache | None = None
    observer: Observer = field(default_factory=Silence)
    image_prefix: str = DEFAULT_PREFIX
    """Goes before image names without a slash."""
    keeps_failed_input: bool = False
    """Whether resources are put back to what they were when their function fails."""
    asks_determinism: bool = False
    """Whether to find out if all steps would do the same again."""
    is_deterministic: bool = True
    """Whether they would, as far as was asked."""

    def prepare(self, step: Step, package: str) -> PreparedStep:
        """Find out what runs the step's function.

        Raises:
            StepFailed: a command where none is allowed, a version range without a match, or an image that
                nothing here runs.
        """
        function = step.function
        if function.exec:
            if self.commands is None:
                raise _failed(_NO_EXEC, step, package)
            commands = self.commands
            return PreparedStep(step, package, "", lambda resources: commands.run(function.exec, resources))
        image = _full_image(function, self.image_prefix)
        try:
            if function.tag and is_version_constraint(function.tag):
                image = self.runner.resolve(image, function.tag)
            self.runner.require(image)
        except NoMatchingTag as error:
            raise _failed(str(error), step, package, image) from None
        except FunctionNotFound as error:
            raise _failed(_not_found(image, error), step, package, image) from None
        return PreparedStep(step, package, image, lambda resources: self.runner.run(image, resources))

    def refuse(self, step: Step, package: str, problem: str) -> StepRecord:
        """Return the record of a step that is not even prepared."""
        record = _record(step, package, _full_image(step.function, self.image_prefix))
        record.fail(problem)
        return record

    def run(
        self, prepared: PreparedStep, items: list[Resource], config: FunctionConfig | None
    ) -> tuple[list[Resource], StepRecord]:
        """Run a function on the resources it selects; return all resources afterwards, and the record.

        A validator works on copies, and what it returns counts only as success or failure.

        Raises:
            StepFailed: see there.
        """
        function, is_validator = prepared.step.function, prepared.step.is_validator
        chosen = selected(items, function)
        record = _record(prepared.step, prepared.package, prepared.image)
        record.selected = len(chosen) if function.selectors or function.exclude else None
        given = [item.copy() for item in chosen] if is_validator else chosen
        saved = [item.copy() for item in given] if self.keeps_failed_input and not is_validator else []
        before = {id(item): place_of(item) for item in given}
        try:
            result = self._call(prepared, record, given, config)
            merged = items if is_validator else _merged(items, before, result, prepared.package)
        except (StepFailed, PlacementError) as error:
            for item, copy in zip(given if saved else (), saved, strict=True):
                item.become(copy)
            if isinstance(error, PlacementError):
                record.fail(str(error))
                self.observer.ends(record)
                raise StepFailed(str(error), record) from None
            raise
        self.observer.ends(record)
        return merged, record

    def _call(
        self, prepared: PreparedStep, record: StepRecord, given: list[Resource], config: FunctionConfig | None
    ) -> FunctionResult:
        self.observer.starts(record)
        record.has_run = True
        began = perf_counter()
        try:
            result = self._remembered_or_run(prepared, ResourceList(list(given), config))
        except FunctionNotFound as error:
            record.fail(_not_found(prepared.image, error))
        except Exception as error:
            import logging  # only a defect pays for it; without it, nobody would learn where it is

            logging.getLogger(__name__).exception("function %s has a defect", record.title)
            problem = f"{type(error).__name__}: {error}"
            record.fail(f"function runtime failed to evaluate function {quoted(record.title)}: {problem}")
        else:
            record.results, record.stderr, record.exit_code = result.results, result.stderr, result.exit_code
        record.seconds = perf_counter() - began
        if record.exit_code:
            self.observer.ends(record)
            raise StepFailed(record.execution_error or _HANDLED, record)
        return result

    def _remembered_or_run(self, prepared: PreparedStep, resources: ResourceList) -> FunctionResult:
        if not self.asks_determinism and self.cache is None:
            return prepared.call(resources)
        if not prepared.image or not self.runner.is_deterministic(prepared.image, resources.config):
            self.is_deterministic = False
            return prepared.call(resources)
        if self.cache is None:
            return prepared.call(resources)
        return self.cache.run(prepared.image, resources, prepared.call)


def _full_image(function: Function, prefix: str) -> str:
    """Return the full reference of a step's image as far as it is known without asking a runner."""
    tag = "" if is_version_constraint(function.tag) else function.tag
    return str(parse_image(function.image, tag, prefix=prefix)) if function.image else ""


def krm_problem_of(resources: Sequence[Resource], side: str) -> str:
    """Say which resource is not KRM; empty when all are. ``side`` is ``input`` or ``output``."""
    for resource in resources:
        if problem := krm_problem(resource.data, resource.path):
            return f"{side} resource list must contain only KRM resources: {resource.path}: {problem}"
    return ""


def _record(step: Step, package: str, image: str) -> StepRecord:
    return StepRecord(step.function, image, package=package, is_validator=step.is_validator)


def _failed(problem: str, step: Step, package: str, image: str = "") -> StepFailed:
    record = _record(step, package, image)
    record.fail(problem)
    return StepFailed(problem, record)


def _not_found(image: str, error: FunctionNotFound) -> str:
    return f"function runtime failed to evaluate function {quoted(image)}: {error}"


def _merged(items: list[Resource], before: dict[int, Place], result: FunctionResult, package: str) -> list[Resource]:
    """Put the function's output in the place of what it was given; new resources go to the end.

    Raises:
        PlacementError: a resource is where it must not be, or is none.
    """
    moved = settle(result.items, before, package)
    if problem := krm_problem_of(result.items, "output"):
        raise PlacementError(problem)
    returned = set(map(id, result.items))
    if len(returned) == len(before) == len(result.items) and not moved:
        return items
    if len(returned) < len(result.items):
        refuse_duplicates(result.items)
    merged = [item for item in items if id(item) in returned or id(item) not in before]
    merged += [item for item in result.items if id(item) not in before]
    refuse_duplicates(merged)
    return merged
