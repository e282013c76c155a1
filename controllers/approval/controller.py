"""Has every package revision with an approval policy looked at when something changed for it.

Separate from the controller of variants, which never approves: another process, user, permission and Lease. The annotation
``config.porch.kpt.dev/paused: "true"`` of that Lease stops it at once. Source: ``variants.md`` 6.3 and 6.10.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import structlog

from controllers.approval import wakeups
from controllers.approval.approver import Approver
from controllers.approval.caches import Caches, Key, Switch, package_of
from controllers.approval.controller_metrics import ApprovalMetrics
from controllers.approval.released import ReleasedRevisions
from controllers.runtime.controller import Controller
from controllers.runtime.informed_controller import InformedController
from controllers.runtime.metrics import ControllerMetrics
from controllers.runtime.status import EventRecorder
from controllers.runtime.workqueue import Priority
from krm.client.client import KubeClient
from krm.variants.approval import POLICY_ANNOTATION, ApprovingVariant, Candidate

log = structlog.get_logger()

NAME: Final = "approval"


@dataclass(frozen=True, slots=True)
class Options:
    """How the controller runs."""

    metrics: ControllerMetrics
    lease: Key
    """Namespace and name of the Lease whose annotation stops it."""
    workers: int = 16
    """Approvals at the same time."""
    namespace: str | None = None
    """None for all namespaces."""


class ApprovalController(InformedController):
    """Approves while ``run`` runs, which it does once."""

    def __init__(self, client: KubeClient, recorder: EventRecorder, options: Options) -> None:
        self._queue = options.metrics.queue(NAME)
        self._caches = Caches(client, options.namespace, options.lease)
        self._released = ReleasedRevisions(self._caches.variant)
        self._counts = ApprovalMetrics(lambda: self._caches.switched_off)
        self._approver = Approver(client, self._caches, recorder, self._released, self._counts)
        controller = Controller(NAME, self._approver.reconcile, self._queue, options.workers, options.metrics)
        super().__init__(controller, self._caches, self._counts, options.metrics.registry)

    def resync(self) -> None:
        """Have every package revision with a policy looked at, when nothing more urgent waits."""
        for one in self._caches.revisions.values():
            if wakeups.is_open(one) and self._has_policy(one):
                self._queue.add((one.namespace, one.name), Priority.RESYNC)

    def _begin(self) -> None:
        self._caches.revisions.subscribe(self._revision_changed)
        self._caches.variants.subscribe(self._variant_changed)
        self._caches.switch.subscribe(self._switch_changed)
        log.info("approval policies are followed", off=self._caches.switched_off)

    def _has_policy(self, candidate: Candidate) -> bool:
        if POLICY_ANNOTATION in candidate.revision.annotations:
            return True
        owner = self._approver.owner(candidate)
        return owner is not None and owner.approval is not None

    # --- events -------------------------------------------------------------------------------------

    def _wake(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._queue.add(key)

    def _revision_changed(self, old: Candidate | None, new: Candidate | None) -> None:
        self._released.revision_changed(old, new)
        if new is None and old is not None:
            self._queue.forget((old.namespace, old.name))
        self._wake(
            wakeups.by_revision(old, new, self._has_policy, lambda one: self._caches.of_package(*package_of(one)))
        )

    def _variant_changed(self, old: ApprovingVariant | None, new: ApprovingVariant | None) -> None:
        if new is None and old is not None:
            self._released.variant_gone(old)
        if (one := new or old) is not None and (new is None or new.deleting):
            self._wake(self._released.of(one.uid))
        self._wake(wakeups.by_variant(old, new, lambda one: self._caches.owned(one.namespace, one.uid)))

    def _switch_changed(self, old: Switch | None, new: Switch | None) -> None:
        was_off, is_off = old is not None and old.off, new is not None and new.off
        if was_off != is_off:
            log.warning("approvals are stopped" if is_off else "approvals go on")
        if was_off and not is_off:
            self.resync()


def approval_controller(client: KubeClient, recorder: EventRecorder, options: Options) -> ApprovalController:
    """Return the controller of approval policies, made of its parts."""
    return ApprovalController(client, recorder, options)
