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
        click.option("--schemas", type=_FOLDER, metavar="DIR",
                     help="Folder of the OpenAPI documents that configurations of kubeconform may name."),
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
                    schema_directory=given["schemas"],
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


class _WithArguments(click.Command):
    """Keeps what stands behind ``--`` apart from the command's own arguments."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            place = args.index("--")
            ctx.meta[_ARGUMENTS] = tuple(args[place + 1 :])
            args = args[:place]
        return super().parse_args(ctx, args)


_ARGUMENTS = "krm.cli.fn.arguments"
_SELECTED = ("api-version", "kind", "name", "namespace")


def _selector_options(command: _Command) -> _Command:
    """Add ``--match-*`` and ``--exclude-*``: one selector each."""
    for what, purpose in (("exclude", "Leave out"), ("match", "Choose")):
        for field in ("annotations", "labels"):
            command = click.option(
                f"--{what}-{field}", multiple=True, metavar="NAME=VALUE", help=f"{purpose} resources by {field}."
            )(command)
        for field in reversed(_SELECTED):
            command = click.option(f"--{what}-{field}", default="", help=f"{purpose} resources by {field}.")(command)
    return command


@cli.command(cls=_WithArguments, name="eval", options_metavar="[OPTIONS]", epilog="Behind --: [KIND] NAME=VALUE ...")
@click.argument("folder", metavar="[DIR|-]", default=".")
@click.option("-i", "--image", default="", help="The function's image.")
@click.option("--exec", "command", default="", metavar="COMMAND", help="A program of this machine as the function.")
@click.option("--tag", default="", help="Tag or version range, over the image's own.")
@click.option("--fn-config", type=_FOLDER, metavar="FILE", help="The function's configuration.")
@_selector_options
@click.option("-s", "--save", is_flag=True, help="Save the function in the Kptfile when it succeeded.")
@click.option(
    "-t",
    "--type",
    "kind",
    type=click.Choice(["mutator", "validator"]),
    default="mutator",
    show_default=True,
    help="What it is saved as.",
)
@_output_options
@_runner_options
@click.option("-e", "--env", "variables", multiple=True, metavar="NAME[=VALUE]", help="For containers.")
@click.option(
    "--mount", "mounts", multiple=True, metavar="type=TYPE,src=SOURCE,dst=TARGET[,rw=true]", help="For containers."
)
@click.option("--network", is_flag=True, help="Let containers use the network of this machine.")
@click.option("--as-current-user", is_flag=True, help="Run containers as this user instead of nobody.")
@click.pass_context
def evaluate(context: click.Context, /, folder: str, **given: Any) -> None:
    """Run one function on the resources of a folder or of standard input."""
    from krm.cli.failures import reported_failures

    with reported_failures():
        from krm.cli.fn_eval import EvalOptions, run, selector
        from krm.cli.function_runners import RunnerOptions

        match, exclude = (
            selector(
                {name.replace("-", "_"): given[f"{what}_{name.replace('-', '_')}"] for name in _SELECTED},
                given[f"{what}_labels"],
                given[f"{what}_annotations"],
            )
            for what in ("match", "exclude")
        )
        run(
            EvalOptions(
                folder,
                image=given["image"],
                exec=given["command"],
                tag=given["tag"],
                config=given["fn_config"],
                arguments=context.meta.get(_ARGUMENTS, ()),
                match=match,
                exclude=exclude,
                save_as=given["kind"] if given["save"] else "",
                output=given["output"],
                results=given["results_dir"],
                truncate=given["truncate_output"],
                runners=RunnerOptions(
                    image_prefix=given["image_prefix"],
                    executables=given["executables"],
                    allow_network=given["network"],
                    image_pull_policy=given["image_pull_policy"],
                    schema_directory=given["schemas"],
                    mounts=given["mounts"],
                    variables=given["variables"],
                    as_current_user=given["as_current_user"],
                ),
            )
        )
