"""The runners that one process uses, composed the same way for the command line and for the server.

Built-in functions first, then executables of an allow-list, then a container runtime if there is one. Source:
``decisions.md`` 12.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from krm.functions.builtins import PREFIXES, BuiltinRunner
from krm.functions.images import DEFAULT_PREFIX, checked_prefix
from krm.functions.runner import FunctionRunner
from krm.functions.runner_chain import LateRunner, RunnerChain

if TYPE_CHECKING:  # subprocess and what else these need is loaded when they are used
    from krm.functions.containers import ContainerOptions
    from krm.functions.executables import Executable

NO_EXECUTABLES = "no executable is allowed to stand in for it"
NO_CONTAINERS = "no container runtime is configured"


def function_runner(
    *,
    image_prefix: str = DEFAULT_PREFIX,
    executables: Sequence["Executable"] = (),
    containers: "Callable[[], ContainerOptions] | None" = None,
    environment: Mapping[str, str] | None = None,
    remedies: Sequence[str] = (),
) -> FunctionRunner:
    """Return what runs functions by image.

    ``image_prefix`` is another registry whose images the built-ins stand in for. ``containers`` is asked when an
    image needs one. ``environment`` is all that executables and the container runtime see of one. ``remedies``
    tell, in the error for an image that nothing here runs, how to configure what is missing.

    Raises:
        ValueError: the prefix is none, or an executable's path is not absolute.
    """
    runners: list[FunctionRunner] = [BuiltinRunner(prefixes={*PREFIXES, checked_prefix(image_prefix)})]
    if executables:
        from krm.functions.executables import ExecutableRunner

        runners.append(ExecutableRunner(executables, environment=environment or {}))
    if containers:
        runners.append(LateRunner(lambda: _container_runner(containers(), environment or {})))
    missing = [] if executables else [NO_EXECUTABLES]
    missing += [] if containers else [NO_CONTAINERS]
    return RunnerChain(runners, remedies=[*missing, *remedies])


def _container_runner(options: "ContainerOptions", environment: Mapping[str, str]) -> FunctionRunner:
    from krm.functions.containers import ContainerRunner

    return ContainerRunner(options, environment=environment)
