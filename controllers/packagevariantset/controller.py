"""Keeps all PackageVariantSets true: caches, a queue, workers, and whom an event wakes. Source: ``variants.md`` 3, 6.9, 6.10."""

from collections.abc import Coroutine, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from controllers.packagevariantset import wakeups
from controllers.packagevariantset.cached_values import CachedRepository, CachedSet, Key, Member, Selectable
from controllers.packagevariantset.caches import Caches, Package
from controllers.packagevariantset.checked_wakeups import CheckedWakeups
from controllers.packagevariantset.controller_metrics import SetMetrics
from controllers.packagevariantset.reconciler import PackageVariantSetReconciler
from controllers.packagevariantset.selected_objects import SelectedObjects
from controllers.runtime.controller import Controller, Result
from controllers.runtime.informed_controller import InformedController
from controllers.runtime.metrics import ControllerMetrics
from controllers.runtime.served_kinds import ServedKind, came_or_went
from controllers.runtime.status import EventRecorder
from controllers.runtime.workqueue import Priority
from krm.client.cache import Cached
from krm.client.client import KubeClient
from krm.client.reflector import Reflectors
from krm.variants.revisions import Revision
from krm.variants.sets.guards import GuardDefaults
from krm.variants.sets.rendering_pool import RenderingPool
from krm.variants.sets.targets import Kind

log = structlog.get_logger()

NAME: Final = "packagevariantset"
TELL_SECONDS: Final = 2.0
"""How far its variants are is told of a set at most once in so many seconds: a thousand of them change one after another."""
ROLLOUT_SECONDS: Final = 0.25
"""The same where the next variants wait for it."""
SECONDS_PER_VARIANT: Final = 0.0001
"""Of a large set by which that is longer: several times what a look at a variant takes."""
SETTLED_SECONDS: Final = 0.5
"""After an event the others have come by then that belong to it: a check of wake-ups that looks earlier sees ahead of them."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a controller runs."""

    metrics: ControllerMetrics
    workers: int = 4
    """Sets at the same time; the writes of all of them together have a bound of their own."""
    namespace: str | None = None
    """None for all namespaces."""
    reflectors: Reflectors | None = None
    """Those of the process, which it runs; None for some of its own."""
    guards: GuardDefaults = field(default_factory=GuardDefaults)
    """What holds for sets that say nothing."""
    upstream_identity: bool = False
    """Whether expressions see which package and revision the upstream is."""
    check_wakeups: bool = False
    """Look at every set after every event, and tell which of them the event should have woken."""
    tell_seconds: float = TELL_SECONDS


