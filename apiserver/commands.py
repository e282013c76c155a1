"""The commands that start a server, or show what one does.

They choose a composition root, give it the settings, and turn expected failures into one sentence and an exit code.
"""

import asyncio
import datetime as dt
import functools
import os
import shlex
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from pydantic import ValidationError
from pydantic_settings import SettingsError

from apiserver import serving
from apiserver.auth.audit_log import AuditLogUnusable
from apiserver.auth.certificates import Files, UnusableCertificate
from apiserver.auth.issuing import NotIssued, user_kubeconfig
from apiserver.auth.signing_keys import UnusableKey
from apiserver.auth.watched_file import UnusableFile
from apiserver.cluster.answers import ClusterUnusable
from apiserver.logs import configure_logging
from apiserver.settings import PREFIX, Authorization, PushDrafts, Settings
from storage.interfaces import StoreUnavailable

EXIT_DIFFERENT = 1
"""What was compared differs."""
EXIT_USAGE = 2
EXIT_REFUSED = 3
"""The server did not start, for a reason that the message names."""

_EXPECTED = (
    serving.CannotListen,
    UnusableCertificate,
    UnusableFile,
    UnusableKey,
    AuditLogUnusable,
    ClusterUnusable,
    StoreUnavailable,
)
"""Why a server may not start, each with a message that says what to do."""

cli = typer.Typer(
    name="porch",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Package orchestration over Git, with the Kubernetes API of porch.kpt.dev.",
)

Data = Annotated[Path | None, typer.Option(help="Directory for everything the server keeps.", file_okay=False)]
DatabaseUrl = Annotated[str | None, typer.Option(help="postgresql://…; default: SQLite under --data.")]
Port = Annotated[int | None, typer.Option(help="TCP port of the HTTPS API; 0 takes a free one.")]


@cli.command()
def serve(
    *,
    data: Data = None,
    port: Port = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    push_drafts: Annotated[PushDrafts | None, typer.Option(help="When drafts go to the remote.")] = None,
    sync_interval: Annotated[float | None, typer.Option(help="Seconds between two looks at a remote.")] = None,
    database_url: DatabaseUrl = None,
    authorization: Annotated[Authorization | None, typer.Option(help="What known users may do.")] = None,
    anonymous_auth: Annotated[bool | None, typer.Option(help="Let in requests without credentials.")] = None,
    audit_log: Annotated[Path | None, typer.Option(help="File that records who asked for what.")] = None,
    token_file: Annotated[Path | None, typer.Option(help='Bearer tokens: lines of token,user,uid,"groups".')] = None,
    metrics_port: Annotated[
        int | None, typer.Option(help="TCP port for /metrics over plain HTTP; default: none.")
    ] = None,
    controllers: Annotated[bool | None, typer.Option(help="Run the controllers as a child process.")] = None,
    aggregated: Annotated[
        bool | None, typer.Option("--aggregated", help="Serve behind a cluster's kube-apiserver.")
    ] = None,
    kubeconfig: Annotated[Path | None, typer.Option(help="Of that cluster; default: the pod's account.")] = None,
    log_level: Annotated[str | None, typer.Option(help="debug, info, warning or error.")] = None,
) -> None:
    """Run a server until Ctrl-C: a standalone one, no cluster needed, or one of a cluster (--aggregated).

    Every other setting is an environment variable: see docs/reference/settings.md.
    """
    settings = _settings(
        data=data,
        port=port,
        host=host,
        push_drafts=push_drafts,
        sync_interval=sync_interval,
        database_url=database_url,
        authorization=authorization,
        anonymous_auth=anonymous_auth,
        token_file=token_file,
        audit_log=audit_log,
        metrics_port=metrics_port,
        controllers=controllers,
        aggregated=aggregated,
        kubeconfig=kubeconfig,
        log_level=log_level,
    )
    server = _composed(settings)
    configure_logging(settings.log_level, settings.log_format)  # only what serves takes over the process's logging
    try:
        serving.run(server)
    except _EXPECTED as error:
        _refuse(str(error), EXIT_REFUSED)


