"""``porch doctor``: what is wrong with a server and what is on it, and what to do about it.

What the server tells is asked through a kubeconfig, as the caller (``krm.cli.doctor``); on the server's own machine its data
directory and its database are looked at, too. Nothing is changed. Source: issue 9, part 6.
"""

import asyncio
import datetime as dt
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import click
from pydantic import ValidationError
from pydantic_settings import SettingsError

from apiserver.settings import Settings
from krm.cli.cluster import usual_kubeconfig
from krm.cli.doctor.finding import Diagnosis
from krm.cli.doctor.looking import examine_server
from krm.cli.doctor.printing import document, exit_code, lines
from krm.cli.failures import CommandFailed
from krm.variants.durations import InvalidDuration, read_duration

EXIT_USAGE: Final = 2


def _duration(_context: click.Context, _option: click.Parameter, written: str) -> dt.timedelta:
    try:
        return read_duration(written)
    except InvalidDuration as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File that names the server; default: as kubectl finds it, else that of --data.",
)
@click.option("-n", "--namespace", default="", help="Look at this namespace only; default: all that you may see.")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    help="A line a finding, or JSON for programs.",
)
@click.option(
    "--gates",
    "patience",
    callback=_duration,
    default="1h",
    help="How long a readiness gate of a draft may wait before it is told.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    help="Data directory of a server on this machine, to be looked at, too.",
)
@click.option("--database-url", default="", help="postgresql://… of that server; default: SQLite under --data.")
@click.option(
    "--server-account",
    "account",
    default="",
    help="As whom the server runs in a cluster, such as system:serviceaccount:porch-system:porch-server; default: as its Pods do.",
)
@click.option("--host-only", is_flag=True, help="Ask no server: look at --data and the database only.")
def cli(
    *,
    kubeconfig: Path | None,
    namespace: str,
    output: str,
    patience: dt.timedelta,
    data: Path | None,
    database_url: str,
    account: str,
    host_only: bool,
) -> None:
    """Tell what is wrong and what to do: the worst first, a line each, with what would put it right.

    A server of this machine (--data, --database-url, or PORCH_DATA and PORCH_DATABASE_URL) is looked at from inside, too. Ends
    with 0 when nothing is wrong, with 1 when something is, and with 2 when something could not be looked at.
    """
    settings = _settings({"data": data, "database_url": database_url or None})
    diagnosis = Diagnosis()
    asked_for_host = data is not None or bool(settings.database_url) or host_only
    if asked_for_host or _keeps_something(settings.data):
        from apiserver.host_findings import examine_host  # loads what reads databases, half a second

        asyncio.run(examine_host(settings, diagnosis))
    if not host_only:
        file = _kubeconfig(kubeconfig, settings, diagnosis)
        if file is not None:
            asyncio.run(examine_server(file, namespace, patience, diagnosis, definitions=_definitions, account=account))
    for line in lines(diagnosis) if output == "text" else [document(diagnosis)]:
        click.echo(line)
    sys.exit(exit_code(diagnosis))


def _keeps_something(data: Path) -> bool:
    try:
        return (data / "porch.db").is_file()
    except OSError:  # it is not ours to look into
        return False


def _kubeconfig(given: Path | None, settings: Settings, diagnosis: Diagnosis) -> Path | None:
    """Return the kubeconfig of the server to be asked; of a machine with a server and no other kubeconfig that one's."""
    own = settings.data / "kubeconfig"
    try:
        return given or usual_kubeconfig()
    except CommandFailed as error:
        if not own.is_file():
            diagnosis.cannot_look(f"the server: {error}")
            return None
        return own


def _definitions() -> Iterable[dict[str, Any]]:
    from apiserver.resources.custom.own import own_definitions  # half a second, for clusters alone

    return own_definitions().values()


def _settings(given: dict[str, Any]) -> Settings:
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except (ValidationError, SettingsError) as error:
        click.echo(f"porch doctor: {error}", err=True)
        sys.exit(EXIT_USAGE)


if __name__ == "__main__":
    cli()
