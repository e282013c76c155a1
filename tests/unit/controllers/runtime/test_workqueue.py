"""The work queue keeps the contract of client-go's, and nobody starves in it."""

import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controllers.runtime.workqueue import FIRST_DELAY, Key, Priority, ShutDown, WorkQueue

A, B, C = ("default", "a"), ("default", "b"), ("default", "c")


async def taken(queue: WorkQueue) -> list[Key]:
    """Take and give back what waits right now."""
    keys = []
    while queue.depth:
        key = await queue.get()
        queue.done(key)
        keys.append(key)
    return keys


async def test_a_key_that_is_added_twice_is_handed_out_once() -> None:
    queue = WorkQueue()
    for key in (A, B, A):
        queue.add(key)

    assert await taken(queue) == [A, B]
    assert queue.adds == 2


async def test_nobody_gets_a_key_that_is_worked_on_and_it_comes_again_when_added_meanwhile() -> None:
    queue = WorkQueue()
    queue.add(A)
    assert await queue.get() == A
    queue.add(A)
    queue.add(A)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 0.01)
    queue.done(A)

    assert await taken(queue) == [A]


async def test_a_key_that_nobody_added_meanwhile_does_not_come_again() -> None:
    queue = WorkQueue()
    queue.add(A)
    queue.done(await queue.get())

    assert queue.depth == 0


async def test_a_waiting_get_wakes_for_a_key_added_later() -> None:
    queue = WorkQueue()
    getting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add(A)

    assert await asyncio.wait_for(getting, 60) == A


async def test_a_get_that_was_cancelled_takes_no_key_with_it() -> None:
    queue = WorkQueue()
    getting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add(A)
    getting.cancel()
    await asyncio.gather(getting, return_exceptions=True)

    assert getting.cancelled()
    assert await asyncio.wait_for(queue.get(), 60) == A


async def test_an_edit_goes_before_a_change_before_a_resync() -> None:
    queue = WorkQueue()
    queue.add(A, Priority.RESYNC)
    queue.add(B, Priority.UPSTREAM)
    queue.add(C, Priority.USER)

    assert await taken(queue) == [C, B, A]


async def test_a_waiting_key_moves_up_but_never_down() -> None:
    queue = WorkQueue()
    queue.add(A, Priority.CHANGE)
    queue.add(B, Priority.RESYNC)
    queue.add(B, Priority.USER)
    queue.add(B, Priority.RESYNC)

    assert await taken(queue) == [B, A]


async def test_a_key_added_while_it_is_worked_on_keeps_its_most_urgent_priority() -> None:
    queue = WorkQueue()
    queue.add(A)
    await queue.get()
    queue.add(A, Priority.RESYNC)
    queue.add(A, Priority.USER)
    queue.add(A, Priority.RESYNC)
    queue.add(B)
    queue.done(A)

    assert await taken(queue) == [A, B]


async def test_a_resync_gets_its_turn_under_unending_edits() -> None:
    queue = WorkQueue()
    queue.add(A, Priority.RESYNC)
    edits = (("default", f"edited-{number}") for number in itertools.count())
    queue.add(next(edits), Priority.USER)
    turns = 0
    while (key := await queue.get()) != A:
        queue.done(key)
        queue.add(next(edits), Priority.USER)
        turns += 1

    assert turns < 8


async def test_of_two_delays_the_earlier_wins_with_the_more_urgent_priority() -> None:
    queue = WorkQueue()
    queue.add_after(A, 30, Priority.USER)
    queue.add_after(A, 0.02, Priority.RESYNC)
    queue.add_after(A, 60, Priority.RESYNC)
    await asyncio.wait_for(queue.get(), 60)
    queue.done(A)
    await asyncio.sleep(0.03)

    assert queue.depth == 0
    assert queue.adds == 1


async def test_failures_double_the_delay_until_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[float] = []
    queue = WorkQueue(longest_delay=0.1)
    monkeypatch.setattr(queue._retried, "set", lambda _key, seconds, _priority: delays.append(seconds))
    for _ in range(6):
        queue.add_limited(A)
    queue.add_limited(A, longest=0.05)

    assert delays == [FIRST_DELAY, 0.01, 0.02, 0.04, 0.08, 0.1, 0.05]
    assert queue.retries == 7


async def test_many_failures_overflow_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = WorkQueue(longest_delay=0.1)
    monkeypatch.setattr(queue._retried, "set", lambda *_: None)
    for _ in range(5000):
        queue.add_limited(A)

    assert queue.retries == 5000


async def test_forget_begins_anew_and_drops_the_retry_but_no_other_delay() -> None:
    queue = WorkQueue()
    for _ in range(4):
        queue.add_limited(A)
    queue.add_after(A, 2)
    queue.forget(A)
    await asyncio.sleep(0.1)
    assert queue.depth == 0

    queue.add_limited(A)
    await asyncio.sleep(0.02)
    assert await taken(queue) == [A]
    key = await asyncio.wait_for(queue.get(), 60)

    assert key == A


async def test_a_shut_queue_hands_out_nothing_and_tells_everybody_who_waits() -> None:
    queue = WorkQueue()
    waiting = [asyncio.create_task(queue.get()) for _ in range(3)]
    await asyncio.sleep(0)
    queue.shut_down()
    queue.shut_down()
    queue.add(A)
    queue.add_after(A, 0.001)
    queue.add_limited(A)
    await asyncio.sleep(0.01)

    assert all(isinstance(end, ShutDown) for end in await asyncio.gather(*waiting, return_exceptions=True))
    with pytest.raises(ShutDown):
        await queue.get()


async def test_it_tells_how_long_keys_wait_and_are_worked_on() -> None:
    waits: list[float] = []
    queue = WorkQueue(waited=waits.append)
    queue.add(A)
    await asyncio.sleep(0.02)
    await queue.get()
    await asyncio.sleep(0.02)

    assert 0.015 < waits[0] < 1
    assert 0.015 < queue.longest_work < 1
    queue.done(A)
    assert queue.longest_work == 0


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "get", "done"]), st.sampled_from([A, B, C]), st.sampled_from(list(Priority))),
    max_size=60,
)


@given(STEPS)
def test_whatever_happens_each_add_is_followed_by_a_look_that_begins_later(
    steps: list[tuple[str, Key, Priority]],
) -> None:
    """The one promise: after an ``add`` there is a ``get`` of that key, and never two holders at once."""
    asyncio.run(_obeys(steps))


async def _obeys(steps: list[tuple[str, Key, Priority]]) -> None:
    queue = WorkQueue()
    held: set[Key] = set()
    owed: set[Key] = set()

    async def take() -> None:
        key = await asyncio.wait_for(queue.get(), 60)
        assert key not in held
        held.add(key)
        owed.discard(key)

    for step, key, priority in steps:
        if step == "add":
            queue.add(key, priority)
            owed.add(key)
        elif step == "get" and queue.depth:
            await take()
        elif step == "done" and key in held:
            held.remove(key)
            queue.done(key)
    for key in list(held):
        held.remove(key)
        queue.done(key)
    while queue.depth:
        await take()

    assert not owed
