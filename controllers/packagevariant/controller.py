"""Keeps all PackageVariants true: caches, a queue, workers, and whom an event wakes. Source: ``variants.md`` 2.14, 6.9, 6.10."""

import asyncio
import math
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, Final

import structlog

from controllers.packagevariant import wakeups
from controllers.packagevariant.cached_values import CachedRepository, CachedVariant, Key
from controllers.packagevariant.cached_views import CachedViews, working_on
from controllers.packagevariant.caches import Caches
from controllers.packagevariant.churn import ChurnGuard
from controllers.packagevariant.controller_metrics import FAILED, GONE, PAUSED, SKIPPED, VariantMetrics
from controllers.packagevariant.drift import report_drift
from controllers.packagevariant.injectables import Injectables
from controllers.packagevariant.own_writes import OwnWrites
from controllers.packagevariant.reconciler import PackageVariantReconciler
from controllers.packagevariant.situation import INITIAL, INJECTION_CHANGED, SPEC_CHANGED, UPSTREAM_CHANGED
from controllers.packagevariant.skipping import reading_of
from controllers.runtime.controller import Controller, Result
from controllers.runtime.finished_passes import FinishedPasses
from controllers.runtime.informed_controller import InformedController
from controllers.runtime.metrics import ControllerMetrics
from controllers.runtime.served_kinds import ServedKind, came_or_went
from controllers.runtime.status import EventRecorder
from controllers.runtime.wakeup_check import WakeupCheck
from controllers.runtime.workqueue import Priority
from krm.client.cache import Cached
from krm.client.client import KubeClient
from krm.client.informer import Informer
from krm.client.reflector import Reflectors
from krm.variants.revisions import Revision

log = structlog.get_logger()

NAME: Final = "packagevariant"
TELL_SECONDS: Final = 2.0
"""That somebody proposed or approved what a variant made is told at most once in so many seconds (``variants.md`` 6.9)."""
SETTLED_SECONDS: Final = 0.5
"""After an event the others have come by then that belong to it: a check of wake-ups that looks earlier sees ahead of them."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a controller runs."""

    metrics: ControllerMetrics
    workers: int = 16
    namespace: str | None = None
    """None for all namespaces."""
    reflectors: Reflectors | None = None
    """Those of the process, which it runs; None for some of its own."""
    check_wakeups: bool = False
    """Look at every variant after every event, and tell which of them the event should have woken."""
    tell_seconds: float = TELL_SECONDS


