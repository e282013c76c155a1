"""Claims: whoever overlaps is refused at once, whoever comes after is not."""

import asyncio

import pytest

from apiserver.engine.claims import BUSY, Claims
from krm.meta.errors import Conflict, ResourceName

REVISIONS = ResourceName("packagerevisions", "porch.kpt.dev")


async def test_a_second_write_of_one_revision_is_refused_while_the_first_runs() -> None:
    claims = Claims()
    async with claims.claim(REVISIONS, "ns", "a"):
        assert claims.held("ns", "a")
        with pytest.raises(Conflict, match=f'"a": {BUSY} on package revision "ns/a"'):
            async with claims.claim(REVISIONS, "ns", "a"):
                pytest.fail("two writes at once")
        async with claims.claim(REVISIONS, "ns", "b"):
            assert claims.held("ns", "b")
    assert not claims.held("ns", "a")


async def test_writes_one_after_the_other_are_not_refused() -> None:
    claims = Claims()
    for _ in range(3):
        async with claims.claim(REVISIONS, "ns", "a"):
            pass


async def test_a_write_that_waits_for_nothing_still_meets_one_that_has_arrived() -> None:
    claims = Claims()

    async def write() -> None:
        async with claims.claim(REVISIONS, "ns", "a"):
            pass

    outcomes = await asyncio.gather(write(), write(), return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [type(None), Conflict]


async def test_a_write_that_fails_gives_its_claim_up_at_once() -> None:
    claims = Claims()
    with pytest.raises(ValueError, match="bad"):
        async with claims.claim(REVISIONS, "ns", "a"):
            raise ValueError("bad")
    assert not claims.held("ns", "a")


async def test_a_write_that_is_cancelled_gives_its_claim_up() -> None:
    claims, begun = Claims(), asyncio.Event()

    async def write() -> None:
        async with claims.claim(REVISIONS, "ns", "a"):
            begun.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(write())
    await begun.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert not claims.held("ns", "a")
