"""Each key once, never two workers on one key, failures with growing delays."""

import asyncio
import time

import pytest

from apiserver.resources.work_queue import WorkQueue


async def test_keys_come_in_order_and_each_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    for key in ("b", "a", "b"):
        queue.add(key)

    assert [await queue.take(), await queue.take()] == ["b", "a"]
    assert len(queue) == 2
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.take(), 0.02)


async def test_a_key_added_while_it_is_worked_on_comes_again_afterwards() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.take()
    queue.add("a")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.take(), 0.02)

    queue.done("a")

    assert await queue.take() == "a"
    queue.done("a")
    assert len(queue) == 0


async def test_failures_come_back_later_and_later_until_they_succeed() -> None:
    queue: WorkQueue[str] = WorkQueue(first_delay=0.02, longest_delay=0.05)
    delays = []
    queue.add("a")
    key = await queue.take()
    for _ in range(4):
        failed = time.monotonic()
        delays.append(queue.failed(key))
        key = await queue.take()
        assert time.monotonic() - failed >= delays[-1] * 0.9
    queue.done("a")
    queue.add("a")
    await queue.take()

    assert delays == [0.02, 0.04, 0.05, 0.05]
    assert queue.failed("a") == 0.02
    queue.close()


async def test_what_happens_to_a_failed_key_is_not_waited_with() -> None:
    queue: WorkQueue[str] = WorkQueue(first_delay=60)
    queue.add("a")
    queue.failed(await queue.take())

    queue.add("a")

    assert await asyncio.wait_for(queue.take(), 60) == "a"


async def test_a_key_that_fails_after_it_was_added_again_comes_at_once() -> None:
    queue: WorkQueue[str] = WorkQueue(first_delay=60)
    queue.add("a")
    await queue.take()
    queue.add("a")
    queue.failed("a")

    assert await asyncio.wait_for(queue.take(), 60) == "a"
