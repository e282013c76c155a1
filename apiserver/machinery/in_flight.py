"""How many requests may be under way at once, and who comes next when there are too many.

Reads, writes and package operations (which render and clone) have a pool of places each; a user holds at most
half of a pool, so nobody is shut out by somebody else. Who finds no place waits a short time in a fair queue: one request
per user in turn. Watches wait for nothing and are only counted. Administrators and health checks are never held up:
whoever has to look at an overloaded server must get in. Source: ``kube-api.md`` 3.5.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Collection
from dataclasses import dataclass
from types import TracebackType
from typing import NamedTuple

from apiserver.machinery.request import RequestInfo
from apiserver.machinery.rest import User
from krm.meta.errors import TooManyRequests

EXEMPT_GROUP = "system:masters"
"""Its members are never refused."""
RETRY_SECONDS = 1
"""Retry-After of a refusal, as kube-apiserver sends it."""
READ_VERBS = frozenset({"get", "list", "options", "head"})
"""Verbs that change nothing and end by themselves."""
_BUSY = "Too many requests, please try again later."


@dataclass(frozen=True, slots=True)
class Limits:
    """Requests under way at most, of each kind, and how long one without a place waits.

    ``reads`` and ``writes`` are kube-apiserver's defaults. ``packages`` bounds writes to the groups of
    package kinds. ``wait_seconds`` is for reads and writes; ``package_wait_seconds`` for package operations, which
    take longer.
    """

    reads: int = 400
    writes: int = 200
    packages: int = 32
    watches: int = 4000
    wait_seconds: float = 2.0
    package_wait_seconds: float = 15.0


class PoolFigures(NamedTuple):
    """One kind of request in numbers: under way, waiting, refused since the start."""

    kind: str
    running: int
    waiting: int
    refused: int


class InFlight:
    """The pools of one server. ``package_groups`` are the API groups whose writes render and clone."""

    def __init__(self, limits: Limits | None = None, *, package_groups: Collection[str] = ()) -> None:
        limits = limits or Limits()
        self._package_groups = frozenset(package_groups)
        self._reads = Pool("readOnly", limits.reads, limits.reads, limits.wait_seconds)
        self._writes = Pool("mutating", limits.writes, limits.writes, limits.wait_seconds)
        self._packages = Pool("package", limits.packages, 4 * limits.packages, limits.package_wait_seconds)
        self._watches = Pool("watch", limits.watches, 0, 0.0)

    def turn(self, user: User, info: RequestInfo) -> "Turn":
        """Return the place of one request, to be held with ``async with`` until its answer is sent.

        Entering it raises TooManyRequests when there is no place in time.
        """
        return Turn(self._pool(info), user.name, EXEMPT_GROUP in user.groups)

    def figures(self) -> list[PoolFigures]:
        """Return the state of every pool, for metrics; safe to call from another thread."""
        return [pool.figures() for pool in (self._reads, self._writes, self._packages, self._watches)]

    def _pool(self, info: RequestInfo) -> "Pool":
        if info.verb == "watch":
            return self._watches
        if info.verb in READ_VERBS:
            return self._reads
        return self._packages if info.group in self._package_groups else self._writes


class Pool:
    """Places for one kind of request, and the queue for them.

    Invariant: while a place is free, every user who waits holds a full share; so whoever finds a free place
    overtakes nobody.
    """

    def __init__(self, kind: str, size: int, queue: int, wait_seconds: float) -> None:
        self.kind = kind
        self._size = size
        self._share = max(1, size // 2)
        self._queue = queue
        self._queue_share = max(1, queue // 2)
        self._wait_seconds = wait_seconds
        self._used = 0
        self._exempt = 0
        self._held: dict[str, int] = {}
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._queued = 0
        self._refused = 0

    def figures(self) -> PoolFigures:
        """Return this pool's numbers."""
        return PoolFigures(self.kind, self._used + self._exempt, self._queued, self._refused)

    def take(self, user: str) -> bool:
        """Take a place if there is one for this user."""
        held = self._held.get(user, 0)
        if self._used >= self._size or held >= self._share:
            return False
        self._held[user] = held + 1
        self._used += 1
        return True

    async def wait(self, user: str) -> None:
        """Take a place as soon as it is this user's turn.

        Raises:
            TooManyRequests: the queue is full, or the turn did not come in time.
        """
        queue = self._waiting.get(user)
        if self._queued >= self._queue or (queue is not None and len(queue) >= self._queue_share):
            raise self._busy()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(user, deque()).append(turn)
        self._queued += 1
        try:
            async with asyncio.timeout(self._wait_seconds):
                await turn
        except BaseException as error:
            if turn.done() and not turn.cancelled():
                # The place was handed over in the same moment.
                if isinstance(error, TimeoutError):
                    return
                self.give_back(user)
                raise
            self._forget(user, turn)
            if isinstance(error, TimeoutError):
                raise self._busy() from error
            raise

    def give_back(self, user: str) -> None:
        """Give up a place; it goes to whoever is next."""
        held = self._held[user] - 1
        if held:
            self._held[user] = held
        else:
            del self._held[user]
        self._used -= 1
        if self._waiting:
            self._hand_on()

    def enter_exempt(self, change: int) -> None:
        """Count a request that needs no place as it comes (1) and goes (-1)."""
        self._exempt += change

    def _hand_on(self) -> None:
        """Give the free places to those who wait, one user after the other."""
        for user in list(self._waiting):
            if self._used >= self._size:
                return
            if self._held.get(user, 0) >= self._share:
                continue
            turn = self._next_of(user)
            if turn is not None:
                self.take(user)
                turn.set_result(None)

    def _next_of(self, user: str) -> "asyncio.Future[None] | None":
        """Take a user's oldest request out of the queue; the user goes to the end of the round."""
        queue = self._waiting[user]
        found = None
        while queue and found is None:
            turn = queue.popleft()
            self._queued -= 1
            found = None if turn.done() else turn
        if queue:
            self._waiting.move_to_end(user)
        else:
            del self._waiting[user]
        return found

    def _forget(self, user: str, turn: "asyncio.Future[None]") -> None:
        queue = self._waiting.get(user)
        if queue is None or turn not in queue:
            return
        queue.remove(turn)
        self._queued -= 1
        if not queue:
            del self._waiting[user]

    def _busy(self) -> TooManyRequests:
        self._refused += 1
        return TooManyRequests(_BUSY, retry_after=RETRY_SECONDS)


class Turn:
    """One request's place, held while it is entered."""

    __slots__ = ("_exempt", "_pool", "_user")

    def __init__(self, pool: Pool, user: str, exempt: bool) -> None:
        self._pool = pool
        self._user = user
        self._exempt = exempt

    async def __aenter__(self) -> None:
        if self._exempt:
            self._pool.enter_exempt(1)
        elif not self._pool.take(self._user):
            await self._pool.wait(self._user)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._exempt:
            self._pool.enter_exempt(-1)
        else:
            self._pool.give_back(self._user)