def _composed(settings: Settings) -> Callable[[], Coroutine[Any, Any, None]]:
    """Return the server of the composition root that the settings choose."""
    # SQLAlchemy, dulwich and the rest take a second to import, which `porch --help` need not pay.
    if not settings.aggregated:
        from apiserver import standalone

        return functools.partial(standalone.serve, settings, announce=announce(settings))
    from apiserver import aggregated

    if settings.controllers:
        _refuse("--controllers is for a standalone server; in a cluster run porch controllers beside it", EXIT_USAGE)
    if settings.token_file:
        _refuse("--token-file is for a standalone server; in a cluster its kube-apiserver knows the tokens", EXIT_USAGE)
    if bool(settings.tls_cert_file) != bool(settings.tls_private_key_file):
        _refuse("PORCH_TLS_CERT_FILE and PORCH_TLS_PRIVATE_KEY_FILE belong together; set both or none", EXIT_USAGE)
    if settings.tls_secret and settings.tls_cert_file:
        _refuse("PORCH_TLS_SECRET and PORCH_TLS_CERT_FILE are two sources of one certificate; set one", EXIT_USAGE)
    return functools.partial(aggregated.serve, settings, announce=announce_in_cluster(settings))


@cli.command()
def demo(data: Data = None, port: Port = None) -> None:
    """Tell the life of a package with kubectl and git, each command with its output.

    Uses the server of --data (or of KUBECONFIG) when one runs, else starts one of its own and stops it again.
    """
    from apiserver.demo import run  # the demo is no part of a serving process

    sys.exit(run(data, port))


@cli.command()
def issue(
    user: Annotated[str, typer.Argument(help="Name of the user.")],
    *,
    group: Annotated[list[str] | None, typer.Option(help="Group of the user; may be repeated.")] = None,
    days: Annotated[int, typer.Option(min=1, max=3650, help="Days until the certificate ends.")] = 365,
    data: Data = None,
) -> None:
    """Print a kubeconfig for another user of a standalone server, with a client certificate made for it.

    What the user may do is what roles allow that are bound to its name or groups: kubectl create clusterrolebinding.
    """
    try:
        typer.echo(user_kubeconfig(_settings(data=data).data, user, group or (), dt.timedelta(days=days)), nl=False)
    except NotIssued as error:
        _refuse(str(error), EXIT_REFUSED)


