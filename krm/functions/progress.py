"""Watching a render while it runs: what a command line prints of it. Source: ``kpt.md`` 2.10."""

from typing import Protocol

from krm.functions.step_record import StepRecord


class Observer(Protocol):
    """Is told what a render does, in order, from the thread that renders."""

    def enters(self, package: str) -> None:
        """A package's turn has come; ``package`` is its path relative to the root package."""
        ...

    def starts(self, record: StepRecord) -> None:
        """A function is about to run."""
        ...

    def ends(self, record: StepRecord) -> None:
        """A function that started has ended, well or not; ``record`` is complete."""
        ...


class Silence:
    """Watches nothing."""

    def enters(self, package: str) -> None:
        """Ignore it."""

    def starts(self, record: StepRecord) -> None:
        """Ignore it."""

    def ends(self, record: StepRecord) -> None:
        """Ignore it."""
