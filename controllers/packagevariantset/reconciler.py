"""What one set needs now: unroll, render, plan, write, tell. Source: ``variants.md`` 3.1, 3.6, 3.8, 6.6, 6.7; C-20, C-41."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from controllers.packagevariantset.cached_values import CachedSet, Key, Member
from controllers.packagevariantset.caches import Caches
from controllers.packagevariantset.interests import Interests, interest_of, named_repositories
from controllers.packagevariantset.renderings import Inputs, Rendering, Renderings
from controllers.packagevariantset.report import Report
from controllers.packagevariantset.selected_objects import SelectedObjects
from controllers.packagevariantset.validated import ValidatedSpecs
from controllers.packagevariantset.variant_writer import Outcome, VariantWriter
from controllers.runtime.controller import Result
from controllers.runtime.kind_watches import NotListed
from controllers.runtime.status import EventRecorder, set_status
from krm.client.client import KubeClient
from krm.client.resources import PACKAGE_VARIANT_SETS
from krm.variants.revisions import Revision
from krm.variants.sets.changes import with_pinned_upstream
from krm.variants.sets.guards import GuardDefaults
from krm.variants.sets.plan import Existing, Plan, paused, plan, sought_names
from krm.variants.sets.progress import VariantState, is_published
from krm.variants.sets.rendering import Rendered, upstream_view
from krm.variants.sets.rendering_pool import RenderingPool
from krm.variants.sets.rendering_worker import RenderingError, RenderingTooLarge, RenderingUnavailable
from krm.variants.sets.rollout import Admission, admit
from krm.variants.sets.targets import Unrolled, UnrollError, selected_kinds, unroll
from krm.variants.sets.verdict import Verdict, invalid, not_rendered, verdict, without_targets, without_upstream
from krm.variants.upstream import Resolution, UpstreamError, resolve
from krm.variants.variant import UpstreamSpec, Variant

Json = dict[str, Any]
log = structlog.get_logger()

MOST_BACK_OFF: Final = 300.0
"""Seconds between two tries of what passes by itself, at most."""
LATER: Final = 300.0
"""Seconds between two tries of what only somebody outside can change, and no event tells."""
SOON: Final = 0.05
"""Seconds."""
NO_OBJECTS: Final = "NoObjectsSelected"


@dataclass(frozen=True, slots=True)
class _Pass:
    """A set as it was when the pass began."""

    one: CachedSet
    body: Json
    """With the spec that was validated; the same object in every pass over a generation."""
    upstream: UpstreamSpec
    report: Report

    @property
    def key(self) -> Key:
        return self.one.key

    @property
    def spec(self) -> Json:
        spec: Json = self.body["spec"]
        return spec

    @property
    def status(self) -> Json:
        return self.one.body.get("status") or {}


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What the targets of a set come to."""

    body: Json
    """The set with its upstream pinned."""
    source: Revision
    unrolled: Unrolled
    rendering: Rendering

    @property
    def rendered(self) -> Sequence[Rendered]:
        return self.rendering.rendered


