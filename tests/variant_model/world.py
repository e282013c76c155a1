"""A server, its users and one controller process, moved step by step by a test: what arrives when, what fails, who dies.

The reconciler is the product's; its caches are behind by as much as the test likes; what it asks of the server passes the
test's faults. Nothing runs by itself: the event loop only carries the coroutines.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from controllers.packagevariant.cached_values import CachedVariant
from controllers.packagevariant.churn import ChurnGuard
from controllers.packagevariant.drift import report_drift
from controllers.packagevariant.reconciler import PackageVariantReconciler
from variant_model.caches import KINDS, Key, StaleViews
from variant_model.client import CONTROLLER, Crash, Fault, Faults, ModelClient
from variant_model.concerned import concerned
from variant_model.people import NAMESPACE, People, Step
from variant_model.porch import VARIANTS, PorchModel

Json = dict[str, Any]
ARRIVALS = "arrivals"
"""Name of the step in which not a user does something, but everything arrives."""
MOST_PASSES = 60
"""Of one variant until it must have come to rest, when nothing fails any more."""


class Notes:
    """Takes the controller's events (core v1)."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, str, str]] = []

    def event(self, body: Json, type_: str, reason: str, message: str) -> None:
        self.taken.append((type_, reason, message))


class World:
    """Everything, and what is in the controller's queue."""

    def __init__(self, *, points: bool = True) -> None:
        """``points``: The upstream package has an injection point."""
        self.porch = PorchModel()
        self.people = People(self.porch, points=points)
        self.people.prepare()
        self.faults = Faults()
        self.notes = Notes()
        self.queue: dict[Key, None] = {}
        self.inherited: set[tuple[str, str]] = set()
        """Revisions, by name and creation, of which it is known what their users' edits are."""
        self.left: set[tuple[str, str]] = set()
        """Revisions, by name and creation, that had no owner once."""
        self.check: Callable[[], None] = lambda: None
        """Called after every request of the controller and after every step of a user."""
        self._loop = asyncio.new_event_loop()
        self.start()

    def close(self) -> None:
        """End the event loop."""
        self._loop.close()

    # --- the controller's process ----------------------------------------------------------------------

    def start(self) -> None:
        """Start the controller's process with an empty memory."""
        self.client = ModelClient(self.porch, self.faults, self._checked)
        self.queue.clear()
        self.views = StaleViews(self.porch, concerned, self.wake)
        guard = ChurnGuard(self._cached, lambda _, uid: self.views.owned(NAMESPACE, uid), clock=self._seconds)
        self.reconciler = PackageVariantReconciler(
            self.client, self.views, self.notes, guard=guard, drift=report_drift, clock=lambda: self.porch.now
        )
        for variant in self.views.variants():
            self.wake((NAMESPACE, variant["metadata"]["name"]))

    def _cached(self, key: Key) -> CachedVariant | None:
        body = self.views.variant(*key)
        return None if body is None else CachedVariant.of(body)

    def _seconds(self) -> float:
        return self.porch.now.timestamp()

    def _checked(self) -> None:
        self.check()

    def wake(self, key: Key) -> None:
        """Put a variant into the queue."""
        self.queue[key] = None

    def reconcile(self, key: Key) -> None:
        """Work on one variant until its reconcile ends, fails or the process dies."""
        self.queue.pop(key, None)
        try:
            result = self._loop.run_until_complete(self.reconciler.reconcile(key))
        except Crash:
            self.start()
        except AssertionError:
            raise  # what must hold did not
        except Exception as error:  # noqa: BLE001 - the queue tries again after every error
            self.last_error = error
            self.wake(key)
        else:
            if result.requeue_after is not None:
                self.wake(key)

    def work(self, plan: Mapping[int, Fault], meanwhile: Mapping[int, Step], choice: int) -> None:
        """Take a variant out of the queue and work on it, with faults and with users who do not wait."""
        if not self.queue:
            return
        key = sorted(self.queue)[choice % len(self.queue)]
        self.faults.asked = 0
        self.faults.plan = dict(plan)
        self.faults.meanwhile = {place: self._meanwhile(step) for place, step in meanwhile.items()}
        self.reconcile(key)
        self.faults.plan.clear()
        self.faults.meanwhile.clear()

    def _meanwhile(self, step: Step) -> Callable[[], None]:
        return self.views_catch_up if step.name == ARRIVALS else lambda: self.user(step)

    def views_catch_up(self) -> None:
        """Let everything arrive, and the server do what it was asked for."""
        self.faults.finish()
        self.views.deliver_all()

    def user(self, step: Step) -> None:
        """Let a user do something."""
        self.people.does(step)
        self.check()

    # --- coming to rest ----------------------------------------------------------------------------------

    def settle(self) -> None:
        """Let everything arrive and everything be done, without faults."""
        self.faults.plan.clear()
        self.faults.finish()
        self.views.deliver_all()
        passes: dict[Key, int] = {}
        while self.queue:
            key = min(self.queue, key=lambda each: passes.get(each, 0))
            passes[key] = passes.get(key, 0) + 1
            before = len(self.porch.writes)
            self.reconcile(key)
            self.views.deliver_all()
            if len(self.porch.writes) == before and key in self.queue and passes[key] > 3:
                self.queue.pop(key)  # an error that stays, told in the status
            assert passes[key] < MOST_PASSES, f"{key} does not come to rest:\n" + "\n".join(self.client.requests[-30:])

    def writes_of(self, work: Callable[[], None]) -> list[str]:
        """Return what the controller writes while ``work`` runs."""
        before = len(self.porch.writes)
        work()
        return [
            f"{each.verb} {each.plural}/{each.name} {each.subresource}"
            for each in self.porch.writes[before:]
            if each.by == CONTROLLER
        ]

    def resync(self) -> None:
        """Work on every variant again."""
        for variant in self.porch.all(VARIANTS):
            self.wake((NAMESPACE, variant["metadata"]["name"]))
        self.settle()

    def deliver(self, kinds: Iterable[int]) -> None:
        """Let one event of each of the chosen kinds arrive."""
        for kind in kinds:
            self.views.deliver(KINDS[kind % len(KINDS)])
