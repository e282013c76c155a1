"""Rendering in a process of its own: the same as here, bounded in time and memory, and another one after its death."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from cost import metered
from set_tables import package_variant_set, repositories, selected, upstream

from krm.variants.sets.rendering import Rendered, render
from krm.variants.sets.rendering_worker import (
    RenderingTimeout,
    RenderingTooLarge,
    RenderingUnavailable,
    RenderingWorker,
)
from krm.variants.sets.targets import Context, SelectedObject, unroll

Json = dict[str, Any]
UPSTREAM = {"repo": "catalog", "package": "foo", "revision": "v1"}
SECONDS = 90.0
SLOW = "[{0}].map(a, [{0}].map(b, 'x').join()).join()".format(", ".join(map(str, range(150))))
"""An expression that takes as many steps as one may: a tenth of a second."""


@pytest_asyncio.fixture
async def worker() -> AsyncIterator[RenderingWorker]:
    made = RenderingWorker()
    yield made
    await made.close()


def fleet(count: int, template: Json | None = None) -> tuple[Json, list[Context], dict[str, SelectedObject]]:
    known = repositories({f"cluster-{number:04}": {"region": f"r{number % 7}"} for number in range(count)})
    body = package_variant_set({"upstream": UPSTREAM, "targets": [{"repositorySelector": {}, "template": template}]})
    return body, unroll(body["spec"], "default", list(known.values()), {}).contexts, known


async def rendered(
    worker: RenderingWorker, body: Json, contexts: Any, known: Any, seconds: float = SECONDS
) -> list[Rendered]:
    return await worker.render(body, upstream(), contexts, known, seconds=seconds)


async def test_a_process_renders_what_this_one_would(worker: RenderingWorker) -> None:
    template = {
        "downstream": {"packageExpr": "target.labels.region == 'r3' ? target.labels.none : 'p'"},
        "labelExprs": [{"key": "region", "valueExpr": "repository.labels['region'] + upstream.namespace"}],
        "annotations": {"note": "ünïcode \u2028"},
    }
    body, _, known = fleet(700, template)
    teams = [selected(f"team-{number}", {"region": "r1"}, ("x/v1", "Team")) for number in range(3)]
    body["spec"]["targets"].append({"repositories": [{"name": "cluster-0001"}, {"name": "none"}]})
    body["spec"]["targets"].append({"objectSelector": {"apiVersion": "x/v1", "kind": "Team"}, "template": template})
    more = unroll(body["spec"], "default", list(known.values()), {("x/v1", "Team"): teams}).contexts

    found = await rendered(worker, body, more, known)

    assert found == render(body, upstream(), more, known)
    assert len(found) == 705
    assert sum(one.spec is None for one in found) == 104


@pytest.mark.parametrize(
    "downstream",
    [{"repo": "cluster-0005"}, {"repo": "none"}, {"repoExpr": "'cluster-000' + target.labels.region.charAt(1)"}],
)
async def test_a_process_knows_the_repositories_that_it_needs(worker: RenderingWorker, downstream: Json) -> None:
    template = {
        "downstream": downstream,
        "labelExprs": [{"key": "at", "valueExpr": "target.name + '-' + repository.name"}],
    }
    body, contexts, known = fleet(9, template)

    found = await rendered(worker, body, contexts[:4], known)

    assert found == render(body, upstream(), contexts[:4], known)


async def test_an_administrator_can_let_a_process_see_the_upstream() -> None:
    worker = RenderingWorker(upstream_identity=True)
    body, contexts, known = fleet(1, {"labelExprs": [{"key": "is", "valueExpr": "string(upstream.revision)"}]})
    try:
        (found,) = await rendered(worker, body, contexts, known)
    finally:
        await worker.close()

    assert found.spec is not None
    assert found.spec["labels"] == {"is": "0"}


async def test_nothing_to_render_is_nothing(worker: RenderingWorker) -> None:
    assert await rendered(worker, fleet(0)[0], [], {}) == []


async def test_one_process_works_for_all_sets_in_turn(worker: RenderingWorker) -> None:
    body, contexts, known = fleet(30)

    several = await asyncio.gather(*(rendered(worker, body, contexts, known) for _ in range(4)))
    pid = worker.pid
    again = await rendered(worker, body, contexts, known)

    assert several == [again] * 4
    assert worker.pid == pid is not None


async def test_the_deadline_kills_and_the_next_set_is_rendered(worker: RenderingWorker) -> None:
    slow = fleet(
        2000, {"annotationExprs": [{"key": f"k{place}", "valueExpr": f"{SLOW} + '{place}'"} for place in range(20)]}
    )
    quick = fleet(3)
    await rendered(worker, *quick)
    before = worker.pid
    assert before is not None

    with pytest.raises(RenderingTimeout, match=r"rendering took more than 0\.5 s"):
        await rendered(worker, *slow, seconds=0.5)

    assert worker.pid is None
    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)
    assert len(await rendered(worker, *quick)) == 3


async def test_cancelling_kills(worker: RenderingWorker) -> None:
    slow = fleet(
        2000, {"annotationExprs": [{"key": f"k{place}", "valueExpr": f"{SLOW} + '{place}'"} for place in range(20)]}
    )
    await rendered(worker, *fleet(1))
    before = worker.pid
    assert before is not None
    task = asyncio.create_task(rendered(worker, *slow))
    await asyncio.sleep(0.3)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    with pytest.raises(ProcessLookupError):
        os.kill(before, 0)
    assert len(await rendered(worker, *fleet(2))) == 2


async def test_a_process_that_is_killed_is_replaced(worker: RenderingWorker) -> None:
    slow = fleet(
        2000, {"annotationExprs": [{"key": f"k{place}", "valueExpr": f"{SLOW} + '{place}'"} for place in range(20)]}
    )
    await rendered(worker, *fleet(1))
    task = asyncio.create_task(rendered(worker, *slow))
    await asyncio.sleep(0.3)
    assert worker.pid is not None

    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(RenderingUnavailable, match="ended"):
        await task

    assert len(await rendered(worker, *fleet(2))) == 2


async def test_a_process_that_died_while_idle_is_replaced(worker: RenderingWorker) -> None:
    await rendered(worker, *fleet(1))
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    while worker._process is not None and worker._process.returncode is None:
        await asyncio.sleep(0.01)

    assert len(await rendered(worker, *fleet(2))) == 2


async def test_memory_is_bounded() -> None:
    worker = RenderingWorker(memory=160 << 20)
    text = "a" * 50_000
    template = {"annotations": {f"k{place}": text for place in range(20)}}
    body, contexts, known = fleet(3000, {**template, "annotationExprs": [{"key": "n", "valueExpr": "target.name"}]})
    try:
        with pytest.raises(RenderingTooLarge):
            await rendered(worker, body, contexts, known)

        assert len(await rendered(worker, *fleet(2))) == 2
    finally:
        await worker.close()


async def test_what_is_no_json_is_refused_at_once(worker: RenderingWorker) -> None:
    body, contexts, known = fleet(2, {"labels": {"a": "\ud800"}})

    with pytest.raises(RenderingTooLarge, match="cannot be rendered"):
        await rendered(worker, body, contexts, known)

    known["cluster-0001"] = selected("cluster-0001", {"a": "\ud800"})
    with pytest.raises(RenderingTooLarge, match="cannot be rendered"):
        await rendered(worker, fleet(2)[0], contexts, known)


async def test_an_interpreter_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = RenderingWorker()
    monkeypatch.setattr("sys.executable", "/nonexistent/python")

    with pytest.raises(RenderingUnavailable, match="does not start"):
        await rendered(worker, *fleet(1))


async def test_the_event_loop_goes_on_meanwhile(worker: RenderingWorker) -> None:
    many = fleet(5000, {"labelExprs": [{"key": "region", "valueExpr": "target.labels.region"}]})
    await rendered(worker, *fleet(1))
    longest, stop = 0.0, False

    async def look() -> None:
        nonlocal longest
        while not stop:
            with metered() as cost:  # what the loop itself works on: other processes are not its doing
                await asyncio.sleep(0)
            longest = max(longest, cost.seconds)

    looking = asyncio.create_task(look())
    found = await rendered(worker, *many)
    stop = True
    await looking

    assert len(found) == 5000
    assert 0 < longest < 0.1


async def test_closing_twice_changes_nothing(worker: RenderingWorker) -> None:
    await rendered(worker, *fleet(1))

    await worker.close()
    await worker.close()

    assert worker.pid is None
