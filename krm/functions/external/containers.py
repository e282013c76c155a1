"""Functions in containers, by the command of a container runtime. Source: ``kpt.md`` 2.14 and 2.15."""

import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from krm.functions.external.child_process import DEFAULT_LIMITS, CannotStart, Finished, Limits, run_child
from krm.functions.external.external_call import ExternalCall, refused
from krm.functions.external.resource_list import MalformedResourceList
from krm.functions.images import parse_image
from krm.functions.runner import FunctionConfig, FunctionNotFound, FunctionResult, NoMatchingTag, ResourceList
from krm.functions.version_range import newest_tag

_SHORT = Limits(seconds=30.0)
"""For questions to the runtime, and for removing a container."""
_RUNTIME_FAILED = 125
"""What ``docker run`` exits with when the container never ran."""
_PROGRESS = re.compile(
    rb"(?:Unable to find image .* locally|.*: Pulling from .*"
    rb"|[0-9a-f]{12}: (?:Pulling fs layer|Waiting|Downloading.*|Verifying Checksum|Download complete|Extracting.*"
    rb"|Pull complete|Already exists)|Digest: sha256:[0-9a-f]{64}|Status: (?:Downloaded newer image|Image is up to date) .*)\r?"
)
"""What docker says while it pulls."""


class ContainerRuntime(StrEnum):
    """The command that runs containers."""

    DOCKER = "docker"
    PODMAN = "podman"
    NERDCTL = "nerdctl"


class PullPolicy(StrEnum):
    """When an image is pulled."""

    IF_NOT_PRESENT = "IfNotPresent"
    ALWAYS = "Always"
    NEVER = "Never"


_PULL_FLAGS = {PullPolicy.IF_NOT_PRESENT: "missing", PullPolicy.ALWAYS: "always", PullPolicy.NEVER: "never"}


class InvalidMount(ValueError):
    """A mount is not written as it must be."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or directory of this machine, or a volume, that a container sees."""

    kind: str
    source: str
    target: str
    is_writable: bool = False

    @classmethod
    def parse(cls, text: str) -> "Mount":
        """Read ``type=bind,src=/data,dst=/in[,rw=true]``.

        Raises:
            InvalidMount: a part is unknown or missing.
        """
        parts: dict[str, str] = {}
        for part in text.split(","):
            name, _, value = part.partition("=")
            parts[_MOUNT_FIELDS.get(name.strip(), "")] = value.strip()
        if "" in parts or not {"kind", "source", "target"} <= parts.keys():
            raise InvalidMount(f'mount "{text}" must be written type=TYPE,src=SOURCE,dst=TARGET[,rw=true]')
        return cls(parts["kind"], parts["source"], parts["target"], parts.get("rw", "").lower() == "true")

    def __str__(self) -> str:
        read_only = "" if self.is_writable else ",readonly"
        return f"type={self.kind},source={self.source},target={self.target}{read_only}"


_MOUNT_FIELDS = {
    "type": "kind",
    "src": "source",
    "source": "source",
    "dst": "target",
    "target": "target",
    "destination": "target",
    "rw": "rw",
}


@dataclass(frozen=True, slots=True)
class ContainerOptions:
    """How containers are run."""

    runtime: ContainerRuntime = ContainerRuntime.DOCKER
    allow_network: bool = False
    pull: PullPolicy = PullPolicy.IF_NOT_PRESENT
    user: str = "nobody"
    mounts: tuple[Mount, ...] = ()
    variables: tuple[str, ...] = ()
    """Environment of the functions: ``NAME=value``, or ``NAME`` to hand on that of the runtime's command."""
    limits: Limits = DEFAULT_LIMITS


class ContainerRunner:
    """Runs every image, if the runtime can get it."""

    def __init__(self, options: ContainerOptions, *, environment: Mapping[str, str]) -> None:
        """``environment`` is that of the runtime's command, ``PATH`` where it is looked for."""
        self._options = options
        self._environment = dict(environment)

    def run(self, image: str, resources: ResourceList) -> FunctionResult:
        """Run a container to its end; it is removed whatever happens. See the port."""
        self.require(image)
        full = str(parse_image(image))
        name = f"porch-fn-{secrets.token_hex(8)}"
        is_over = False
        try:
            call = ExternalCall.of(resources)
            arguments = self._arguments(full, name)
            finished = run_child(
                arguments,
                call.stdin,
                environment=self._environment,
                limits=self._options.limits,
                when_abandoned=(self._options.runtime.value, "rm", "-f", name),
            )
            is_over = not finished.problem
        except (MalformedResourceList, CannotStart) as error:
            is_over = True
            return refused(resources, error)
        finally:
            if not is_over:
                # Killing the command leaves the container to the daemon, where it would run on.
                self._ask("rm", "-f", name)
        return call.result(_explained(full, finished))

    def require(self, image: str) -> None:
        """Make sure that there is a runtime; which images it can get only shows when one runs. See the port."""
        if shutil.which(self._options.runtime, path=self._environment.get("PATH")) is None:
            raise FunctionNotFound(image, f'the container runtime "{self._options.runtime}" is not on the PATH')

    def resolve(self, image: str, constraint: str) -> str:
        """Choose from the images that the runtime already has: no registry is asked. See the port."""
        self.require(image)
        name = parse_image(image).name
        listed = self._ask("image", "ls", "--format", "{{.Tag}}", name)
        tag = newest_tag(listed.stdout.decode(errors="replace").split() if listed else (), constraint)
        if tag is None:
            raise NoMatchingTag(constraint)
        return f"{name}:{tag}"

    def is_deterministic(self, image: str, _config: FunctionConfig | None) -> bool:
        """A container may do what it likes; see the port."""
        self.require(image)
        return False

    def _arguments(self, image: str, name: str) -> list[str]:
        options = self._options
        network = "host" if options.allow_network else "none"
        arguments = [options.runtime.value, "run", "--rm", "-i", "--name", name, "--network", network]
        arguments += ["--user", options.user, "--security-opt=no-new-privileges", "--pull", _PULL_FLAGS[options.pull]]
        for mount in options.mounts:
            arguments += ["--mount", str(mount)]
        for variable in options.variables:
            arguments += ["-e", variable]
        return [*arguments, image]

    def _ask(self, *arguments: str) -> Finished | None:
        """Give the runtime a short command; None when it cannot be started."""
        command: Sequence[str] = (self._options.runtime.value, *arguments)
        try:
            return run_child(command, b"", environment=self._environment, limits=_SHORT)
        except CannotStart:
            return None


def _explained(image: str, finished: Finished) -> Finished:
    """Leave out what the runtime says while it pulls, and say what it means when it could not."""
    lines = [line for line in finished.stderr.splitlines(keepends=True) if not _PROGRESS.fullmatch(line.rstrip(b"\n"))]
    if finished.exit_code == _RUNTIME_FAILED:
        advice = "if it is in no registry, build it here and use the image pull policy IfNotPresent or Never"
        lines.append(f'function image "{image}" did not start; {advice}\n'.encode())
    return replace(finished, stderr=b"".join(lines))
