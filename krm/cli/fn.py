"""``porch fn``: run functions on packages in local folders.

The options of the commands; what they do is imported when one runs. Exit codes: 0 done, 1 failed, 2 wrong
usage. Source: ``kpt.md`` 2.10 and 2.16.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])

_PULL_POLICIES = ("IfNotPresent", "Always", "Never")
_FOLDER = click.Path(path_type=Path)


@click.group()
def cli() -> None:
    """Run functions on packages in local folders."""


def _runner_options(command: _Command) -> _Command:
    """Add the options that say what runs functions."""
    for option in (
        click.option("--executable", "executables", multiple=True, metavar="IMAGE=PROGRAM",
                     help="A program that stands in for the images of a pattern; may be repeated."),
        click.option("--image-pull-policy", type=click.Choice(_PULL_POLICIES, case_sensitive=False),
                     default=_PULL_POLICIES[0], show_default=True, help="When a container runtime pulls images."),
        click.option("--image-prefix", default="", metavar="PREFIX",
                     help="Goes before image names without a slash; default: KPT_IMAGE_PREFIX, else the catalog's."),
    ):  # fmt: skip
        command = option(command)
    return command


def _output_options(command: _Command) -> _Command:
    """Add the options that say where the outcome goes, and how much is told of it."""
    for option in (
        click.option("--truncate-output", type=bool, default=True, show_default=True,
                     help="Whether long results and error outputs are shown in part."),
        click.option("--results-dir", type=_FOLDER, metavar="DIR", help="Folder for results.yaml."),
        click.option("-o", "--output", default="", metavar="DIR|stdout|unwrap",
                     help="A new folder, a ResourceList or bare resources, instead of in place."),
    ):  # fmt: skip
        command = option(command)
    return command


@cli.command()
@click.argument("folder", metavar="[DIR]", type=_FOLDER, default=".")
@_output_options
@_runner_options
@click.option("--allow-network", is_flag=True, help="Let containers use the network of this machine.")
@click.option("--allow-exec", is_flag=True, help="Let the pipelines run programs of this machine.")
def render(folder: Path, *, allow_exec: bool, allow_network: bool, **given: Any) -> None:
    """Run the pipelines of a package and its subpackages."""
    from krm.cli.failures import reported_failures

    with reported_failures():
        from krm.cli.fn_render import RenderOptions, run
        from krm.cli.function_runners import RunnerOptions

        run(
            RenderOptions(
                folder,
                given["output"],
                given["results_dir"],
                allow_exec,
                given["truncate_output"],
                RunnerOptions(
                    image_prefix=given["image_prefix"],
                    executables=given["executables"],
                    allow_network=allow_network,
                    image_pull_policy=given["image_pull_policy"],
                ),
            )
        )


@cli.command()
@click.argument("folder", metavar="[DIR]", type=_FOLDER, default=".")
@click.option("-o", "--output", type=click.Choice(["stdout", "unwrap"]), default="stdout", show_default=True)
def source(folder: Path, output: str) -> None:
    """Print the resources of a folder as a ResourceList."""
    from krm.cli.failures import reported_failures

    with reported_failures():
        from krm.cli.fn_streams import source as run

        run(folder, output)


@cli.command()
@click.argument("folder", metavar="DIR")
def sink(folder: str) -> None:
    """Write the ResourceList on standard input to a new folder."""
    from krm.cli.failures import reported_failures

    with reported_failures():
        from krm.cli.fn_streams import sink as run

        run(folder)
