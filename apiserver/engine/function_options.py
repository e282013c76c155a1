"""What functions a server may run besides the built-in ones; can be pickled, for its render workers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from krm.functions.external.containers import ContainerOptions, ContainerRuntime
from krm.functions.external.executables import Executable
from krm.functions.runner import FunctionRunner
from krm.functions.toolchain import function_runner

_REMEDY = "set PORCH_FUNCTION_EXECUTABLES or PORCH_CONTAINER_RUNTIME of the server (docs/reference/settings.md)"


@dataclass(frozen=True, slots=True)
class FunctionOptions:
    """Executables that stand in for images, and a container runtime for all others."""

    executables: Mapping[str, Path] = field(default_factory=dict)
    """Pattern of full image references → program, absolute."""
    container_runtime: str = ""
    """``docker``, ``podman`` or ``nerdctl``; empty for none."""
    schema_directory: Path | None = None
    """Of the OpenAPI documents that kubeconform may be told to use."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """All that executables and the container runtime see of one."""

    def runner(self) -> FunctionRunner:
        """Return what runs functions by image in this process.

        Raises:
            ValueError: a program's path is not absolute, or the runtime is none of the three.
        """
        runtime = self.container_runtime
        return function_runner(
            executables=[Executable(image, program) for image, program in self.executables.items()],
            containers=(lambda: ContainerOptions(ContainerRuntime(runtime))) if runtime else None,
            environment=self.environment,
            schema_directory=self.schema_directory,
            remedies=[_REMEDY],
        )
