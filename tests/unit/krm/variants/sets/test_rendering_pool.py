"""Several processes that render: a large set is shared by two of them, and one stays free for others."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from set_tables import package_variant_set, repositories, upstream

from krm.variants.sets.rendering import render
from krm.variants.sets.rendering_pool import SHARED, RenderingPool
from krm.variants.sets.rendering_worker import RenderingUnavailable
from krm.variants.sets.targets import Context, SelectedObject, unroll

Json = dict[str, Any]
UPSTREAM = {"repo": "catalog", "package": "foo", "revision": "v1"}
SLOW = "[{0}].map(a, [{0}].map(b, target.name).join()).join()".format(", ".join(map(str, range(100))))


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[RenderingPool]:
    made = RenderingPool()
    yield made
    await made.close()


def fleet(count: int, expression: str = "'p-' + target.name") -> tuple[Json, list[Context], dict[str, SelectedObject]]:
    known = repositories({f"cluster-{number:05}": {"region": f"r{number % 7}"} for number in range(count)})
    template = {"downstream": {"packageExpr": expression}}
    body = package_variant_set({"upstream": UPSTREAM, "targets": [{"repositorySelector": {}, "template": template}]})
    return body, unroll(body["spec"], "default", list(known.values()), {}).contexts, known


def processes() -> set[int]:
    """Return the processes that this one started to render."""
    found = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            command = (stat.parent / "cmdline").read_text()
        except (FileNotFoundError, ProcessLookupError):  # it ended meanwhile
            continue
        if int(fields[1]) == os.getpid() and "rendering_process" in command:
            found.add(int(stat.parent.name))
    return found


async def test_two_processes_share_a_large_set_and_keep_its_order(pool: RenderingPool) -> None:
    body, contexts, known = fleet(SHARED + 1)

    found = await pool.render(body, upstream(), contexts, known)

    assert found == render(body, upstream(), contexts, known)
    assert len(processes()) == 2
    assert (pool.renderings, pool.targets) == (1, SHARED + 1)


async def test_one_process_renders_a_small_set(pool: RenderingPool) -> None:
    body, contexts, known = fleet(3)

    assert await pool.render(body, upstream(), contexts, known) == render(body, upstream(), contexts, known)
    assert await pool.render(body, upstream(), [], known) == []
    assert len(processes()) == 1


async def test_a_small_set_does_not_wait_for_large_ones(pool: RenderingPool) -> None:
    body, contexts, known = fleet(SHARED, SLOW)
    small, few, their = fleet(1)
    large = asyncio.create_task(pool.render(body, upstream(), contexts, known))
    async with asyncio.timeout(60):
        while len(processes()) < 2:
            await asyncio.sleep(0.01)

    found = await pool.render(small, upstream(), few, their)

    assert found == render(small, upstream(), few, their)
    assert not large.done()
    large.cancel()
    await asyncio.gather(large, return_exceptions=True)


async def test_a_large_set_is_not_rendered_by_half(pool: RenderingPool) -> None:
    body, contexts, known = fleet(SHARED, SLOW)
    large = asyncio.create_task(pool.render(body, upstream(), contexts, known))
    async with asyncio.timeout(60):
        while len(found := processes()) < 2:
            await asyncio.sleep(0.01)

    os.kill(min(found), signal.SIGKILL)

    with pytest.raises(RenderingUnavailable):
        await large
