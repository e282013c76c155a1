"""Work that goes on while other work is done, and ends after what it serves."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def beside(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run ``work`` while the block runs, and cancel it after that.

    Where some of it fails the block is cancelled and all ends with an ExceptionGroup: who works on without it works on
    what is no longer true.
    """
    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(one) for one in work]
        try:
            yield
        finally:
            for task in running:
                task.cancel()
