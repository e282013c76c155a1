"""An approver whose requests fail, get lost or are the last before it dies; and people who write at the same time.

Each step is taken once, whatever happens: a package that is published twice would have two revisions. Source: ``variants.md``
6.3, I2, I3.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from drafts import accepted
from eventually import eventually
from git_server import GitServer
from porch_process import PorchProcess
from prometheus_client import CollectorRegistry
from recording_client import Fault, Killed, Recording, Write, recording_client
from variant_place import DOWNSTREAM, Place, new_place, with_blueprint

from controllers.approval.controller import Options, approval_controller
from controllers.runtime.metrics import ControllerMetrics
from controllers.runtime.status import Recorder
from krm.client.errors import Unanswered, Unreachable
from krm.meta.errors import Conflict, Forbidden, InternalError, TooManyRequests

Json = dict[str, Any]
NAME = f"{DOWNSTREAM}.own.ws-1"
ONCE = ["PUT PR own.ws-1 Proposed", "PUT PR own.ws-1 approval Published"]

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def place(porch_server: PorchProcess, git_http: GitServer, namespace: str) -> Iterator[Place]:
    """A place with a draft that may be published, and an approval policy."""
    made = with_blueprint(new_place(porch_server, git_http, namespace))
    made.new_draft("own")
    eventually(lambda: _is_ready(made))
    made.edit(NAME, _always)
    yield made
    made.porch.close()


def _is_ready(place: Place) -> None:
    assert all(one["status"] == "True" for one in place.revision(NAME)["status"]["conditions"])


def _always(body: Json) -> None:
    body["metadata"]["annotations"] = {"approval.nephio.org/policy": "always"}


@asynccontextmanager
async def approver(
    place: Place, metrics: ControllerMetrics | None = None
) -> AsyncIterator[tuple[Recording, "asyncio.Task[None]"]]:
    """Run the approver until the block ends, with what it writes."""
    async with recording_client(place.server.kubeconfig) as client:
        recorder = Recorder(client, "approval-controller")
        options = Options(
            metrics or ControllerMetrics(CollectorRegistry()), (place.namespace, "no-lease"), 4, place.namespace
        )
        controller = approval_controller(client, recorder, options)
        tasks = [asyncio.create_task(controller.run()), asyncio.create_task(recorder.run())]
        try:
            yield client.recording, tasks[0]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def published(place: Place) -> None:
    """Wait until the draft is published, as the only revision of its package."""

    def check() -> None:
        assert place.revisions_of("own") == {"ws-1": "Published"}
        assert place.revision(NAME)["spec"]["revision"] == 1

    await asyncio.to_thread(eventually, check)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not true():
            await asyncio.sleep(0.02)


def steps(recording: Recording) -> list[str]:
    """Return the writes that the server did."""
    return [write.line for write in recording.accepted]


def of(lifecycle: str) -> Callable[[Write], bool]:
    """Choose the writes that give a lifecycle."""
    return lambda write: write.body.get("spec", {}).get("lifecycle") == lifecycle


async def test_each_step_is_one_write(place: Place) -> None:
    async with approver(place) as (recording, _):
        await published(place)
        await until(lambda: len(steps(recording)) == len(ONCE) and len(recording.events) == 2)
        await asyncio.sleep(1)
    assert [write.line for write in recording.writes] == ONCE
    assert [event["reason"] for event in recording.events] == ["Proposed", "Published"]


@pytest.mark.parametrize("done", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("lifecycle", ["Proposed", "Published"])
@pytest.mark.parametrize(
    "error",
    [
        lambda: Unanswered("the connection broke"),
        lambda: Unreachable("no connection"),
        lambda: InternalError("boom"),
        lambda: TooManyRequests("later"),
        lambda: Conflict("another request is already in progress"),
    ],
    ids=["unanswered", "unreachable", "500", "429", "409"],
)
async def test_a_step_that_fails_is_taken_once(
    place: Place,
    error: Callable[[], Exception],
    lifecycle: str,
    done: bool,  # a table
) -> None:
    async with approver(place) as (recording, _):
        recording.faults.append(Fault(of(lifecycle), error, done=done, times=1 if done else 3))
        await published(place)
        await until(lambda: len(steps(recording)) == len(ONCE))
        await asyncio.sleep(0.5)
    assert steps(recording) == ONCE


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_one_that_dies_at_a_write_is_followed_by_the_next(place: Place, number: int, after: bool) -> None:
    def die(count: int, _: Write) -> None:
        if count == number:
            raise Killed

    async with approver(place) as (recording, task):
        if after:
            recording.after_each = die
        else:
            recording.before_each = die
        with pytest.raises((Killed, BaseExceptionGroup)):
            await task
        written = steps(recording)
    async with approver(place) as (recording, _):
        await published(place)
        await until(lambda: len(written + steps(recording)) == len(ONCE))
        await asyncio.sleep(0.5)
    assert written + steps(recording) == ONCE


async def test_people_who_write_all_the_time_do_not_keep_it_from_its_work(place: Place) -> None:
    """Each of their writes makes the version old that a step was decided for."""

    def label(number: int) -> None:
        porch = place.server.client(
            place.namespace
        )  # of its own: this is called while the test waits on its connection
        patch = {"metadata": {"labels": {"edited": str(number)}}}
        try:
            path = porch.path("packagerevisions", NAME)
            accepted(porch.request("PATCH", path, patch, content_type="application/merge-patch+json"))
        finally:
            porch.close()

    async with approver(place) as (recording, _):
        recording.before_each = lambda number, _: label(number) if number <= 4 else None
        await published(place)
        await until(lambda: len(steps(recording)) == len(ONCE))
    assert steps(recording) == ONCE
    assert len(recording.writes) > len(ONCE)


async def test_a_gate_that_is_closed_at_the_last_moment_holds(place: Place) -> None:
    """The version that was decided about is not there any more, and what there is now is not ready."""

    def close(body: Json) -> None:
        body["spec"]["readinessGates"].append({"conditionType": "example.com/Reviewed"})

    def close_first(number: int, _: Write) -> None:
        if number == 1:
            place.edit(NAME, close)

    async with approver(place) as (recording, _):
        recording.before_each = close_first
        await asyncio.sleep(3)
    assert steps(recording) == []
    assert place.revisions_of("own") == {"ws-1": "Draft"}


async def test_what_the_server_refuses_is_told_and_tried_again(place: Place) -> None:
    refusal = Fault(of("Proposed"), lambda: Forbidden("not yet"), times=2)
    metrics = ControllerMetrics(CollectorRegistry())
    async with approver(place, metrics) as (recording, _):
        recording.faults.append(refusal)
        await published(place)
        await until(lambda: counts(metrics).get(("porch_approvals_total", "Published", "annotation")) == 1)
        await until(lambda: "ApprovalRefused" in {event.get("reason") for event in recording.events})
        counted = counts(metrics)
    assert steps(recording) == ONCE
    assert counted == {
        ("porch_approvals_total", "Proposed", "annotation"): 1,
        ("porch_approvals_total", "Published", "annotation"): 1,
        ("porch_approvals_refused_total", "Proposed", "annotation"): 2,
        ("porch_approvals_stopped", None, None): 0,
    }


def counts(metrics: ControllerMetrics) -> dict[tuple[str, str | None, str | None], float]:
    """Return what is counted of approvals, by metric, step and source."""
    return {
        (one.name, one.labels.get("step"), one.labels.get("source")): one.value
        for family in metrics.registry.collect()
        for one in family.samples
        if one.name.startswith("porch_approvals")
    }