class PackageVariantController(InformedController):
    """Reconciles PackageVariants while ``run`` runs, which it does once."""

    def __init__(self, client: KubeClient, recorder: EventRecorder, options: Options) -> None:
        self._tell_seconds = options.tell_seconds
        self._queue = options.metrics.queue(NAME)
        self._caches = Caches(client, options.namespace, options.reflectors)
        self._injectables = Injectables(client, self._caches, self._wake)
        self._views = CachedViews(self._caches, self._injectables, self._wake, self._count_draft)
        self._guard = ChurnGuard(self._caches.variant, self._caches.owned)
        self._writes = OwnWrites(client, self._caches, self._views)
        self._reconciler = PackageVariantReconciler(
            self._writes, self._views, recorder, guard=self._guard, drift=report_drift
        )
        self._finished = FinishedPasses(lambda key: reading_of(key, self._caches, self._injectables))
        self._check = self._wakeup_check() if options.check_wakeups else None
        self._counts = VariantMetrics(self._caches, self._injectables, self._check)
        controller = Controller(NAME, self._reconcile, self._queue, options.workers, options.metrics)
        super().__init__(controller, self._caches, self._counts, options.metrics.registry)

    def _wakeup_check(self) -> WakeupCheck:
        return WakeupCheck(
            self._caches.variant_keys,
            lambda key: self._queue.add_after(key, SETTLED_SECONDS, Priority.RESYNC),
            self._finished,
            lambda key: self._writes.written[key],
        )

    def resync(self) -> None:
        """Have every variant looked at, when nothing more urgent waits."""
        for key in self._caches.variant_keys():
            self._queue.add(key, Priority.RESYNC)

    def _begin(self) -> None:
        self._caches.variants.subscribe(self._variant_changed)
        self._caches.package_revisions.subscribe(self._revision_changed)
        self._caches.repositories.subscribe(self._repository_changed)
        self._caches.definitions.subscribe(self._definition_changed)
        log.info("package variants are kept", number=len(self._caches.variants))

    def _meanwhile(self) -> Iterable[Coroutine[Any, Any, None]]:
        return (self._injectables.run(),)

    # --- one variant --------------------------------------------------------------------------------

    async def _reconcile(self, key: Key) -> Result:
        if self._finished.is_finished(key) and not self._suspects(key):
            self._counts.passes[SKIPPED] += 1
            await asyncio.sleep(0)  # ten thousand of these in a row would be a second in which nothing else happens
            return Result()
        begun, drifted, token = self._finished.begin(key), self._drifted(key), working_on.set(key)
        try:
            result = await self._reconciler.reconcile(key)
        except BaseException:
            self._counts.passes[FAILED] += 1
            if self._check is not None:
                self._check.forget(key)  # what was written may tell of the failure
            raise
        finally:
            working_on.reset(token)
        if result == Result():
            self._finished.finish(key, begun)
        if self._check is not None:
            self._check.looked(key)
        if self._caches.variant(key) is None:
            self._forget(key)
        self._counts.passes[self._outcome(key)] += 1
        if (now := self._drifted(key)) and now != drifted:
            self._counts.drifts[now] += 1
        return result

    def _suspects(self, key: Key) -> bool:
        return self._check is not None and self._check.suspects(key)

    def _outcome(self, key: Key) -> str:
        variant = self._caches.variant(key)
        if variant is None:
            return GONE
        ready = variant.condition("Ready")
        return PAUSED if variant.paused or ready is None else ready.reason

    def _drifted(self, key: Key) -> str:
        """Return the reason of the condition Drifted, empty where the variant has not."""
        variant = self._caches.variant(key)
        drifted = variant.condition("Drifted") if variant else None
        return drifted.reason if drifted and drifted.status == "True" else ""

    def _count_draft(self, draft: Revision) -> None:
        """Count a draft that was made for the variant that is worked on."""
        key = working_on.get()
        variant = self._caches.variant(key) if key else None
        if variant is not None and draft.owned_by(variant.uid):
            self._counts.drafts[_trigger(draft, variant)] += 1

    # --- events -------------------------------------------------------------------------------------

    def _wake(self, keys: Iterable[Key], priority: Priority = Priority.CHANGE) -> None:
        for key in keys:
            self._finished.woken(key)
            self._queue.add(key, priority)

    def _happened(self, informer: Informer[Any], name: str, woken: set[Key]) -> None:
        """Wake those whom an event concerns."""
        self._wake(woken)
        self._checked(informer, name, woken)

    def _checked(self, informer: Informer[Any], name: str, woken: set[Key]) -> None:
        if self._check is not None:
            self._check.happened(f"{informer.resource.plural}/{name}", woken)

    def _wake_to_tell(self, key: Key) -> None:
        """Wake a variant that has only something to tell, once the status that it wrote last has stood for a while."""
        self._finished.woken(key)
        since = asyncio.get_running_loop().time() - self._writes.told.get(key, -math.inf)
        self._queue.add_after(key, self._tell_seconds - since)

    def _variant_changed(self, old: CachedVariant | None, new: CachedVariant | None) -> None:
        if old is not None and (new is None or new.uid != old.uid):
            self._forget(old.key)
        self._wake(wakeups.by_variant(old, new), Priority.USER)

    def _forget(self, key: Key) -> None:
        self._injectables.forget(key)
        self._finished.forget(key)
        self._guard.forget(key)
        if self._check is not None:
            self._check.forget(key)
        self._writes.forget(key)
        self._queue.forget(key)

    def _revision_changed(self, old: Revision | None, new: Revision | None) -> None:
        woken = wakeups.by_revision(old, new, self._caches, self._caches)
        woken -= {self._views.saved_for(new)}
        patient = {key for key in woken if self._can_wait(key, old, new)}
        self._wake(woken - patient)
        for key in patient:
            self._wake_to_tell(key)
        self._checked(self._caches.package_revisions, _name_of(old, new), woken)

    def _can_wait(self, key: Key, old: Revision | None, new: Revision | None) -> bool:
        variant = self._caches.variant(key)
        return variant is not None and wakeups.can_wait(variant, old, new)

    def _repository_changed(self, old: CachedRepository | None, new: CachedRepository | None) -> None:
        self._happened(self._caches.repositories, _name_of(old, new), wakeups.by_repository(old, new, self._caches))

    def _definition_changed(self, old: ServedKind | None, new: ServedKind | None) -> None:
        if changed := came_or_went(old, new):
            self._injectables.definitions_changed(changed)


def _name_of(old: Cached | None, new: Cached | None) -> str:
    one = new or old
    return one.name if one is not None else ""


def _trigger(draft: Revision, variant: CachedVariant) -> str:
    if draft.task == "clone":
        return INITIAL
    if draft.task == "upgrade":
        return UPSTREAM_CHANGED
    is_edited = variant.observed_generation != variant.generation or not variant.injectors
    return SPEC_CHANGED if is_edited else INJECTION_CHANGED


def package_variant_controller(
    client: KubeClient, recorder: EventRecorder, options: Options
) -> PackageVariantController:
    """Return a controller of PackageVariants, made of its parts."""
    return PackageVariantController(client, recorder, options)
