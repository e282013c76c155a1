"""From a set that somebody asks about to the answer: the way of the controller's pass, without its writes.

A server and a command differ only in where ``Surroundings`` come from. Source: ``variants.md`` 3.1 and 6.1.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from krm.variants.revisions import Revision
from krm.variants.sets.changes import with_pinned_upstream
from krm.variants.sets.guards import GuardDefaults
from krm.variants.sets.plan import Existing, sought_names
from krm.variants.sets.preview import Known, told, told_of_deletion, told_without_targets
from krm.variants.sets.progress import VariantState, is_published
from krm.variants.sets.rendering import Rendered
from krm.variants.sets.rendering_worker import RenderingTimeout, RenderingTooLarge
from krm.variants.sets.targets import Context, Kind, SelectedObject, Unrolled, UnrollError, unroll
from krm.variants.sets.validation import problems
from krm.variants.sets.verdict import invalid, not_rendered, without_targets, without_upstream
from krm.variants.sets.vocabulary import API_VERSION, KIND, REPOSITORY, SET_LABEL
from krm.variants.upstream import Resolution, UpstreamError, resolve
from krm.variants.variant import UpstreamSpec, Variant

Json = dict[str, Any]

DEFAULT_BRANCH: Final = "main"
NO_OBJECTS: Final = "NoObjectsSelected"


class Surroundings(Protocol):
    """What there is in the namespace of a set, at one moment; asked in any thread. Bodies are as on the wire."""

    def repositories(self) -> Iterable[Json]:
        """Return the Repositories."""
        ...

    def revisions(self, repository: str, package: str) -> Iterable[Json]:
        """Return the revisions of a package."""
        ...

    def variants_of(self, set_uid: str) -> Iterable[Json]:
        """Return the PackageVariants with the label of a set."""
        ...

    def variant(self, name: str) -> Json | None:
        """Return a PackageVariant."""
        ...

    def objects(self) -> Mapping[Kind, Sequence[SelectedObject] | str]:
        """Return what there is of each kind that the targets select, as ``targets.unroll`` takes it."""
        ...


class Render(Protocol):
    """Renders targets, as ``RenderingPool.render`` does."""

    async def render(
        self,
        set_body: Json,
        upstream: Revision,
        contexts: Sequence[Context],
        repositories: Mapping[str, SelectedObject],
    ) -> list[Rendered]:
        """Do what ``rendering.render`` does."""
        ...


def as_applied(written: Json, stored: Json | None, *, namespace: str, name: str) -> Json:
    """Return a set as its controller would find it if ``written`` were applied over what is ``stored``.

    Annotations and labels are added to those that are there; a spec that differs is of the next generation. Everything else
    that is written is the server's or the controller's, and does not count.
    """
    meta, spec = written.get("metadata") or {}, written.get("spec") or {}
    before: Json = stored["metadata"] if stored is not None else {"name": name, "namespace": namespace, "uid": ""}
    merged = {part: {**(before.get(part) or {}), **(meta.get(part) or {})} for part in ("labels", "annotations")}
    generation = (before.get("generation") or 0) + (stored is None or spec != (stored.get("spec") or {}))
    metadata = {**before, **merged, "generation": generation}
    envelope: Json = {"apiVersion": API_VERSION, "kind": KIND, "status": {}} if stored is None else stored
    return {**envelope, "metadata": metadata, "spec": spec}


async def validated(set_body: Json) -> list[str]:
    """Return what is wrong with a set; compiling its expressions takes up to a second, in a thread."""
    return await asyncio.to_thread(problems, set_body)


def told_invalid(set_body: Json, found: Sequence[str]) -> Json:
    """Return the answer for a set that breaks rules."""
    return told_without_targets(set_body, invalid(found))


async def preview(
    set_body: Json, around: Surroundings, rendering: Render, *, defaults: GuardDefaults, now: datetime
) -> Json:
    """Return what the next pass over a valid set would do, as the status of a preview; nothing is written.

    ``set_body`` is as ``as_applied`` makes it, or as it is stored. Cancellation ends the rendering.

    Raises:
        RenderingUnavailable: nothing could be rendered; trying again helps.
    """
    if set_body["metadata"].get("deletionTimestamp"):
        return told_of_deletion(set_body)
    upstream = Variant.of(
        {"metadata": set_body["metadata"], "spec": {"upstream": set_body["spec"]["upstream"]}}
    ).upstream
    try:
        aim = await asyncio.to_thread(_aim, set_body, upstream, around)
    except UpstreamError as error:
        return told_without_targets(set_body, without_upstream(error, upstream))
    except UnrollError as error:
        return told_without_targets(set_body, without_targets(error))
    try:
        rendered = await rendering.render(aim.body, aim.resolution.revision, aim.unrolled.contexts, aim.repositories)
    except (RenderingTimeout, RenderingTooLarge) as error:
        return told_without_targets(set_body, not_rendered(error), upstream=aim.resolution.seen(upstream.tag))
    return await asyncio.to_thread(_told, aim, rendered, around, defaults, now)


@dataclass(frozen=True, slots=True)
class _Aim:
    """What the targets of a set select, and what they are to get."""

    body: Json
    """The set with its upstream pinned."""
    upstream: UpstreamSpec
    resolution: Resolution
    branch: str
    unrolled: Unrolled
    repositories: Mapping[str, SelectedObject]


def _aim(set_body: Json, upstream: UpstreamSpec, around: Surroundings) -> _Aim:
    """Find out what a set selects, in the order of the controller: a missing upstream is told before a missing kind."""
    bodies = [*around.repositories()]
    candidates = [Revision.of(one) for one in around.revisions(upstream.repo, upstream.package)]
    branch = _branch(bodies, upstream.repo)
    resolution = resolve(upstream, candidates, branch, previous=(set_body.get("status") or {}).get("upstream"))
    repositories = {one["metadata"]["name"]: SelectedObject.of(one, REPOSITORY) for one in bodies}
    namespace = set_body["metadata"]["namespace"]
    unrolled = unroll(set_body["spec"], namespace, [*repositories.values()], around.objects())
    pinned = with_pinned_upstream(set_body, resolution)
    return _Aim(pinned, upstream, resolution, branch, unrolled, repositories)


def _branch(repositories: Iterable[Json], name: str) -> str:
    found = (one.get("spec") or {} for one in repositories if one["metadata"]["name"] == name)
    return next(((one.get("git") or {}).get("branch") or DEFAULT_BRANCH for one in found), DEFAULT_BRANCH)


def _told(
    aim: _Aim, rendered: Sequence[Rendered], around: Surroundings, defaults: GuardDefaults, now: datetime
) -> Json:
    known = _known(aim, rendered, around)
    answer = told(aim.body, aim.unrolled.contexts, rendered, known, defaults=defaults, now=now)
    answer["upstream"] = aim.resolution.seen(aim.upstream.tag)
    empty = [(NO_OBJECTS, f"spec.targets[{index}] selects nothing") for index in aim.unrolled.empty]
    if warnings := [{"reason": reason, "message": message} for reason, message in (*aim.resolution.warnings, *empty)]:
        answer["warnings"] = warnings
    return answer


def _known(aim: _Aim, rendered: Sequence[Rendered], around: Surroundings) -> Known:
    meta = aim.body["metadata"]
    uid = meta.get("uid") or ""
    bodies = [*around.variants_of(uid)] if uid else []
    ours = [Existing.of(one, uid, keep_spec=True) for one in bodies]
    others = _others(around, sought_names(meta["name"], rendered, ours), uid)
    return Known([*ours, *others], _states(aim, bodies, around), aim.unrolled.empty)


def _others(around: Surroundings, names: Collection[str], set_uid: str) -> list[Existing]:
    """Return what has a name that the set would give, and is not of it."""
    bodies = (body for name in names if (body := around.variant(name)) is not None)
    return [one for body in bodies if not (one := Existing.of(body, set_uid)).ours]


def _states(aim: _Aim, bodies: Sequence[Json], around: Surroundings) -> Mapping[str, VariantState]:
    """Return how far the variants are; nothing reads that of a set without a rollout."""
    rollout = aim.body["spec"].get("rollout")
    if not rollout:
        return {}
    asks = rollout.get("settleOn") == "Published"
    return {
        one["metadata"]["name"]: VariantState.of(one, published=asks and _is_published(aim, one, around))
        for one in bodies
    }


def _is_published(aim: _Aim, variant: Json, around: Surroundings) -> bool:
    downstream = (variant.get("spec") or {}).get("downstream") or {}
    of_package = around.revisions(downstream.get("repo") or "", downstream.get("package") or "")
    revisions = map(Revision.of, of_package)
    uid = variant["metadata"].get("uid") or ""
    return is_published(uid, revisions, aim.resolution.revision, upstream_branch=aim.branch)


def is_of_set(variant: Json, set_uid: str) -> bool:
    """Tell whether a PackageVariant has the label of a set."""
    return bool(set_uid) and (variant["metadata"].get("labels") or {}).get(SET_LABEL) == set_uid
