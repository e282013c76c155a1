"""``porch variants preview-pv``: what a variant would make of the package that it keeps now. Nothing is written.

Source: ``variants.md`` 2.9 and 6.1.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from krm.cli.failures import CommandFailed

if TYPE_CHECKING:
    from krm.client.client import KubeClient
    from krm.variants.injection import Listing
    from krm.variants.revisions import Revision
    from krm.variants.variant import Variant

Json = dict[str, Any]

_NEVER = (("v1", "Secret"),)
"""What is never injected."""


async def preview_variant(name: str, written: Json | None, client: "KubeClient", namespace: str) -> list[str]:
    """Return the patch that the variant's context, pipeline and injections are to the files of its package.

    With ``written`` they are those of that spec, in place of the stored one. The objects that would be injected are read as the
    caller. What functions and an upgrade make of the files is the server's to find out.

    Raises:
        CommandFailed: the variant is invalid, or its package cannot be changed as it says.
        StatusError, NoAnswer: see ``KubeClient``.
    """
    from krm.client.resources import PACKAGE_REVISION_RESOURCES, PACKAGE_VARIANTS
    from krm.variants.mutation import MutationError, mutate
    from krm.variants.summary import text_diff
    from krm.variants.validation import problems
    from krm.variants.variant import Variant

    stored = await client.get(PACKAGE_VARIANTS, namespace, name)
    body = stored if written is None else {**stored, "spec": written.get("spec") or {}}
    if found := problems(body):
        raise CommandFailed(f"{name}: {'; '.join(found)}")
    variant = Variant.of(body)
    target = await _target(client, namespace, variant)
    if target is None:
        where = f"{variant.downstream_repo}/{variant.downstream_package}"
        click.echo(f'variant "{name}" keeps no revision of {where}: it would clone the package first', err=True)
        return []
    files = (await client.get(PACKAGE_REVISION_RESOURCES, namespace, target.name)).get("spec") or {}
    resources: Mapping[str, str] = files.get("resources") or {}
    listings = await _listings(client, variant, resources)
    try:
        mutation = mutate(variant, f"{namespace}/{target.name}", resources, listings)
    except MutationError as error:
        raise CommandFailed(str(error)) from error
    click.echo(f"{target.name} compared with what the variant makes of it", err=True)
    return [text_diff(resources, mutation.resources)]


async def _target(client: "KubeClient", namespace: str, variant: "Variant") -> "Revision | None":
    """Return the draft that the variant keeps, or what it published last."""
    from krm.client.resources import PACKAGE_REVISIONS
    from krm.variants.revisions import Revision

    fields = f"spec.repository={variant.downstream_repo},spec.packageName={variant.downstream_package}"
    pages = client.list(PACKAGE_REVISIONS, namespace, field_selector=fields)
    owned = [one async for page in pages for one in map(Revision.of, page.items) if one.owned_by(variant.uid)]
    drafts: Sequence[Revision] = [one for one in owned if not one.is_published]
    return max(drafts or owned, key=lambda one: (one.revision, one.created, one.name), default=None)


async def _listings(
    client: "KubeClient", variant: "Variant", resources: Mapping[str, str]
) -> "dict[tuple[str, str], Listing]":
    """Return the objects that the variant's selectors name, of the kinds that the package takes."""
    from krm.variants.mutation import MutationError, injection_points

    if not variant.injectors:
        return {}
    try:
        types = {(point.api_version, point.kind) for point in injection_points(resources)}
    except MutationError as error:
        raise CommandFailed(str(error)) from error
    return {type_: await _listing(client, variant, type_) for type_ in sorted(types)}


async def _listing(client: "KubeClient", variant: "Variant", type_: tuple[str, str]) -> "Listing":
    from krm.meta.errors import Forbidden, NotFound
    from krm.variants.injection import Listing

    if type_ in _NEVER:
        return Listing(error=f"objects of kind {type_[1]} are never injected")
    resource = await client.resource_of(*type_)
    if resource is None:
        return Listing(error=f'no matches for kind "{type_[1]}" in version "{type_[0]}"')
    if not resource.namespaced:
        return Listing(error=f"objects of kind {type_[1]} are cluster-scoped")
    found: dict[str, Json] = {}
    for name in sorted({one.name for one in variant.injectors}):
        try:
            found[name] = await client.get(resource, variant.namespace, name)
        except NotFound:
            continue
        except Forbidden as error:
            return Listing(error=error.message)
    return Listing(found)
