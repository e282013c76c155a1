"""``packagevariantsetpreviews``: what a set would do. Creating one answers it; nothing is stored, nothing is written.

The caller needs the right to list every kind that the answer is made of, and to read the set. Source: ``variants.md`` 6.1.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Protocol

from apiserver.machinery.access import AccessDenied, Authorize
from apiserver.machinery.definition import Column, Definition
from apiserver.machinery.request import RequestInfo
from apiserver.machinery.rest import Scope, User, WriteOptions
from apiserver.machinery.schema import structural_schema
from apiserver.resources.columns import path_value
from apiserver.resources.objects import NamespaceCheck
from apiserver.resources.porch import GROUP, VERSION
from apiserver.resources.unstored import unstored
from krm.api.previews import PackageVariantSetPreview
from krm.meta.conditions import find_condition
from krm.meta.errors import (
    Cause,
    Forbidden,
    Invalid,
    NotFound,
    ResourceName,
    ServiceUnavailable,
    invalid_value,
    required_value,
)
from krm.meta.names import subdomain_problem
from krm.variants.sets.guards import GuardDefaults
from krm.variants.sets.previewing import Render, Surroundings, as_applied, preview, told_invalid, validated
from krm.variants.sets.rendering_worker import RenderingUnavailable
from krm.variants.sets.rollout_validation import guard_problems
from krm.variants.sets.targets import Kind, selected_kinds
from krm.variants.sets.vocabulary import API_VERSION, KIND
from storage.interfaces import Entry

Json = dict[str, Any]

SETS: Final = ResourceName("packagevariantsets", "config.porch.kpt.dev")
READ: Final = (
    ResourceName("repositories", "config.porch.kpt.dev"),
    ResourceName("packagevariants", "config.porch.kpt.dev"),
    ResourceName("packagerevisions", "porch.kpt.dev"),
)
"""Of these, every object of the namespace counts for every set."""
AT_ONCE: Final = 2
"""Previews that are worked out at the same time: one of fifty thousand targets takes some hundred megabytes."""
_KEPT_METADATA: Final = ("name", "generateName", "namespace", "labels", "annotations")


class SetReader(Protocol):
    """Where previews find what they are made of; it does not ask who may."""

    async def stored_set(self, namespace: str, name: str) -> Json | None:
        """Return a PackageVariantSet as it is on the wire."""
        ...

    async def resource_of(self, kind: Kind) -> tuple[ResourceName, bool] | None:
        """Return the resource of a kind and whether it is namespaced; None where it is not served."""
        ...

    async def surroundings(self, user: User, set_body: Json, kinds: Sequence[Kind]) -> Surroundings:
        """Return what there is in the namespace of a set."""
        ...


def preview_definition() -> Definition:
    """Define PackageVariantSetPreview."""
    return Definition(
        group=GROUP,
        version=VERSION,
        kind="PackageVariantSetPreview",
        plural="packagevariantsetpreviews",
        singular="packagevariantsetpreview",
        schema=structural_schema(PackageVariantSetPreview),
        columns=(
            Column("Name", "string", path_value("metadata", "name"), "Name of the set.", format="name"),
            *(_number(name, text) for name, text in _NUMBERS.items()),
            Column("Ready", "string", _condition("Ready", "status"), "Whether the set would be Ready afterwards."),
            Column("Reason", "string", _condition("Ready", "reason"), "Why, in one word."),
        ),
        generation=False,
        initial={"spec": {}},
    )


class VariantSetPreviews:
    """The resource. ``authorize`` is asked for the caller, ``reader`` reads as the server.

    Of the ``renderings``, that of True lets expressions see which package the upstream is.
    """

    def __init__(
        self,
        reader: SetReader,
        renderings: Mapping[bool, Render],
        authorize: Authorize,
        namespace_check: NamespaceCheck,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.definition = preview_definition()
        self._reader, self._renderings, self._authorize, self._clock = reader, renderings, authorize, clock
        self._namespace_check = namespace_check
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def create(self, scope: Scope, wanted: Json, _options: WriteOptions) -> Entry:
        """Answer what a set would do; a dry run is the same.

        Raises:
            Invalid: no set is named, or what is given is no set of this name and namespace.
            Forbidden: the caller may not read all that the answer is made of; it says what is missing.
            NotFound: there is no such namespace, or no such set and none is given.
            ServiceUnavailable: nothing can be rendered at present.
        """
        namespace, metadata, spec = scope.namespace or "", wanted.get("metadata") or {}, wanted.get("spec") or {}
        name = _name_of(spec, namespace)
        await self._namespace_check(self.definition, namespace, name)
        async with self._turns:
            status = await self._status(scope.user, namespace, name, spec)
        kept = {key: metadata[key] for key in _KEPT_METADATA if metadata.get(key)}
        answer = {**wanted, "metadata": {"name": name, **kept, "namespace": namespace}, "status": status}
        return await asyncio.to_thread(unstored, answer)

    async def _status(self, user: User, namespace: str, name: str, spec: Json) -> Json:
        given = spec.get("set")
        found = await validated(given) if given is not None else []
        kinds = () if given is None or found else _kinds(given)
        rights = [_right("get", SETS, namespace, name), *(_right("list", one, namespace) for one in READ)]
        await self._check(user, name, [*rights, *await self._rights_of(kinds, namespace)])
        stored = await self._reader.stored_set(namespace, name)
        if given is None:
            if stored is None:
                raise NotFound.of(SETS, name)
            body, found = stored, await validated(stored)
            kinds = () if found else _kinds(stored)
            await self._check(user, name, await self._rights_of(kinds, namespace))
        else:
            body = as_applied(given, stored, namespace=namespace, name=name)
        if found and not body["metadata"].get("deletionTimestamp"):
            return told_invalid(body, found)
        around = await self._reader.surroundings(user, body, kinds)
        rendering = self._renderings[bool(spec.get("upstreamIdentity"))]
        try:
            defaults = GuardDefaults.of(spec.get("guardDefaults"))
            return await preview(body, around, rendering, defaults=defaults, now=self._clock())
        except RenderingUnavailable as error:
            raise ServiceUnavailable(f"the preview cannot be rendered now: {error}", retry_after=1) from error

    # --- may the caller read this? ------------------------------------------------------------------

    async def _rights_of(self, kinds: Sequence[Kind], namespace: str) -> list[RequestInfo]:
        """Return what it takes to list kinds; one that is not served takes nothing."""
        found = [await self._reader.resource_of(kind) for kind in kinds]
        return [_right("list", one[0], namespace if one[1] else None) for one in found if one is not None]

    async def _check(self, user: User, name: str, rights: Sequence[RequestInfo]) -> None:
        """Raise Forbidden, which names every right that is missing."""
        missing = [right for right in rights if not await self._may(user, right)]
        if not missing:
            return
        told = list(dict.fromkeys(_told(right) for right in missing))
        why = f"the answer is made of what you may not read: you cannot {'; '.join(told)}"
        causes = [Cause("FieldValueForbidden", one) for one in told]
        raise Forbidden.of(self.definition.resource, name, why, causes)

    async def _may(self, user: User, right: RequestInfo) -> bool:
        try:
            await self._authorize(user, right)
        except AccessDenied:
            return False
        return True


# --- what is asked ------------------------------------------------------------------------------------


def _name_of(spec: Json, namespace: str) -> str:
    """Return the name of the set that a preview is about.

    Raises:
        Invalid: there is none, or what is given is no set of this name and namespace.
    """
    given = spec.get("set") or {}
    meta = given.get("metadata") or {}
    name = spec.get("name") or meta.get("name") or ""
    causes = [*_guard_causes(spec.get("guardDefaults")), *_set_causes(given)]
    if not name:
        causes.append(required_value("spec.name", "name a set, here or in spec.set.metadata"))
    elif problem := subdomain_problem(name):
        causes.append(invalid_value("spec.name", name, problem))
    if meta.get("name") and meta["name"] != name:
        causes.append(invalid_value("spec.set.metadata.name", meta["name"], "must match spec.name"))
    if meta.get("namespace") and meta["namespace"] != namespace:
        causes.append(
            invalid_value("spec.set.metadata.namespace", meta["namespace"], "must match the namespace of the preview")
        )
    if causes:
        raise Invalid.of("PackageVariantSetPreview", GROUP, name, causes)
    return name


def _set_causes(given: Json) -> list[Cause]:
    kind, version = given.get("kind"), given.get("apiVersion")
    causes = []
    if kind not in (None, "", KIND):
        causes.append(invalid_value("spec.set.kind", kind, f"must be {KIND}"))
    if version not in (None, "", API_VERSION):
        why = f"must be {API_VERSION}; porch variants convert turns an older set into one of it"
        causes.append(invalid_value("spec.set.apiVersion", version, why))
    return causes


def _guard_causes(given: Json | None) -> list[Cause]:
    return [invalid_value("spec.guardDefaults", given, one) for one in guard_problems(given)]


def _kinds(set_body: Json) -> list[Kind]:
    return sorted(selected_kinds(set_body["spec"]))


def _right(verb: str, resource: ResourceName, namespace: str | None, name: str = "") -> RequestInfo:
    return RequestInfo(verb, "", group=resource.group, resource=resource.resource, namespace=namespace, name=name)


def _told(right: RequestInfo) -> str:
    named = f' "{right.name}"' if right.name else ""
    where = f'in the namespace "{right.namespace}"' if right.namespace else "at the cluster scope"
    return f'{right.verb} resource "{ResourceName(right.resource, right.group)}"{named} {where}'


# --- how it is shown ----------------------------------------------------------------------------------

_NUMBERS: Final = {
    "Create": "PackageVariants that are to be made.",
    "Update": "PackageVariants that are to change.",
    "Delete": "PackageVariants that nobody wants any more.",
    "Unchanged": "PackageVariants that are as they should be.",
    "Admitted": "How many of those to write the next pass writes.",
    "Failed": "Targets with an error.",
}


def _number(name: str, text: str) -> Column:
    return Column(name, "integer", path_value("status", "summary", name.lower()), text)


def _condition(kind: str, field: str) -> Callable[[Json], Any]:
    def cell(obj: Json) -> Any:
        return (find_condition((obj.get("status") or {}).get("conditions"), kind) or {}).get(field)

    return cell
