"""Several ways to run functions, tried in order. Source: ``decisions.md`` 12."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from krm.functions.runner import (
    FunctionConfig,
    FunctionNotFound,
    FunctionResult,
    FunctionRunner,
    NoMatchingTag,
    ResourceList,
)

_T = TypeVar("_T")


class RunnerChain:
    """Gives each image to the first runner that knows it."""

    def __init__(self, runners: Sequence[FunctionRunner], *, remedies: Sequence[str] = ()) -> None:
        """``remedies`` say what else could be configured here to run an image that none of them knows."""
        self._runners = tuple(runners)
        self._remedies = tuple(remedies)

    def run(self, image: str, resources: ResourceList) -> FunctionResult:
        """Run the function with the first runner that knows it; see the port."""
        return self._first(image, lambda runner: runner.run(image, resources))

    def require(self, image: str) -> None:
        """Make sure that one of the runners knows the image; see the port."""
        self._first(image, lambda runner: runner.require(image))

    def resolve(self, image: str, constraint: str) -> str:
        """Choose the tag with the first runner that has one in the range; see the port."""
        unmatched: list[NoMatchingTag] = []

        def ask(runner: FunctionRunner) -> str:
            try:
                return runner.resolve(image, constraint)
            except NoMatchingTag as error:
                unmatched.append(error)
                raise FunctionNotFound(image, str(error)) from None

        try:
            return self._first(image, ask)
        except FunctionNotFound:
            if unmatched:
                raise unmatched[0] from None
            raise

    def is_deterministic(self, image: str, config: FunctionConfig | None) -> bool:
        """Ask the runner that would run it; see the port."""
        return self._first(image, lambda runner: runner.is_deterministic(image, config))

    def _first(self, image: str, action: Callable[[FunctionRunner], _T]) -> _T:
        remedies = []
        for runner in self._runners:
            try:
                return action(runner)
            except FunctionNotFound as error:
                remedies.append(error.remedy)
        raise FunctionNotFound(image, "; ".join([*remedies, *self._remedies]))


class LateRunner:
    """A runner that is made when it is first needed: most packages never need it."""

    def __init__(self, make: Callable[[], FunctionRunner]) -> None:
        self._make = make
        self._made: FunctionRunner | None = None

    def run(self, image: str, resources: ResourceList) -> FunctionResult:
        """Run the function; see the port."""
        return self._runner.run(image, resources)

    def require(self, image: str) -> None:
        """Make sure that the function could run; see the port."""
        self._runner.require(image)

    def resolve(self, image: str, constraint: str) -> str:
        """Choose the tag; see the port."""
        return self._runner.resolve(image, constraint)

    def is_deterministic(self, image: str, config: FunctionConfig | None) -> bool:
        """Say whether its output may be remembered; see the port."""
        return self._runner.is_deterministic(image, config)

    @property
    def _runner(self) -> FunctionRunner:
        if self._made is None:
            self._made = self._make()
        return self._made
