"""Functions that are programs of this machine.

Those of an allow-list stand in for images, and a pipeline's ``exec`` names one itself, which the user has
to allow. Source: ``kpt.md`` 2.15, ``decisions.md`` 12.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from krm.functions.external.child_process import DEFAULT_LIMITS, CannotStart, Limits, run_child
from krm.functions.external.external_call import ExternalCall, refused
from krm.functions.external.resource_list import MalformedResourceList
from krm.functions.images import parse_image
from krm.functions.runner import FunctionConfig, FunctionNotFound, FunctionResult, NoMatchingTag, ResourceList
from krm.functions.version_range import newest_tag

_LONGEST_COMMAND = 4096
"""Characters of a pipeline's ``exec``."""


@dataclass(frozen=True, slots=True)
class Executable:
    """An entry of the allow-list."""

    image: str
    """Pattern of full image references, shell style: ``ghcr.io/acme/lint:v1.*``."""
    program: Path
    """Absolute."""
    tags: tuple[str, ...] = ()
    """The tags it stands for, for version ranges; none when it answers no range."""


class ExecutableRunner:
    """Runs images that an allow-list maps to programs; the first pattern that matches wins."""

    def __init__(
        self, allowed: Sequence[Executable], *, environment: Mapping[str, str], limits: Limits = DEFAULT_LIMITS
    ) -> None:
        """``environment`` is all that the programs see of one.

        Raises:
            ValueError: a program's path is not absolute.
        """
        for executable in allowed:
            if not executable.program.is_absolute():
                raise ValueError(f"the program {executable.program} for {executable.image} must be an absolute path")
        self._allowed = tuple(allowed)
        self._environment = dict(environment)
        self._limits = limits

    def run(self, image: str, resources: ResourceList) -> FunctionResult:
        """Run the program that stands in for ``image``; see the port."""
        program = str(self._find(image).program)
        return _call([program], resources, self._environment, self._limits)

    def require(self, image: str) -> None:
        """Refuse images that no entry matches; see the port."""
        self._find(image)

    def resolve(self, image: str, constraint: str) -> str:
        """Choose from the tags that the matching entries declare; see the port."""
        name = parse_image(image).name
        entries = [entry for entry in self._allowed if fnmatchcase(name, entry.image.partition(":")[0])]
        if not entries:
            raise self._not_found(image)
        tag = newest_tag((tag for entry in entries for tag in entry.tags), constraint)
        if tag is None:
            raise NoMatchingTag(constraint)
        return f"{name}:{tag}"

    def is_deterministic(self, image: str, _config: FunctionConfig | None) -> bool:
        """A program may do what it likes; see the port."""
        self._find(image)
        return False

    def _find(self, image: str) -> Executable:
        full = str(parse_image(image))
        found = next((entry for entry in self._allowed if fnmatchcase(full, entry.image)), None)
        if found is None:
            raise self._not_found(image)
        return found

    def _not_found(self, image: str) -> FunctionNotFound:
        return FunctionNotFound(image, "no executable is allowed to stand in for it")


class ExecRunner:
    """Runs a pipeline's ``exec``; having one is the permission."""

    def __init__(
        self, *, environment: Mapping[str, str], directory: Path | None = None, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        """``directory`` is where commands run, this process' own when None."""
        self._environment = dict(environment)
        self._directory = directory
        self._limits = limits

    def run(self, command: str, resources: ResourceList) -> FunctionResult:
        """Run a command, split as a shell would, without one; see the port."""
        if len(command) > _LONGEST_COMMAND:
            return refused(resources, CannotStart(f"the command is longer than {_LONGEST_COMMAND} characters"))
        try:
            arguments = shlex.split(command)
        except ValueError as error:
            return refused(resources, CannotStart(f"cannot read the command {command!r}: {error}"))
        if not arguments:
            return refused(resources, CannotStart("the command is empty"))
        return _call(arguments, resources, self._environment, self._limits, self._directory)


def _call(
    arguments: Sequence[str],
    resources: ResourceList,
    environment: Mapping[str, str],
    limits: Limits,
    directory: Path | None = None,
) -> FunctionResult:
    try:
        call = ExternalCall.of(resources)
        finished = run_child(arguments, call.stdin, environment=environment, directory=directory, limits=limits)
    except (MalformedResourceList, CannotStart) as error:
        return refused(resources, error)
    return call.result(finished)
