"""Work that goes on beside the server for as long as it runs. A round of it that trips anywhere must not end it for good, unseen."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import structlog

AGAIN_SECONDS: Final = 1.0
"""Before work is begun again that has ended by itself."""

Work = Callable[[], Coroutine[Any, Any, None]]
"""Runs until it is cancelled; may be begun again."""

log = structlog.get_logger(__name__)


@asynccontextmanager
async def background(work: Sequence[Work]) -> AsyncIterator[None]:
    """Do all of ``work`` while the block runs, then cancel it and wait for its end."""
    tasks = [asyncio.create_task(_kept_going(one)) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _kept_going(work: Work) -> None:
    while True:
        try:
            await work()
        except Exception:  # whatever it was: the others go on, and so does this
            log.exception("background work has failed and begins again", work=_name(work))
        else:
            log.error("background work has ended and begins again", work=_name(work))
        await asyncio.sleep(AGAIN_SECONDS)


def _name(work: Work) -> str:
    return str(getattr(work, "__qualname__", work))