class PackageVariantSetReconciler:
    """Makes the variants of a set what it asks for; all that it reads comes from caches that the caller keeps."""

    def __init__(
        self,
        client: KubeClient,
        caches: Caches,
        objects: SelectedObjects,
        pool: RenderingPool,
        recorder: EventRecorder,
        *,
        defaults: GuardDefaults,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client, self._caches, self._objects, self._pool, self._recorder = client, caches, objects, pool, recorder
        self._defaults, self._clock = defaults, clock
        self.interests = Interests()
        self.writer = VariantWriter(client, caches.variants)
        self._validated = ValidatedSpecs()
        self._renderings = Renderings()
        self._told: dict[Key, object] = {}
        """Of each set, what Warning events said last."""

    async def reconcile(self, key: Key) -> Result:
        """Do what one set needs now; harmless to repeat, and to cut short anywhere.

        Raises:
            StatusError, NoAnswer, WriteRefused: a request failed, and trying again may help.
        """
        one = self._caches.one(key)
        if one is None or one.deleting:
            self.forget(key)
            return Result()
        report = Report(one.body.get("status") or {}, one.generation, self._clock())
        if paused(one.body):
            return await self._rest(one, report)
        spec, problems = await self._validated.of(one)
        if problems:
            self._ignore(key)
            _tell_verdict(report, invalid(problems))
            return await self._tell(one, report, Result())
        body = {**one.body, "spec": spec}
        upstream = Variant.of({"metadata": body["metadata"], "spec": {"upstream": spec["upstream"]}}).upstream
        return await self._tell(one, report, await self._work(_Pass(one, body, upstream, report)))

    def forget(self, key: Key) -> None:
        """Drop all that is known of a set that is gone."""
        self._ignore(key)
        self._validated.forget(key)
        self._renderings.forget(key)
        self._told.pop(key, None)

    def _ignore(self, key: Key) -> None:
        self.interests.forget(key)
        self._objects.forget(key)

    async def _rest(self, one: CachedSet, report: Report) -> Result:
        """Write nothing but the status (6.7)."""
        report.paused()
        members = self._members(one)
        if before := (one.body.get("status") or {}).get("targets"):
            total, failed = before.get("total") or 0, before.get("failed") or 0
            report.targets(total, members, failed, Outcome().written)
        return await self._tell(one, report, Result())

    async def _work(self, current: _Pass) -> Result:
        """Do what a valid set needs, as far as it goes; what stops it is in the report."""
        interest, before = interest_of(current.spec, current.upstream), self.interests.get(current.key)
        known = before.repositories if before else frozenset()
        self.interests.put(current.key, replace(interest, repositories=known, every_repository=True))
        self._told.setdefault(current.key, ())
        try:
            wanted = await self._wanted(current)
        except UpstreamError as error:
            _tell_verdict(current.report, without_upstream(error, current.upstream))
        except UnrollError as error:
            _tell_verdict(current.report, without_targets(error))
        except RenderingUnavailable as error:
            log.warning("not rendered, tried again later", error=str(error))
            return Result(back_off=MOST_BACK_OFF)
        except RenderingError as error:
            _tell_verdict(current.report, not_rendered(error))
            return Result() if isinstance(error, RenderingTooLarge) else Result(requeue_after=LATER)
        except NotListed as error:
            log.warning("not reconciled, tried again later", error=str(error))
            return Result(back_off=MOST_BACK_OFF)
        else:
            return await self._ensure(current, wanted)
        known = frozenset(named_repositories(current.spec))
        self.interests.put(current.key, replace(interest, repositories=known))
        return Result()

    # --- what there should be -----------------------------------------------------------------------

    async def _wanted(self, current: _Pass) -> _Wanted:
        """Find out what the targets come to.

        Raises:
            UpstreamError: the upstream stands for nothing that can be used.
            UnrollError, NotListed: what targets select is not known.
            RenderingError: see there.
        """
        resolution = self._resolve(current)
        await self._objects.open(current.key, selected_kinds(current.spec))
        body = with_pinned_upstream(current.body, resolution)
        repositories = self._caches.repositories_of(current.one.namespace)
        listed = self._objects.listed(current.key)
        unrolled = unroll(current.spec, current.one.namespace, [*repositories.values()], listed)
        self._warn(current, resolution, unrolled)
        source = resolution.revision
        view = upstream_view(source, identity=self._pool.upstream_identity)
        inputs = Inputs(
            current.one.uid, current.one.generation, body["spec"]["upstream"], view, unrolled.contexts, repositories
        )
        await asyncio.sleep(0)  # each step over ten thousand targets takes a moment
        rendering = self._renderings.find(current.key, inputs)
        if rendering is None:
            rendered = await self._pool.render(body, source, unrolled.contexts, repositories)
            rendering = self._renderings.keep(current.key, inputs, rendered)
        return _Wanted(body, source, unrolled, rendering)

    def _resolve(self, current: _Pass) -> Resolution:
        spec, namespace = current.upstream, current.one.namespace
        candidates = self._caches.of_package((namespace, spec.repo, spec.package))
        branch = self._caches.branch(namespace, spec.repo)
        found = resolve(spec, candidates, branch, previous=current.status.get("upstream"))
        current.report.upstream(found.seen(spec.tag))
        return found

    def _warn(self, current: _Pass, resolution: Resolution, unrolled: Unrolled) -> None:
        """Tell by Events what is no error, once."""
        empty = [(NO_OBJECTS, f"spec.targets[{index}] selects nothing") for index in unrolled.empty]
        warnings = (*resolution.warnings, *empty)
        if warnings != self._told.get(current.key):
            for reason, message in warnings:
                self._recorder.event(current.one.body, "Warning", reason, message)
        self._told[current.key] = warnings

    # --- what is written ----------------------------------------------------------------------------

    async def _ensure(self, current: _Pass, wanted: _Wanted) -> Result:
        await asyncio.sleep(0)
        if self._overtaken(current):
            return Result()
        planned = self._plan(current, wanted)
        await asyncio.sleep(0)
        now = self._clock()
        admission = admit(wanted.body, planned, self._states(current, wanted), current.status, now)
        outcome = await self.writer.apply(wanted.body, admission)
        self._follow(current, wanted, planned, outcome)
        _report(current.report, planned, admission, outcome)
        self._count(current, planned, outcome)
        current.report.rollout(admission.status)
        if outcome.transient is not None:
            await self._tell(current.one, current.report, Result())
            raise outcome.transient
        waits = [admission.requeue_after] if admission.requeue_after else []
        waits += [LATER] if outcome.failures else []
        return Result(requeue_after=min(waits, default=None))

    def _overtaken(self, current: _Pass) -> bool:
        """Whether the set was changed while it was rendered; the event has queued it again."""
        now = self._caches.one(current.key)
        return (
            now is None
            or now.deleting
            or (now.uid, now.generation, now.orders) != (current.one.uid, current.one.generation, current.one.orders)
        )

    def _plan(self, current: _Pass, wanted: _Wanted) -> Plan:
        ours = [self._existing(one) for one in self._members(current.one)]
        others = self._others(current.one, wanted.rendered, ours)
        empty = wanted.unrolled.empty
        planned = plan(wanted.body, wanted.rendered, [*ours, *others], empty=empty, defaults=self._defaults)
        spec = wanted.rendering.spec
        return replace(
            planned,
            updates=tuple((one, spec(outline)) for one, outline in planned.updates),
            creates=tuple((name, spec(outline)) for name, outline in planned.creates),
        )

    def _members(self, one: CachedSet) -> Sequence[Member]:
        return self._caches.members(one.namespace, one.uid)

    def _existing(self, member: Member) -> Existing:
        one = member.existing
        if self.writer.deletes and not one.terminating and self.writer.is_deleted(one.uid):
            return replace(one, terminating=True)
        return one

    def _others(self, one: CachedSet, rendered: Sequence[Rendered], ours: Sequence[Existing]) -> list[Existing]:
        """Return what has a name that the set would give, and is not of it."""
        found = (self._caches.variants.get(one.namespace, name) for name in sought_names(one.name, rendered, ours))
        return [replace(other.existing, ours=False) for other in found if other and other.set_uid != one.uid]

    def _states(self, current: _Pass, wanted: _Wanted) -> Mapping[str, VariantState]:
        """Return how far the variants are; nothing reads that of a set without a rollout."""
        rollout = wanted.body["spec"].get("rollout")
        if not rollout:
            return {}
        asks = rollout.get("settleOn") == "Published"
        return {
            one.name: one.state(published=asks and self._is_published(current, wanted, one))
            for one in self._members(current.one)
        }

    def _is_published(self, current: _Pass, wanted: _Wanted, one: Member) -> bool:
        of_package = self._caches.of_package((one.namespace, *one.existing.pair))
        branch = self._caches.branch(one.namespace, current.upstream.repo)
        return is_published(one.existing.uid, of_package, wanted.source, upstream_branch=branch)

    def _follow(self, current: _Pass, wanted: _Wanted, planned: Plan, outcome: Outcome) -> None:
        """Narrow down what the set has to hear of, now that it is known where its variants go."""
        used = {one.repo for one in wanted.rendered} | named_repositories(current.spec)
        others = {one.name for one in self._others(current.one, wanted.rendered, [])} if planned.failures else set()
        interest = interest_of(current.spec, current.upstream)
        self.interests.put(
            current.key,
            replace(interest, repositories=frozenset(used), taken=frozenset(others | {*outcome.taken})),
        )

    # --- what is told -------------------------------------------------------------------------------

    def _count(self, current: _Pass, planned: Plan, outcome: Outcome) -> None:
        failures = [*planned.failures, *outcome.failures]
        failed = {(one.repo, one.package) for one in failures}
        members = [one for one in self._members(current.one) if not self._existing(one).terminating]
        targets = planned.digests.keys() | failed
        told = [one for one in members if one.existing.pair in targets and one.existing.pair not in failed]
        current.report.targets(len(targets), told, len(failed), outcome.written)
        current.report.failures(failures, told)

    async def _tell(self, one: CachedSet, report: Report, result: Result) -> Result:
        """Write the status if it says anything new, and an Event if that is a failure."""
        if (news := report.news()) is not None:
            self._recorder.event(one.body, "Warning", *news)
        with self._caches.sets.writing(one.namespace, one.name):
            written = await set_status(self._client, PACKAGE_VARIANT_SETS, one.body, report.status)
            if written is not None:
                self._caches.sets.wrote(written)
        if written is not None and CachedSet.of(written).orders != one.orders:
            return Result(
                requeue_after=SOON
            )  # the answer is the first news of it, and its event tells nothing any more
        return result


def _report(report: Report, planned: Plan, admission: Admission, outcome: Outcome) -> None:
    """Say how far it went; after an error that may pass the conditions stay as they are (C-20)."""
    found = verdict(planned, admission, failures=outcome.failures, waiting=outcome.waiting)
    if found.stalled or outcome.transient is None:
        _tell_verdict(report, found)


def _tell_verdict(report: Report, found: Verdict) -> None:
    if found.stalled:
        report.stalled(found.reason, found.message)
    elif found.ready:
        report.ready()
    else:
        report.unfinished(found.reason, found.message)
