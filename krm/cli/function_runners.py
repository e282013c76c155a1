"""What runs functions for a local command, from its options and the environment. Source: ``kpt.md`` 2.14 and 2.15."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from krm.cli.failures import CommandFailed
from krm.functions.images import DEFAULT_PREFIX, checked_prefix
from krm.functions.runner import CommandRunner, FunctionRunner
from krm.functions.toolchain import function_runner

if TYPE_CHECKING:  # loaded when containers or executables are used
    from krm.functions.external.containers import ContainerOptions
    from krm.functions.external.executables import Executable

_RUNTIME_VARIABLE = "KRM_FN_RUNTIME"
_PREFIX_VARIABLE = "KPT_IMAGE_PREFIX"
_DEFAULT_RUNTIME = "docker"
_REMEDY = f"install docker, or set {_RUNTIME_VARIABLE} to docker, podman or nerdctl, or allow one with --executable"


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """The options that several commands share."""

    image_prefix: str = ""
    """Empty: from the environment, else the catalog's."""
    executables: tuple[str, ...] = ()
    """``IMAGE=PROGRAM`` each."""
    allow_network: bool = False
    image_pull_policy: str = "IfNotPresent"
    mounts: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    as_current_user: bool = False
    schema_directory: Path | None = None
    """Folder of the OpenAPI documents that configurations of kubeconform may name."""


def prefix_of(options: RunnerOptions) -> str:
    """Return what goes before short image names.

    Raises:
        CommandFailed: it cannot.
    """
    try:
        return checked_prefix(options.image_prefix or os.environ.get(_PREFIX_VARIABLE) or DEFAULT_PREFIX)
    except ValueError as error:
        raise CommandFailed(str(error)) from None


def runner_of(options: RunnerOptions) -> FunctionRunner:
    """Return what runs functions by image.

    Raises:
        CommandFailed: an option or the environment names what does not exist.
    """
    return function_runner(
        image_prefix=prefix_of(options),
        executables=_executables(options.executables),
        containers=partial(_containers, options) if _has_container_runtime() else None,
        environment=os.environ,
        remedies=[_REMEDY],
        schema_directory=options.schema_directory,
    )


def command_runner() -> CommandRunner:
    """Return what runs commands of this machine."""
    from krm.functions.external.executables import ExecRunner

    return ExecRunner(environment=os.environ)


def _executables(given: Sequence[str]) -> "list[Executable]":
    if not given:
        return []
    from krm.functions.external.executables import Executable

    allowed = []
    for text in given:
        image, _, program = text.partition("=")
        found = shutil.which(program) if program else None
        if not image or found is None:
            raise CommandFailed(f'--executable "{text}" must be IMAGE=PROGRAM with a program that can be executed')
        allowed.append(Executable(image, Path(found).resolve()))
    return allowed


def _has_container_runtime() -> bool:
    return bool(os.environ.get(_RUNTIME_VARIABLE)) or shutil.which(_DEFAULT_RUNTIME) is not None


def _containers(options: RunnerOptions) -> "ContainerOptions":
    from krm.functions.external.containers import ContainerOptions, ContainerRuntime, InvalidMount, Mount, PullPolicy

    name = os.environ.get(_RUNTIME_VARIABLE) or _DEFAULT_RUNTIME
    if name not in list(ContainerRuntime):
        raise CommandFailed(f'{_RUNTIME_VARIABLE}="{name}" must be one of {", ".join(ContainerRuntime)}')
    try:
        mounts = tuple(map(Mount.parse, options.mounts))
    except InvalidMount as error:
        raise CommandFailed(str(error)) from None
    return ContainerOptions(
        runtime=ContainerRuntime(name),
        allow_network=options.allow_network,
        pull=PullPolicy(options.image_pull_policy),
        user=f"{os.getuid()}:{os.getgid()}" if options.as_current_user else "nobody",
        mounts=mounts,
        variables=options.variables,
    )
