"""``porch variants preview`` and ``convert``: what a set would do, and sets of the version that nobody serves any more.

Exit codes of ``preview``: 0 nothing is wrong, 1 it could not be found out, 2 a target has an error or the set would be stalled, 3
(with ``--exit-code``) there is something to write. Of ``convert``: 0 done, 1 not everything could be converted.
Source: ``variants.md`` 1.7 and 6.1.
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from krm.cli.failures import EXIT_FAILED, CommandFailed, reported_failures

if TYPE_CHECKING:
    from krm.variants.sets.guards import GuardDefaults

Json = dict[str, Any]

_File = click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path)
_STDIN = Path("-")
_API_VERSION, _KIND = "porch.kpt.dev/v1alpha1", "PackageVariantSetPreview"


class _WrongUsage(click.UsageError):
    exit_code = EXIT_FAILED


class _UsageFails(click.Command):
    """Ends with 1 where the command line is wrong: 2 says that targets have errors."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            raise _WrongUsage(error.format_message(), ctx) from error


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the command line asks for."""

    sets: Sequence[Json]
    """PackageVariantSets of files; with only a name, those that are stored."""
    namespace: str
    guards: Json
    identity: bool


@click.command(cls=_UsageFails)
@click.argument("name", required=False)
@click.option("-f", "--filename", type=_File, help="File with one or several PackageVariantSets; - is standard input.")
@click.option("--against-cluster", is_flag=True, help="Ask the server of the kubeconfig; the default.")
@click.option(
    "--objects",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of YAML or JSON files with the objects of the namespace, in place of a server.",
)
@click.option("-n", "--namespace", default="", help="Namespace; default: that of the set, else the context's.")
@click.option("--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), help="File that names the server.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
@click.option("--exit-code", "tell_changes", is_flag=True, help="End with 3 if there is something to write.")
@click.option("--max-deletions", default="", help="The controllers' setting for sets without this guard.")
@click.option(
    "--on-empty-selection",
    type=click.Choice(["Delete", "Keep"]),
    help="The controllers' setting for sets without this guard.",
)
@click.option("--upstream-identity", is_flag=True, help="The controllers' setting of this name is on.")
def preview(
    name: str | None,
    filename: Path | None,
    against_cluster: bool,
    objects: Path | None,
    namespace: str,
    kubeconfig: Path | None,
    output: str,
    tell_changes: bool,
    max_deletions: str,
    on_empty_selection: str | None,
    upstream_identity: bool,
) -> None:
    """Print what the set NAME, or the sets of a file, would do. Nothing is written.

    Each target is shown with the PackageVariant that is made, changed or deleted for it, and whether the controller does that in
    its next pass. Exit code 2: a target has an error, or the set would be stalled.
    """
    from krm.cli.preview_output import exit_code

    with reported_failures():
        if (name is None) == (filename is None):
            raise CommandFailed("name a set, or a file with -f")
        if against_cluster and objects is not None:
            raise CommandFailed("--against-cluster and --objects exclude each other")
        guards = {"maxDeletions": max_deletions, "onEmptySelection": on_empty_selection}
        sets = [{"metadata": {"name": name}}] if filename is None else _sets_of(filename)
        asked = _Asked(sets, namespace, {key: value for key, value in guards.items() if value}, upstream_identity)
        if objects is not None:
            answers = asyncio.run(_offline(asked, objects))
        else:
            answers = asyncio.run(_online(asked, kubeconfig))
        _print(answers, output)
    sys.exit(exit_code([one["status"] for one in answers], tell_changes=tell_changes))


@click.command()
@click.option("-f", "--filename", type=_File, required=True, help="File with sets of v1alpha1; - is standard input.")
def convert(filename: Path) -> None:
    """Print the PackageVariantSets of v1alpha1 in a file as v1alpha2; other objects are printed as they are.

    What cannot be converted is left out and named on standard error; the exit code is then 1.
    """
    from krm.variants.sets.conversion import convert as converted
    from krm.variants.sets.conversion import is_old

    failed = False
    with reported_failures():
        made = []
        for body in _objects(filename):
            if not is_old(body):
                made.append(body)
                continue
            conversion = converted(body)
            made.append(conversion.body)
            for problem in conversion.problems:
                failed = True
                click.echo(f"{body['metadata']['name']}: {problem}", err=True)
        if not made:
            raise CommandFailed(f"{filename}: there are no objects")
        click.echo(_yaml(made), nl=False)
    sys.exit(EXIT_FAILED if failed else 0)


# --- what is asked ------------------------------------------------------------------------------------


def _objects(file: Path) -> list[Json]:
    from krm.cli.object_folder import objects_of, read_objects

    return objects_of(sys.stdin.buffer.read(), "standard input") if file == _STDIN else read_objects(file)


def _sets_of(file: Path) -> list[Json]:
    from krm.variants.sets.conversion import is_old
    from krm.variants.sets.vocabulary import API_VERSION, KIND

    objects = _objects(file)
    for body in objects:
        if is_old(body):
            raise CommandFailed(f"{file}: {body['metadata']['name']} is of v1alpha1; porch variants convert -f {file}")
    sets = [one for one in objects if (one["apiVersion"], one["kind"]) == (API_VERSION, KIND)]
    if not sets:
        raise CommandFailed(f"{file}: there is no {KIND} of {API_VERSION}")
    return sets


def _namespace_of(asked: _Asked, body: Json, default: str) -> str:
    written = body["metadata"].get("namespace") or ""
    if asked.namespace and written and written != asked.namespace:
        raise CommandFailed(f"{body['metadata']['name']} is of namespace {written}, not {asked.namespace}")
    return asked.namespace or written or default


# --- the answers --------------------------------------------------------------------------------------


async def _online(asked: _Asked, kubeconfig: Path | None) -> list[Json]:
    """Have a server answer, as the caller."""
    from krm.cli.cluster import cluster
    from krm.client.resources import PACKAGE_VARIANT_SET_PREVIEWS

    answers = []
    async with cluster(kubeconfig, asked.namespace) as (client, namespace):
        for body in asked.sets:
            spec: Json = {"name": body["metadata"]["name"], "upstreamIdentity": asked.identity}
            if "spec" in body:
                spec["set"] = {key: body[key] for key in ("apiVersion", "kind", "metadata", "spec") if key in body}
            if asked.guards:
                spec["guardDefaults"] = asked.guards
            request = {"apiVersion": _API_VERSION, "kind": _KIND, "spec": spec}
            where = _namespace_of(asked, body, namespace)
            answers.append(await client.create(PACKAGE_VARIANT_SET_PREVIEWS, where, request))
    return answers


async def _offline(asked: _Asked, folder: Path) -> list[Json]:
    """Answer from objects in files, with the code that servers answer with."""
    from krm.variants.sets.guards import GuardDefaults
    from krm.variants.sets.rendering_pool import RenderingPool
    from krm.variants.sets.rollout_validation import guard_problems

    if problems := list(guard_problems(asked.guards)):
        raise CommandFailed("; ".join(problems))
    pool = RenderingPool(upstream_identity=asked.identity)
    defaults = GuardDefaults.of(asked.guards)
    try:
        return [await _from_folder(asked, body, folder, pool, defaults) for body in asked.sets]
    finally:
        await pool.close()


async def _from_folder(asked: _Asked, written: Json, folder: Path, pool: Any, defaults: "GuardDefaults") -> Json:
    from datetime import UTC, datetime

    from krm.cli.object_folder import ObjectFolder
    from krm.variants.sets import previewing
    from krm.variants.sets.rendering_worker import RenderingUnavailable

    namespace, name = _namespace_of(asked, written, "default"), written["metadata"]["name"]
    around = ObjectFolder(folder, namespace)
    body = around.stored_set(name)
    if "spec" in written:
        body = previewing.as_applied(written, body, namespace=namespace, name=name)
    if body is None:
        raise CommandFailed(f'{folder}: there is no PackageVariantSet "{name}" in namespace {namespace}')
    body = {**body, "metadata": {**body["metadata"], "namespace": namespace}}
    if found := await previewing.validated(body):
        status = previewing.told_invalid(body, found)
    else:
        try:
            status = await previewing.preview(body, around, pool, defaults=defaults, now=datetime.now(UTC))
        except RenderingUnavailable as error:
            raise CommandFailed(str(error)) from error
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": _API_VERSION, "kind": _KIND, "metadata": metadata, "spec": {"name": name}, "status": status}


# --- how they are printed -----------------------------------------------------------------------------


def _print(answers: Sequence[Json], output: str) -> None:
    from krm.cli.preview_output import as_text
    from krm.cli.text_table import printable

    if output == "yaml":
        click.echo(_yaml(answers), nl=False)
    elif output == "json":
        import orjson

        one = answers[0] if len(answers) == 1 else {"apiVersion": "v1", "kind": "List", "items": list(answers)}
        click.echo(orjson.dumps(one, option=orjson.OPT_INDENT_2).decode())
    else:
        for answer in answers:
            for line in as_text(answer["metadata"]["name"], answer["status"]):
                click.echo(printable(line), nl=False)


def _yaml(objects: Sequence[Json]) -> str:
    import yaml

    return yaml.safe_dump_all(objects, sort_keys=False, allow_unicode=True, width=sys.maxsize)