class PackageVariantSetController(InformedController):
    """Reconciles PackageVariantSets while ``run`` runs, which it does once."""

    def __init__(self, client: KubeClient, recorder: EventRecorder, options: Options) -> None:
        self._options = options
        self._queue = options.metrics.queue(NAME)
        self._caches = Caches(client, options.namespace, options.reflectors)
        self._objects = SelectedObjects(client, self._wake, self._object_changed)
        self._pool = RenderingPool(upstream_identity=options.upstream_identity)
        self._reconciler = PackageVariantSetReconciler(
            client, self._caches, self._objects, self._pool, recorder, defaults=options.guards
        )
        self._interests = self._reconciler.interests
        self._check = self._checked_wakeups() if options.check_wakeups else None
        self._counts = SetMetrics(self._caches, self._objects, self._pool, self._check)
        controller = Controller(NAME, self._reconcile, self._queue, options.workers, options.metrics)
        super().__init__(controller, self._caches, self._counts, options.metrics.registry)

    def _checked_wakeups(self) -> CheckedWakeups:
        def look(key: Key) -> None:
            self._queue.add_after(key, SETTLED_SECONDS, Priority.RESYNC)

        return CheckedWakeups(self._caches, self._reconciler.writer, look)

    async def run(self) -> None:
        """Work until cancelled; what runs then may finish within the runtime's grace."""
        try:
            await super().run()
        finally:
            await self._pool.close()

    def resync(self) -> None:
        """Have every set looked at, when nothing more urgent waits."""
        for key in self._caches.set_keys():
            self._queue.add(key, Priority.RESYNC)

    def _begin(self) -> None:
        self._caches.sets.subscribe(self._set_changed)
        self._caches.variants.subscribe(self._variant_changed)
        self._caches.revisions.subscribe(self._revision_changed)
        self._caches.repositories.subscribe(self._repository_changed)
        self._caches.definitions.subscribe(self._definition_changed)
        log.info("package variant sets are kept", number=len(self._caches.sets))

    def _meanwhile(self) -> Iterable[Coroutine[Any, Any, None]]:
        return (self._objects.run(),)

    async def _reconcile(self, key: Key) -> Result:
        work = self._reconciler.reconcile(key)
        return await (work if self._check is None else self._check.watched(key, work))

    # --- events -------------------------------------------------------------------------------------

    def _wake(self, keys: Iterable[Key], priority: Priority = Priority.CHANGE) -> None:
        woken = [*keys]
        self._noted(woken)
        for key in woken:
            self._queue.add(key, priority)

    def _noted(self, keys: Iterable[Key]) -> None:
        if self._check is not None:
            self._check.woken(keys)

    def _happened(self, about: str, woken: AbstractSet[Key]) -> None:
        """Wake those whom an event concerns."""
        self._wake(woken)
        self._checked(about, woken)

    def _checked(self, about: str, woken: AbstractSet[Key]) -> None:
        if self._check is not None:
            self._check.happened(about, woken)

    def _set_changed(self, old: CachedSet | None, new: CachedSet | None) -> None:
        if old is not None and (new is None or new.uid != old.uid):
            self._reconciler.forget(old.key)
            self._queue.forget(old.key)
            if self._check is not None:
                self._check.forget(old.key)
        self._wake(wakeups.by_set(old, new), Priority.USER)

    def _variant_changed(self, old: Member | None, new: Member | None) -> None:
        self._reconciler.writer.seen(old, new)
        soon, later = wakeups.by_member(old, new, self._sets_of, self._interests)
        self._wake(soon)
        self._noted(later)
        for key in later:
            self._queue.add_after(key, self._patience(key))
        self._checked(_about(old, new), soon | later)

    def _revision_changed(self, old: Revision | None, new: Revision | None) -> None:
        self._happened(_about(old, new), wakeups.by_revision(old, new, self._interests, self._targeting))

    def _repository_changed(self, old: CachedRepository | None, new: CachedRepository | None) -> None:
        self._happened(_about(old, new), wakeups.by_repository(old, new, self._interests))

    def _object_changed(self, namespace: str, kind: Kind, old: Selectable | None, new: Selectable | None) -> None:
        self._happened(_about(old, new), wakeups.by_object(namespace, kind, old, new, self._interests))

    def _definition_changed(self, old: ServedKind | None, new: ServedKind | None) -> None:
        if changed := came_or_went(old, new):
            self._objects.definitions_changed(changed)

    # --- whom they concern --------------------------------------------------------------------------

    def _sets_of(self, member: Member) -> Iterable[CachedSet]:
        return self._caches.with_uid(member.namespace, member.set_uid)

    def _targeting(self, package: Package) -> Iterable[Key]:
        return {one.key for member in self._caches.targeting(package) for one in self._sets_of(member)}

    def _patience(self, key: Key) -> float:
        """Return how long a set may wait until it hears how far its variants are."""
        one, longest = self._caches.one(key), self._options.tell_seconds
        status = (one.body.get("status") or {}) if one is not None else {}
        if not (status.get("rollout") or {}).get("outdated"):
            return longest
        number = (status.get("targets") or {}).get("total") or 0
        return min(max(ROLLOUT_SECONDS, number * SECONDS_PER_VARIANT), longest)


def _about(old: Cached | None, new: Cached | None) -> str:
    one = new or old
    return f"{type(one).__name__} {one.name}" if one is not None else ""


def package_variant_set_controller(
    client: KubeClient, recorder: EventRecorder, options: Options
) -> PackageVariantSetController:
    """Return a controller of PackageVariantSets, made of its parts."""
    return PackageVariantSetController(client, recorder, options)
