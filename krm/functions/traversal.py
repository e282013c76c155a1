"""The pipelines of a package and its subpackages, one after the other.

Independent siblings could run at the same time, but they do not: the functions run in this process and under
its one lock, so that threads would gain nothing, and what a render reports would depend on chance. Renders of
different packages run in parallel, each in a process of its own. Source: ``kpt.md`` 2.1–2.3 and 2.13.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from krm.functions.package_tree import Package, PackageTree, RenderError
from krm.functions.pipeline_check import (
    InvalidKptfile,
    InvalidPipeline,
    check_pipeline,
    mutators_of,
    validators_of,
)
from krm.functions.resource import Resource
from krm.functions.step_config import StepConfigs
from krm.functions.step_record import StepRecord
from krm.functions.steps import StepFailed, StepRunner, krm_problem_of
from krm.package.contents import Contents

_BREADTH_FIRST = "kpt.dev/bfs-rendering"


class _PipelineFailed(Exception):
    """One package's pipeline failed; the caller knows how to tell where."""

    def __init__(self, message: str, cause: str, items: list[Resource]) -> None:
        super().__init__(message)
        self.cause = cause
        self.items = items
        """The resources as the last function that succeeded left them."""


@dataclass(slots=True)
class Traversal:
    """One pass over all packages of a tree, and what its steps reported."""

    contents: Contents
    tree: PackageTree
    runner: StepRunner
    configs: StepConfigs
    shown: str = "."
    """What messages call the root package."""
    records: list[StepRecord] = field(default_factory=list)
    packages: int = 0
    """How many packages had their turn."""
    state: dict[str, list[Resource]] = field(default_factory=dict)
    """All resources as they are now, under the path of the package that saw them last."""

    @property
    def resources(self) -> list[Resource]:
        """All resources as they are now: after a failure the state that was reached."""
        return [resource for members in self.state.values() for resource in members]

    def run(self) -> None:
        """Run all pipelines.

        Raises:
            RenderError: a pipeline is invalid or failed.
        """
        self.state = {package.path: package.resources for package in self.tree.root.walk()}
        self._check(self.tree.root)
        if self.tree.root.kptfile.annotations.get(_BREADTH_FIRST) == "true":
            self._breadth_first()
        else:
            self._depth_first()

    def _depth_first(self) -> None:
        """Subpackages first; a package then sees its own resources and all theirs."""
        for package in self._turns():
            items = list(self.state[package.path])
            for child in package.children:
                items += self.state.pop(child.path)
            try:
                self.state[package.path] = self._pipeline(package, items, package.resources)
            except InvalidKptfile as error:
                self.state[package.path] = items
                raise RenderError(f"pkg.render: pkg {package.display}: {error}", cause=str(error)) from None
            except _PipelineFailed as error:
                self.state[package.path] = error.items
                text = f"pkg.render: pkg {package.display}:\n\tpipeline.run: {error}"
                raise RenderError(text, cause=error.cause) from None

    def _turns(self) -> Iterator[Package]:
        """Yield the packages depth first, each checked before anything below it runs."""
        waiting = [(self.tree.root, False)]
        while waiting:
            package, is_turn = waiting.pop()
            if is_turn:
                yield package
                continue
            if package is not self.tree.root:
                self._check(package)
            waiting.append((package, True))
            waiting += [(child, False) for child in reversed(package.children)]

    def _breadth_first(self) -> None:
        """The root first; every package sees its own resources and those of all below, as they are by then."""
        packages = list(self.tree.root.walk())
        for package in packages[1:]:
            self._check(package)
        for package in packages:
            scope = [item for below in package.walk() for item in self.state[below.path]]
            unchecked = scope if package is self.tree.root else []
            try:
                self._distribute(package, self._pipeline(package, scope, unchecked))
            except InvalidKptfile as error:
                raise RenderError(f"pkg.render: pkg {package.display}: {error}", cause=str(error)) from None
            except _PipelineFailed as error:
                self._distribute(package, error.items)
                where = "" if package is self.tree.root else f"pkg {package.display}: "
                text = f"pkg.render: pkg .:\n\tpipeline.run: {where}{error}"
                raise RenderError(text, cause=error.cause) from None

    def _distribute(self, package: Package, items: list[Resource]) -> None:
        """Give the output of a package's pipeline back to the packages it belongs to."""
        for below in package.walk():
            self.state[below.path] = []
        for item in items:
            self.state.setdefault(item.package, []).append(item)

    def _check(self, package: Package) -> None:
        """Validate a pipeline as it stands in the Kptfile, before anything of the package runs."""
        steps = mutators_of(package.kptfile) + validators_of(package.kptfile)
        shown = f"{self.shown}/{package.path}" if package.path else self.shown
        try:
            check_pipeline(steps, self.contents, package.path, shown)
        except InvalidPipeline as error:
            text = f"pkg.render: pkg {package.display}: {error}"
            raise RenderError(text, cause=str(error), is_recorded=package is not self.tree.root) from None

    def _pipeline(self, package: Package, items: list[Resource], unchecked: Sequence[Resource]) -> list[Resource]:
        """Run one package's mutators, all of which must be runnable, and then its validators.

        ``unchecked`` are the ``items`` that were read and not made by a function, nor seen by a package before.
        """
        self.packages += 1
        self.runner.observer.enters(package.path)
        mutators, validators = mutators_of(package.kptfile), validators_of(package.kptfile)
        for step in mutators + validators:
            self.configs.check(step, package)
        if problem := krm_problem_of(unchecked, "input"):
            self.records += [self.runner.refuse(step, package.path, problem) for step in (mutators + validators)[:1]]
            raise _PipelineFailed(problem, problem, items)
        try:
            prepared = [self.runner.prepare(step, package.path) for step in mutators]
            # Of the validators, each is looked for only when its turn has come: that is upstream's order.
            for ready in chain(prepared, (self.runner.prepare(step, package.path) for step in validators)):
                items, record = self.runner.run(ready, items, self.configs.load(ready.step, package, items))
                self.records.append(record)
        except StepFailed as error:
            self.records.append(error.record)
            raise _PipelineFailed(str(error), error.cause, items) from None
        except InvalidKptfile as error:
            raise _PipelineFailed(str(error), str(error), items) from None
        return items
