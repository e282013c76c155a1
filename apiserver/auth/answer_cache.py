"""Answers of somebody else that are good for some seconds, asked for once however many want the same at once."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class AnswerCache(Generic[K, V]):
    """At most ``size`` answers, each kept ``seconds``; the one not used for longest goes first. For one event loop.

    What fails is not kept. ``clock`` tells seconds.
    """

    def __init__(self, *, seconds: float, size: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._size = size
        self._clock = clock
        self._answers: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._asking: dict[K, asyncio.Task[V]] = {}

    def __len__(self) -> int:
        return len(self._answers)

    async def get(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        """Return the answer for ``key``; ``ask`` is called where none is known or on its way.

        Whoever is cancelled while waiting leaves the question to the others.

        Raises:
            Exception: what ``ask`` raises, to everybody who waits for it.
        """
        known = self._answers.get(key)
        if known is not None and self._clock() < known[0]:
            self._answers.move_to_end(key)
            return known[1]
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(self._ask(key, ask))
            task.add_done_callback(lambda done: self._asked(key, done))
        return await asyncio.shield(task)

    def forget(self, key: K) -> None:
        """Have the next one who wants ``key`` ask anew."""
        self._answers.pop(key, None)

    async def _ask(self, key: K, ask: Callable[[], Awaitable[V]]) -> V:
        answer = await ask()
        self._answers[key] = (self._clock() + self._seconds, answer)
        self._answers.move_to_end(key)
        if len(self._answers) > self._size:
            self._answers.popitem(last=False)
        return answer

    def _asked(self, key: K, done: "asyncio.Task[V]") -> None:
        del self._asking[key]
        if not done.cancelled():
            done.exception()  # seen by those who wait; if nobody does any more, by nobody
