"""What a function gets and gives back, and what can run one.

The port between the pipeline and the ways to run a function: in this process, as a child process or in a
container.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from krm.functions.resource import Resource


@dataclass(frozen=True, slots=True)
class FunctionConfig:
    """A function's configuration: the object (all scalars as text), and the file it came from."""

    data: dict[str, Any]
    path: str = ""
    """Empty when it came from the Kptfile's ``configMap``."""
    typed: dict[str, Any] = field(default_factory=dict)
    """The object with numbers and booleans as YAML has them, for functions that see the object itself."""
    text: str = ""
    """The document as it was read, with its comments; empty when it is not known."""


@dataclass(slots=True)
class ResourceList:
    """The resources a function sees, in order, and its configuration."""

    items: list[Resource]
    config: FunctionConfig | None = None


@dataclass(slots=True)
class FunctionResult:
    """What a function did.

    ``items`` are the resources afterwards: objects of the input, changed in place, and new ones; an object
    of the input that is missing is deleted. They count only when ``exit_code`` is 0.
    """

    items: list[Resource]
    results: list[dict[str, Any]] = field(default_factory=list)
    exit_code: int = 0
    stderr: str = ""

    @classmethod
    def failure(cls, resources: ResourceList, results: Sequence[dict[str, Any]], stderr: str) -> "FunctionResult":
        """Return the result of a function that gave up."""
        return cls(resources.items, list(results), exit_code=1, stderr=stderr)


class FunctionNotFound(Exception):
    """Nothing here can run this image; the text names it and says what would make it runnable."""

    def __init__(self, image: str, remedy: str) -> None:
        super().__init__(f'function "{image}" not found: {remedy}')
        self.image = image
        self.remedy = remedy


class NoMatchingTag(Exception):
    """No tag of an image is in the range that a pipeline asks for."""

    def __init__(self, constraint: str) -> None:
        super().__init__(f'no tag could be found matching the version constraint "{constraint}"')
        self.constraint = constraint


class FunctionRunner(Protocol):
    """Runs functions by image."""

    def run(self, image: str, resources: ResourceList) -> FunctionResult:
        """Run the function ``image`` (a full reference) on ``resources``; called in a worker thread.

        Raises:
            FunctionNotFound: the runner does not know the image.
        """
        ...

    def require(self, image: str) -> None:
        """Make sure that ``image`` could run, before any function of its package does.

        Raises:
            FunctionNotFound: it could not.
        """
        ...

    def resolve(self, image: str, constraint: str) -> str:
        """Return the reference of the newest tag of ``image`` that is in the version range ``constraint``.

        Raises:
            NoMatchingTag: no tag that is known here is in the range.
            FunctionNotFound: the runner does not know the image at all.
        """
        ...

    def is_deterministic(self, image: str, config: FunctionConfig | None) -> bool:
        """Say whether ``image`` with ``config`` always gives the same for the same resources.

        Only then may what it gives be remembered: not when it reads the clock, the network or a file. Asked
        only of images that :meth:`require` accepts.
        """
        ...


class CommandRunner(Protocol):
    """Runs functions that are commands of this machine: a pipeline's ``exec``."""

    def run(self, command: str, resources: ResourceList) -> FunctionResult:
        """Run ``command``, split as a shell would, without one; called in a worker thread."""
        ...
