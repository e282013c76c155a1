"""The ``porch`` command.

Loads only what the command line names: those who render a package on a laptop need not wait for the server's
libraries to be imported.
"""

import os
import signal
import sys
from importlib import import_module
from typing import Any

import click

_SERVER = "apiserver.commands:cli"
_CONTROLLERS = "controllers"
"""A program of its own, which takes this process's place."""
_COMMANDS = {
    "serve": (_SERVER, "Run a standalone server, no cluster needed, until Ctrl-C."),
    "issue": (_SERVER, "Print a kubeconfig for another user of a standalone server."),
    "backup": (_SERVER, "Copy what a standalone server keeps, while it runs."),
    "restore": (_SERVER, "Put such a copy in place."),
    "adopt": (_SERVER, "Take over what another Porch server keeps."),
    "doctor": ("apiserver.doctor:cli", "Tell what is wrong with a server and what is on it, and what to do."),
    "migrate": (_SERVER, "Look at the schema of a database, or take it to another one."),
    "rebuild": (_SERVER, "Compare the database with Git, or have all of Git read again."),
    "controllers": (_CONTROLLERS, "Keep PackageVariants true, as a client of an API server, until Ctrl-C."),
    "demo": (_SERVER, "Tell the life of a package with kubectl and git."),
    "fn": ("krm.cli.fn:cli", "Run functions on packages in local folders."),
    "pkg": ("krm.cli.pkg:cli", "Start, compare, update and merge packages in local folders."),
    "variants": (
        "krm.cli.variants:cli",
        "Look at the drafts of PackageVariants, and at what sets of them would do before they do it.",
    ),
}
"""Name → the object (``module:name``) that has the command, or is the group, and what it does."""
_ANYTHING = {"ignore_unknown_options": True, "allow_interspersed_args": False}


class _Porch(click.Group):
    """Hands the rest of the command line to the module that knows it."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        place, purpose = _COMMANDS[cmd_name]
        return click.Command(
            cmd_name,
            callback=lambda rest: _forward(place, cmd_name, rest),
            params=[click.Argument(["rest"], nargs=-1, type=click.UNPROCESSED)],
            help=purpose,
            add_help_option=False,
            context_settings=_ANYTHING,
        )


def _forward(place: str, name: str, rest: tuple[str, ...]) -> Any:
    if place == _CONTROLLERS:
        os.execv(sys.executable, [sys.executable, "-I", "-m", "controllers", *rest])  # noqa: S606 # no shell is wanted
    module, _, attribute = place.partition(":")
    command: Any = getattr(import_module(module), attribute)
    if place == _SERVER:
        if name != "serve":  # which says itself what it logs, and how
            import_module("krm.logs").configure_logging("warning", "console")
        return command(args=[name, *rest], prog_name="porch")
    # Leaving in order ends the functions that run as processes and containers; dying would leave them behind.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    return command(args=list(rest), prog_name=f"porch {name}")


@click.group(cls=_Porch)
def main() -> None:
    """Package orchestration over Git, with the Kubernetes API of porch.kpt.dev."""


if __name__ == "__main__":
    main()
