"""The runners that one process uses, composed the same way for the command line and for the server.

Built-in functions first, then executables of an allow-list, then a container runtime if there is one. Source:
``decisions.md`` 12.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from krm.functions.builtin import Builtin
from krm.functions.builtins import BUILTINS, PREFIXES, BuiltinRunner, builtins_with
from krm.functions.images import DEFAULT_PREFIX, checked_prefix
from krm.functions.runner import FunctionRunner
from krm.functions.runner_chain import LateRunner, RunnerChain

if TYPE_CHECKING:
    from pathlib import Path

    # subprocess and what else these need is loaded when they are used
    from krm.functions.external.containers import ContainerOptions
    from krm.functions.external.executables import Executable

NO_EXECUTABLES = "no executable is allowed to stand in for it"
NO_CONTAINERS = "no container runtime is configured"


def function_runner(
    *,
    image_prefix: str = DEFAULT_PREFIX,
    executables: Sequence["Executable"] = (),
    containers: "Callable[[], ContainerOptions] | None" = None,
    environment: Mapping[str, str] | None = None,
    remedies: Sequence[str] = (),
    schema_directory: "Path | None" = None,
) -> FunctionRunner:
    """Return what runs functions by image.

    ``image_prefix`` is another registry whose images the built-ins stand in for. ``containers`` is asked when an
    image needs one. ``environment`` is all that executables and the container runtime see of one. ``remedies``
    tell, in the error for an image that nothing here runs, how to configure what is missing. ``schema_directory``
    holds the OpenAPI documents that configurations of kubeconform may name.

    Raises:
        ValueError: the prefix is none, or an executable's path is not absolute.
    """
    prefixes = {*PREFIXES, checked_prefix(image_prefix)}
    runners: list[FunctionRunner] = [BuiltinRunner(prefixes=prefixes, functions=_functions(schema_directory))]
    if executables:
        from krm.functions.external.executables import ExecutableRunner

        runners.append(ExecutableRunner(executables, environment=environment or {}))
    if containers:
        runners.append(LateRunner(lambda: _container_runner(containers(), environment or {})))
    missing = [] if executables else [NO_EXECUTABLES]
    missing += [] if containers else [NO_CONTAINERS]
    return RunnerChain(runners, remedies=[*missing, *remedies])


def _functions(schema_directory: "Path | None") -> Mapping[str, Builtin]:
    if schema_directory is None:
        return BUILTINS
    from krm.functions.catalog.kubeconform import kubeconform

    return builtins_with({name: kubeconform(schema_directory, name=name) for name in ("kubeconform", "kubeval")})


def _container_runner(options: "ContainerOptions", environment: Mapping[str, str]) -> FunctionRunner:
    from krm.functions.external.containers import ContainerRunner

    return ContainerRunner(options, environment=environment)
