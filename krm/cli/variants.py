"""``porch variants``: what the drafts of PackageVariants change, why they exist, and what sets would do.

Exit codes: 0 done, 1 failed with a message, 2 wrong usage. Source: ``variants.md`` 6.8.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from krm.cli.text_table import printable, text_table
from krm.cli.variant_sets import convert, preview

if TYPE_CHECKING:
    from krm.client.client import KubeClient
    from krm.variants.revisions import Revision

Json = dict[str, Any]
_Command = TypeVar("_Command", bound=Callable[..., Any])

_BINARY_FILES = "porch.kpt.dev/binary-files"
"""Annotation of PackageRevisionResources: what is in the package and not among its files here."""
_HEADERS = ("REVISION", "CREATED", "LIFECYCLE", "TRIGGER", "CHANGES", "DETAIL")


@click.group()
def cli() -> None:
    """Look at what PackageVariants and their sets do and would do."""


def _on_cluster(command: _Command) -> _Command:
    """Add the options that say where the object is."""
    for option in (
        click.argument("name"),
        click.option("-n", "--namespace", default="", help="Namespace; default: the context's."),
        click.option(
            "--kubeconfig",
            type=click.Path(path_type=Path, dir_okay=False),
            help="File that names the server; default: as kubectl finds it.",
        ),
    ):
        command = option(command)
    return command


@cli.command()
@_on_cluster
def diff(name: str, namespace: str, kubeconfig: Path | None) -> None:
    """Print what the drafts of the variant NAME change, as a patch.

    Each draft is compared with the newest published revision that the variant keeps, a new package with nothing.
    """
    _run(partial(_diff, name), namespace, kubeconfig)


@cli.command()
@_on_cluster
def history(name: str, namespace: str, kubeconfig: Path | None) -> None:
    """List the package revisions of the variant NAME, and what led to each, the oldest first."""
    _run(partial(_history, name), namespace, kubeconfig)


@cli.command("preview-pv")
@_on_cluster
@click.option(
    "-f",
    "--filename",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the variant as it would be applied; default: the stored one.",
)
def preview_pv(name: str, filename: Path | None, namespace: str, kubeconfig: Path | None) -> None:
    """Print what the variant NAME would make of the package that it keeps now, as a patch. Nothing is written.

    Its context, pipeline and injections are compared with the files of its draft, or of what it published last.
    """
    from krm.cli.failures import reported_failures
    from krm.cli.variant_preview import preview_variant

    written = None
    if filename is not None:
        with reported_failures():
            written = _variant_of(filename, name)
    _run(partial(preview_variant, name, written), namespace, kubeconfig)


def _variant_of(file: Path, name: str) -> Json:
    from krm.cli.failures import CommandFailed
    from krm.cli.object_folder import read_objects
    from krm.variants.vocabulary import API_VERSION, KIND

    for body in read_objects(file):
        if (body["apiVersion"], body["kind"], body["metadata"]["name"]) == (API_VERSION, KIND, name):
            return body
    raise CommandFailed(f'{file}: there is no {KIND} "{name}" of {API_VERSION}')


@cli.group()
def tag() -> None:
    """Floating tags of package revisions, which variants can follow."""


@tag.command("set")
@_on_cluster
@click.argument("tag_name", metavar="TAG")
def set_tag(name: str, tag_name: str, namespace: str, kubeconfig: Path | None) -> None:
    """Give the published package revision NAME the tag TAG, and take it from the others of its package."""
    from krm.cli.floating_tags import set_tag as moved

    _run(partial(moved, name, tag_name), namespace, kubeconfig)


def _run(
    command: Callable[["KubeClient", str], Awaitable[Iterable[str]]], namespace: str, kubeconfig: Path | None
) -> None:
    """Run a command and print the lines that it answers with."""
    from krm.cli.failures import reported_failures

    async def on_cluster() -> Iterable[str]:
        from krm.cli.cluster import cluster

        async with cluster(kubeconfig, namespace) as (client, chosen):
            return await command(client, chosen)

    with reported_failures():
        for line in asyncio.run(on_cluster()):
            click.echo(printable(line), nl=False)


async def _diff(name: str, client: "KubeClient", namespace: str) -> list[str]:
    from krm.variants.revisions import DRAFT, PROPOSED
    from krm.variants.summary import text_diff
    from krm.variants.variant import Variant

    variant = Variant.of(await _variant(client, namespace, name))
    package = f"spec.repository={variant.downstream_repo},spec.packageName={variant.downstream_package}"
    owned = [one for one in await _revisions(client, namespace, fields=package) if one.owned_by(variant.uid)]
    published = [one for one in owned if one.is_published]
    base = max(published, key=lambda one: one.revision, default=None)
    drafts = [one for one in owned if one.lifecycle in (DRAFT, PROPOSED)]
    if not drafts:
        click.echo(f'variant "{name}" has no draft', err=True)
        return []
    before = await _files(client, namespace, base.name) if base else {}
    printed = []
    for draft in drafts:
        click.echo(f"{draft.name} compared with {base.name if base else 'nothing: the package is new'}", err=True)
        printed.append(text_diff(before, await _files(client, namespace, draft.name)))
    return printed


async def _history(name: str, client: "KubeClient", namespace: str) -> list[str]:
    from krm.variants.vocabulary import MARKER_LABEL

    uid = (await _variant(client, namespace, name))["metadata"]["uid"]
    revisions = await _revisions(client, namespace, labels=f"{MARKER_LABEL}={uid}")
    if not revisions:
        click.echo(f'variant "{name}" has no package revisions', err=True)
        return []
    return text_table([_HEADERS, *map(_row, revisions)])


async def _variant(client: "KubeClient", namespace: str, name: str) -> Json:
    from krm.client.resources import PACKAGE_VARIANTS

    return await client.get(PACKAGE_VARIANTS, namespace, name)


async def _revisions(client: "KubeClient", namespace: str, *, labels: str = "", fields: str = "") -> list["Revision"]:
    """Return package revisions, the oldest first."""
    from krm.client.resources import PACKAGE_REVISIONS
    from krm.variants.revisions import Revision
    from krm.variants.workspaces import workspace_number

    pages = client.list(PACKAGE_REVISIONS, namespace, label_selector=labels, field_selector=fields)
    found = [Revision.of(item) async for page in pages for item in page.items]
    return sorted(found, key=lambda one: (one.created, workspace_number(one.workspace), one.name))


async def _files(client: "KubeClient", namespace: str, name: str) -> dict[str, str]:
    from krm.client.resources import PACKAGE_REVISION_RESOURCES

    body = await client.get(PACKAGE_REVISION_RESOURCES, namespace, name)
    if binary := (body["metadata"].get("annotations") or {}).get(_BINARY_FILES):
        click.echo(f"{name}: binary files are not compared: {binary}", err=True)
    return (body.get("spec") or {}).get("resources") or {}


def _row(revision: "Revision") -> tuple[str, ...]:
    from krm.variants.summary import read_compact
    from krm.variants.vocabulary import CHANGE_SUMMARY

    summary = read_compact(revision.annotations.get(CHANGE_SUMMARY, ""))
    files = summary.get("files") or {}
    changes = [f"{len(paths)} {change}" for change in ("added", "modified", "removed") if (paths := files.get(change))]
    if summary.get("omitted"):
        changes.append(f"{summary['omitted']} more")
    lifecycle = f"{revision.lifecycle} v{revision.revision}" if revision.revision > 0 else revision.lifecycle
    cells = (summary.get("trigger"), ", ".join(changes), summary.get("triggerDetail"))
    return (revision.name, revision.created, lifecycle, *(str(cell or "-").replace("\n", " ") for cell in cells))


cli.add_command(preview)
cli.add_command(convert)


if __name__ == "__main__":
    cli()