@cli.command()
def rebuild(
    *,
    check: Annotated[bool, typer.Option("--check", help="Only compare, and change nothing.")] = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Compare the database with Git (--check), or have the server read all of Git again.

    --check may run beside the server; it ends with 1 when something differs, and with 3 when a remote cannot be read. Without
    it, the server must be stopped: its next start reads everything and repairs what differs. A running server does that
    for one repository with: kubectl annotate repository NAME porch.kpt.dev/sync=now
    """
    from apiserver import rebuild as rebuilding

    settings = _settings(data=data, database_url=database_url)
    try:
        if not check:
            number = rebuilding.read_again(settings)
            typer.echo(f"The next start reads {number} repositories from Git in full.")
            return
        report = asyncio.run(rebuilding.check(settings, typer.echo))
    except StoreUnavailable as error:
        _refuse(str(error), EXIT_REFUSED)
    if report.mismatches:
        raise typer.Exit(EXIT_DIFFERENT)
    if report.unread:
        raise typer.Exit(EXIT_REFUSED)


@cli.command()
def backup(
    folder: Annotated[Path, typer.Argument(help="Directory to write to; made when missing.")],
    *,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Copy the database, the keys and the certificates of a server that may be running.

    A PostgreSQL database is left to pg_dump or continuous archiving: docs/how-to/back-up-and-restore.md.
    """
    from apiserver import backups

    settings = _settings(data=data, database_url=database_url)
    try:
        copied = backups.back_up(settings, folder)
    except backups.EXPECTED as error:
        _refuse(str(error), EXIT_REFUSED)
    typer.echo(f"{len(copied)} files in {folder}: {', '.join(copied)}")
    if backups.on_postgres(settings):
        typer.echo("The database is PostgreSQL's to copy: pg_dump, or continuous archiving.")


@cli.command()
def restore(
    folder: Annotated[Path | None, typer.Argument(help="Directory that porch backup wrote.")] = None,
    *,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Put a backup in the place of what the data directory holds; the servers must be stopped.

    What was published or pushed after the backup comes back from Git at the next start. A PostgreSQL database is put back by its own
    means first; then this makes it ready, and a folder is needed only where the keys are lost, too.
    """
    from apiserver import backups

    settings = _settings(data=data, database_url=database_url)
    try:
        restored = backups.restore(settings, folder)
    except backups.EXPECTED as error:
        _refuse(str(error), EXIT_REFUSED)
    typer.echo(f"{len(restored)} files restored: {', '.join(restored)}" if restored else "No files restored.")
    if backups.on_postgres(settings):
        typer.echo("The database is ready: watches begin anew, and the next start reads all of Git.")


@cli.command()
def adopt(
    *,
    from_folder: Annotated[
        Path | None, typer.Option("--from", help="Folder with what kubectl get -o yaml printed of the old server.")
    ] = None,
    from_kubeconfig: Annotated[Path | None, typer.Option(help="Kubeconfig of the old server.")] = None,
    from_cluster: Annotated[
        bool, typer.Option("--from-cluster", help="The old server is in the cluster in which this runs, as a Pod.")
    ] = False,
    namespace: Annotated[list[str] | None, typer.Option(help="Only this namespace; may be repeated.")] = None,
    write: Annotated[bool, typer.Option("--apply", help="Take it over; without it, only the plan is shown.")] = False,
    partly: Annotated[bool, typer.Option("--partly", help="Take over what can be, in spite of problems.")] = False,
    only_revisions: Annotated[
        bool, typer.Option("--only-revisions", help="Repositories, Secrets and owners stay in the cluster.")
    ] = False,
    drop_missing_owners: Annotated[
        bool, typer.Option("--drop-missing-owners", help="Take off references to owners that are nowhere.")
    ] = False,
    from_records: Annotated[
        bool, typer.Option("--from-records", help="Read PackageRevs: the old server answers no more.")
    ] = False,
    rewrite_address: Annotated[
        list[str] | None, typer.Option(help="OLD=NEW: repositories whose address begins with OLD are at NEW here.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show every line of long lists.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document with everything, for programs.")
    ] = False,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Take over what another Porch server keeps: names, UIDs, metadata, owners, lifecycles and drafts. See the guide
    docs/how-to/move-from-upstream.md.

    Nothing is changed without --apply, and with it only here, never at the old server. Ends with 1 when something cannot be taken
    over, with 3 when nothing could be read or written.
    """
    from apiserver.adoption import adopt as adoption
    from apiserver.adoption.planner import Wishes

    if sum((from_folder is not None, from_kubeconfig is not None, from_cluster)) != 1:
        _refuse("name the old server by --from FOLDER, by --from-kubeconfig FILE or by --from-cluster", EXIT_USAGE)
    settings = _settings(data=data, database_url=database_url)
    addresses = dict(one.partition("=")[::2] for one in rewrite_address or ())
    if not all(addresses.values()):
        _refuse("--rewrite-address takes OLD=NEW", EXIT_USAGE)
    origin = adoption.Origin(from_folder, from_kubeconfig, frozenset(namespace or ()), from_records)
    wishes = Wishes(only_revisions, drop_missing_owners, addresses)
    work = adoption.adopt(settings, origin, wishes, typer.echo, adoption.How(write, partly, everything, as_json))
    try:
        done = asyncio.run(work)
    except adoption.EXPECTED as error:
        _refuse(str(error), EXIT_REFUSED)
    if done.problems:
        raise typer.Exit(EXIT_REFUSED if write and not done.written else EXIT_DIFFERENT)


migrate = typer.Typer(no_args_is_help=True, help="Look at the schema of a database, or take it to another one.")
cli.add_typer(migrate, name="migrate")


@migrate.command("status")
def migrate_status(*, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Say which schema the database is at. Ends with 1 when it is not that of this version."""
    from apiserver import schema_versions

    try:
        now = schema_versions.standing(_settings(data=data, database_url=database_url))
    except schema_versions.EXPECTED as error:
        _refuse(str(error), EXIT_REFUSED)
    typer.echo(schema_versions.described(now))
    for name, purpose in now.pending:
        typer.echo(f"  {name}  {purpose}")
    if now.pending or now.foreign:
        raise typer.Exit(EXIT_DIFFERENT)


@migrate.command("up")
def migrate_up(*, data: Data = None, database_url: DatabaseUrl = None) -> None:
    """Take the database to this version's schema, as a server does when it starts.

    Servers of the version before go on meanwhile on PostgreSQL; a server on a SQLite file has to be stopped.
    """
    from apiserver import schema_versions

    try:
        now = schema_versions.take_up(_settings(data=data, database_url=database_url))
    except schema_versions.EXPECTED as error:
        _refuse(str(error), EXIT_REFUSED)
    typer.echo(schema_versions.described(now))


@migrate.command("down")
def migrate_down(
    to: Annotated[str, typer.Option("--to", help="The schema of the older version, as its porch migrate status says.")],
    *,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Undo migrations, for an older version of Porch. Servers of this version must be stopped; make a backup first."""
    from apiserver import schema_versions

    try:
        now = schema_versions.take_down(_settings(data=data, database_url=database_url), to)
    except schema_versions.EXPECTED as error:
        _refuse(str(error), EXIT_REFUSED)
    typer.echo(schema_versions.described(now))


def announce(settings: Settings) -> serving.Announce:
    """Return what prints, once the server answers, where it is and what to type next."""

    def say(port: int, files: Files) -> None:
        shown = f"[{settings.host}]" if ":" in settings.host else settings.host
        typer.echo(
            f"Porch serves https://{shown}:{port}\n"
            f"Kubeconfig: {files.kubeconfig}\n"
            f"Type next:\n"
            f"  export KUBECONFIG={shlex.quote(os.fspath(files.kubeconfig))}\n"
            f"  kubectl get packagerevisions -A\n"
            f"Ctrl-C stops."
        )
        sys.stdout.flush()

    return say


def announce_in_cluster(settings: Settings) -> Callable[[int, Path], None]:
    """Return what prints where a server of a cluster is, and which certificate an APIService has to trust."""

    def say(port: int, certificate: Path) -> None:
        typer.echo(
            f"Porch serves porch.kpt.dev for its cluster at {settings.host}:{port}, trusted by {certificate}\nCtrl-C stops."
        )
        sys.stdout.flush()

    return say


def _settings(**given: Any) -> Settings:
    """Put the command line's values over the environment's."""
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        problems = (f"{_option(problem['loc'])}: {problem['msg']}" for problem in error.errors())
        _refuse("; ".join(problems), EXIT_USAGE)
    except SettingsError as error:
        _refuse(f"{error}: it must be JSON, see docs/reference/settings.md", EXIT_USAGE)


def _option(location: tuple[int | str, ...]) -> str:
    name = ".".join(str(part) for part in location)
    if name.isupper():
        return name  # one of OpenTelemetry's variables
    return f"--{name.replace('_', '-')} (or {PREFIX}{name.upper()})"


def _refuse(message: str, code: int) -> NoReturn:
    typer.echo(f"porch: {message}", err=True)
    raise typer.Exit(code)
