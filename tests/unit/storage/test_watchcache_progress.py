"""Who waits for a revision is remembered while it waits, and no longer."""

import asyncio

from storage.watchcache.progress import Progress


async def test_revisions_that_never_come_leave_nothing_behind() -> None:
    progress = Progress()
    waiting = [asyncio.create_task(progress.reached(10**9 + number % 7, 0.01)) for number in range(50)]
    cancelled = asyncio.create_task(progress.reached(10**6, 60))
    await asyncio.sleep(0)
    cancelled.cancel()
    outcomes = await asyncio.gather(*waiting, cancelled, return_exceptions=True)

    assert outcomes[:-1] == [False] * 50
    assert isinstance(outcomes[-1], asyncio.CancelledError)
    assert progress._waiting == []


async def test_those_who_wait_on_are_told_in_order() -> None:
    progress, told = Progress(), list[int]()

    async def wait(rv: int, seconds: float) -> bool:
        reached = await progress.reached(rv, seconds)
        if reached:
            told.append(rv)
        return reached

    waiting = [asyncio.create_task(wait(rv, 0.01 if rv % 2 else 60)) for rv in (7, 2, 9, 4, 3, 6)]
    while any(not task.done() for task, rv in zip(waiting, (7, 2, 9, 4, 3, 6), strict=True) if rv % 2):
        await asyncio.sleep(0.01)
    progress.advance(4)
    await asyncio.sleep(0)
    progress.advance(6)

    assert await asyncio.gather(*waiting) == [False, True, False, True, False, True]
    assert told == [2, 4, 6]
