"""The whole controller of sets over the model: informers, watches of selected objects, queue, workers, in virtual time.

Requests take a while and may fail, watches are late, break and expire; the process may die at any request, and everybody else
works meanwhile. What happens when follows from one seed.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry
from variant_model.live import REST, LiveClient, LiveProcess, Runs, in_virtual_time, play, stays
from variant_model.people import Step

from controllers.packagevariantset.controller import Options, PackageVariantSetController
from controllers.runtime.metrics import ControllerMetrics
from krm.variants.revisions import Revision
from krm.variants.sets.rendering import Rendered, render
from krm.variants.sets.targets import Context, SelectedObject
from set_model.invariants import Ledger, check_end
from set_model.people import People
from set_model.surroundings import Surroundings

Json = dict[str, Any]


class RenderedAtOnce:
    """Renders in this process, where the product has others that take real time."""

    renderings = targets = 0
    seconds = 0.0
    upstream_identity = False

    async def render(
        self,
        set_body: Json,
        upstream: Revision,
        contexts: Sequence[Context],
        repositories: Mapping[str, SelectedObject],
    ) -> list[Rendered]:
        """Do what ``RenderingPool.render`` does."""
        await asyncio.sleep(0.1)
        return render(set_body, upstream, contexts, repositories)

    async def close(self) -> None:
        """Nothing is open."""


class SetClient(LiveClient):
    """The requests and watches of one controller process."""

    def of_metadata(self) -> "SetClient":
        """Whole objects will do."""
        return self


class LiveSets(LiveProcess):
    """The controller of sets."""

    client_class = SetClient

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.people = People(self.porch)
        self.people.prepare()
        self.ledger = Ledger(self.porch, self.people, self.faults)
        self.surroundings = Surroundings(self.porch, self.people, self.luck.random)

    def made(self, client: LiveClient) -> Runs:
        options = Options(ControllerMetrics(CollectorRegistry()), workers=2)
        controller = PackageVariantSetController(client, self.notes, options)  # type: ignore[arg-type]
        controller._reconciler._pool = controller._counts._pool = controller._pool = RenderedAtOnce()  # type: ignore[assignment]
        return controller

    def does(self, step: Step) -> None:
        """Let a user do something."""
        self.people.does(step)
        self.ledger.people_did()

    def holds_always(self) -> None:
        self.ledger.check()

    def holds_in_the_end(self) -> None:
        check_end(self.porch, self.people)


async def others_work(live: LiveSets) -> None:
    """Let everybody else do what there is to do, until cancelled."""
    while True:
        await asyncio.sleep(live.luck.random.choice((0.05, 0.2, 1.0)))
        while not live.surroundings.work():
            await live.luck.told(REST)
        live.check()


async def _play(live: LiveSets, script: Sequence[tuple[float, Step | None]]) -> None:
    others = asyncio.create_task(others_work(live))
    await play(live, script)
    await _repaired(live)
    others.cancel()


async def _repaired(live: LiveSets) -> None:
    """Once people have taken away all that holds a set up, it is what it should be, whatever happened before."""
    live.people.repair()
    live.ledger.people_did()
    live.start()
    await asyncio.sleep(REST)
    await live.stop()
    assert not live.failures, live.failures[0]
    live.holds_in_the_end()
    await stays(live, live.start)
    await live.stop()


def play_live_sets(script: Sequence[tuple[float, Step | None]], seed: int) -> LiveSets:
    """Play a script of users' steps, each after a pause in seconds (None: the process is killed), and check the end."""
    live = LiveSets(seed)
    in_virtual_time(lambda: _play(live, script))
    return live
