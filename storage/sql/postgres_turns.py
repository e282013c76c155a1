"""Turns of replicas as session-level advisory locks in PostgreSQL.

All turns of a process are locks of one session. The server ends a session that says nothing for the length of the lease, so a
paused replica, or one whose machine is gone, loses its turns; one that dies loses them at once. Who waits takes the place
behind the turn first, which is a lock, too: so a busy replica cannot keep the others waiting for ever. Who leads is a lock, too,
that the others try to take every second or two. The table ``k_turn``
notes who had a turn last: that tells a replica whether what it knows of a remote can be out of date, and is the fence of
writes. The fence of a push is the time since the last sign of life that was answered: nobody has our locks while that is less
than the lease. Needs PostgreSQL 14 (``idle_session_timeout``). Source: ``kube-api.md`` 5.4.
"""

import asyncio
import contextlib
import hashlib
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from random import uniform
from typing import Any

import structlog

from storage.interfaces import NotOurTurn, StoreUnavailable
from storage.sql.postgres_session import Connect, close_quietly, unavailable
from storage.sql.statements import postgres_turns
from storage.turns import Leadership, Turn

LEASE_SECONDS = 10.0
"""How long a replica may say nothing before others take its turns."""
BEATS = 4
"""Signs of life per lease."""
SURE = 0.75
"""The part of a lease in which a turn is surely ours. The rest is for a push on its way: its remote needs time to take it."""
POLL_SECONDS = 0.02
"""Between two looks whether a turn is free; doubled up to :data:`LONGEST_POLL`."""
LONGEST_POLL = 0.25
WAIT_SECONDS = 90.0
"""How long one waits for a turn: longer than a remote may take for an exchange."""
STAND_BY_SECONDS = 2.0
"""Between two looks whether nobody leads, ±25 %: with the lease of ten seconds, another one leads before fifteen are over."""

_QUEUED, _NEXT, _OURS = range(3)
# One round trip: take the place behind the turn, then the turn, then give the place up. CASE looks at its parts in order.
_TAKE = (
    "SELECT CASE WHEN NOT pg_try_advisory_lock($2) THEN 0 WHEN NOT pg_try_advisory_lock($1) THEN 1 "
    "WHEN pg_advisory_unlock($2) THEN 2 END"
)
_TAKE_AS_NEXT = "SELECT CASE WHEN NOT pg_try_advisory_lock($1) THEN 1 WHEN pg_advisory_unlock($2) THEN 2 END"
_CLAIM = "SELECT pg_try_advisory_lock($1)"
_GIVE_UP = "SELECT pg_advisory_unlock($1)"

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Session:
    """The session that holds the locks; once it is lost, so are they."""

    connection: Any
    lease: float
    alive: float
    """When the last exchange began that the server has answered, by :func:`_clock`; its count of our silence began later."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.connection.add_termination_listener(lambda _: self.ended.set())

    @property
    def lost(self) -> bool:
        return bool(self.connection.is_closed())

    @property
    def sure(self) -> bool:
        """Whether the server cannot have ended it, nor will for some time. For any thread, also of a process that just woke."""
        return not self.lost and _clock() - self.alive < self.lease * SURE


@dataclass(slots=True)
class _Claimed:
    """A claim, and the session that has it; none while another replica has taken it."""

    session: _Session | None


@dataclass(slots=True)
class _Taken:
    """A turn that was taken, see :class:`storage.turns.Turn`."""

    key: str
    session: _Session
    epoch: int
    moved: bool
    retake: Callable[["_Taken"], Awaitable[bool]]
    claims: Mapping[int, _Claimed]

    async def renew(self) -> bool:
        """Make sure that it is our turn."""
        return await self.retake(self)

    def fence(self, claims: Iterable[str] = ()) -> Callable[[], bool]:
        """Return what tells whether no other replica can have the turn, or one of these claims."""
        locks = [_claim_of(key) for key in claims]

        def surely_ours() -> bool:
            session = self.session
            held = (self.claims.get(lock) for lock in locks)
            return session.sure and all(claim is None or claim.session is session for claim in held)

        return surely_ours


@dataclass(slots=True)
class _Elected:
    """That this process leads, see :class:`storage.turns.Leadership`."""

    session: _Session

    async def lost(self) -> None:
        """Wait until the session is lost, which shows at the next sign of life at the latest."""
        await self.session.ended.wait()


@dataclass(slots=True)
class _Local:
    """Who of this process wants a turn: a session's locks do not keep its own owner out."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    wanted: int = 0


class PostgresTurns:
    """The turns of one process. Nothing is connected before the first is taken."""

    def __init__(self, connect: Connect, lease_seconds: float = LEASE_SECONDS) -> None:
        self._connect = connect
        self._lease = lease_seconds
        self._me = uuid.uuid4().hex
        self._sql = postgres_turns()
        self._session: _Session | None = None
        self._speaking = asyncio.Lock()
        """A session does one thing at a time."""
        self._local: dict[str, _Local] = {}
        self._claims: dict[int, _Claimed] = {}
        """By the number of the lock."""
        self._beating: asyncio.Task[None] | None = None
        self._closed = False

    @asynccontextmanager
    async def turn(self, key: str, seconds: float = WAIT_SECONDS) -> AsyncIterator[Turn]:
        """Wait for the turn at ``key``, hold it for the length of the block.

        Raises:
            NotOurTurn: another replica keeps it for longer than ``seconds``.
            StoreUnavailable: the database cannot be reached.
        """
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(seconds):
                    await held.enter_async_context(self._locally(key))
            except TimeoutError:
                raise NotOurTurn(f"this server has been working with {key} for {seconds:.0f} s; try again") from None
            session, epoch, moved = await self._take(key, seconds)
            taken = _Taken(key, session, epoch, moved, lambda turn: self._retake(turn, seconds), self._claims)
            try:
                yield taken
            finally:
                await self._release(taken.session, _lock_of(key))

    @asynccontextmanager
    async def claim(self, key: str) -> AsyncIterator[bool]:
        """Take ``key`` for the length of the block, or say that another replica has it; a process claims nothing twice.

        A claim that is lost with its session is taken again with the next turn; if another replica has it then, see
        :meth:`storage.turns.Turn.fence`.

        Raises:
            StoreUnavailable: the database cannot be reached.
        """
        lock = _claim_of(key)
        session = await self._connected()
        if not await self._speak(session, "fetchval", _CLAIM, lock):
            yield False
            return
        claim = self._claims[lock] = _Claimed(session)
        try:
            yield True
        finally:
            del self._claims[lock]
            if claim.session is not None:
                await self._release(claim.session, lock)

    async def _claim_again(self, session: _Session) -> None:
        """Have ``session`` hold what was claimed in others that are lost; who comes after it reads the log again."""
        for lock, claim in list(self._claims.items()):
            if claim.session is session:
                continue
            ours = await self._speak(session, "fetchval", _CLAIM, lock)
            if self._claims.get(lock) is claim:
                claim.session = session if ours else None
            elif ours:  # given up while the server was asked
                await self._release(session, lock)

    @asynccontextmanager
    async def elect(self, key: str) -> AsyncIterator[Leadership]:
        """Wait until no other replica leads what ``key`` names, and lead it for the length of the block.

        Raises:
            StoreUnavailable: the database cannot be reached.
        """
        lock = _number(f"leader {key}")
        session = await self._connected()
        while not await self._speak(session, "fetchval", _CLAIM, lock):
            await asyncio.sleep(STAND_BY_SECONDS * uniform(0.75, 1.25))  # noqa: S311 # spreads replicas' looks
            session = await self._connected()
        try:
            yield _Elected(session)
        finally:
            await self._release(session, lock)

    async def close(self) -> None:
        """Give up every turn; none is given any more."""
        self._closed = True
        if self._beating is not None:
            self._beating.cancel()
            await asyncio.gather(self._beating, return_exceptions=True)
        if self._session is not None:
            await close_quietly(self._session.connection)

    @asynccontextmanager
    async def _locally(self, key: str) -> AsyncIterator[None]:
        local = self._local.setdefault(key, _Local())
        local.wanted += 1
        try:
            async with local.lock:
                yield
        finally:
            local.wanted -= 1
            if not local.wanted:
                self._local.pop(key, None)

    async def _take(self, key: str, seconds: float) -> tuple[_Session, int, bool]:
        """Take a turn; return the session that has it, its epoch, and whether others had it since."""
        try:
            async with asyncio.timeout(seconds):
                session = await self._wait(_lock_of(key), _place_of(key))
        except TimeoutError:
            raise NotOurTurn(f"another replica has been working with {key} for {seconds:.0f} s; try again") from None
        try:
            await self._claim_again(session)
            epoch, moved = await self._note(session, key)
        except BaseException:
            await self._release(session, _lock_of(key))
            raise
        return session, epoch, moved

    async def _wait(self, lock: int, place: int) -> _Session:
        state, pause, session = _QUEUED, POLL_SECONDS, await self._connected()
        try:
            while True:
                if session.lost:
                    state, session = _QUEUED, await self._connected()
                statement = _TAKE_AS_NEXT if state == _NEXT else _TAKE
                state = await self._speak(session, "fetchval", statement, lock, place)
                if state == _OURS:
                    return session
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, LONGEST_POLL) if state == _QUEUED else POLL_SECONDS
        except BaseException:
            if state == _NEXT:
                await self._release(session, place)
            raise

    async def _note(self, session: _Session, key: str) -> tuple[int, bool]:
        """Note that we have the turn; return its epoch, and whether somebody else had it last."""
        last = self._sql.last_turn
        row = await self._speak(session, "fetchrow", last.sql, *last.bind(which=key))
        if row is not None and row[0] == self._me:
            return int(row[1]), False
        take = self._sql.take_turn
        return int(await self._speak(session, "fetchval", take.sql, *take.bind(which=key, who=self._me))), True

    async def _retake(self, turn: _Taken, seconds: float) -> bool:
        with contextlib.suppress(StoreUnavailable):
            if not turn.session.lost:
                await self._speak(turn.session, "fetchval", "SELECT 1")
                await self._claim_again(turn.session)
                return False
        turn.session, turn.epoch, moved = await self._take(turn.key, seconds)
        turn.moved = turn.moved or moved
        return moved

    async def _release(self, session: _Session, lock: int) -> None:
        """Give a lock up, whoever is cancelled meanwhile; with a session that is lost it is gone already."""
        if not session.lost:
            with contextlib.suppress(StoreUnavailable):
                await asyncio.shield(asyncio.ensure_future(self._speak(session, "fetchval", _GIVE_UP, lock)))

    # --- the session --------------------------------------------------------------------------

    async def _connected(self) -> _Session:
        async with self._speaking:
            if self._closed:
                raise StoreUnavailable("the PostgreSQL database is closed")
            if self._session is None or self._session.lost:
                lease = {"idle_session_timeout": str(round(self._lease * 1000))}
                began = _clock()
                with unavailable():
                    self._session = _Session(await self._connect(**lease), self._lease, began)
            if self._beating is None:
                self._beating = asyncio.create_task(self._beat(), name="turns")
            return self._session

    async def _speak(self, session: _Session, method: str, statement: str, *values: Any) -> Any:
        """Run one statement; a session that cannot answer is given up, and its locks with it."""
        async with self._speaking:
            began = _clock()
            try:
                with unavailable():
                    async with asyncio.timeout(self._lease):
                        answer = await getattr(session.connection, method)(statement, *values)
            except BaseException:
                # An abandoned exchange leaves it unknown which locks the session has.
                session.connection.terminate()
                raise
            session.alive = began
            return answer

    async def _beat(self) -> None:
        """Show the server that this process lives, until cancelled."""
        while True:
            await asyncio.sleep(self._lease / BEATS)
            session = self._session
            if session is None or session.lost:
                continue
            try:
                await self._speak(session, "fetchval", "SELECT 1")
            except StoreUnavailable as error:
                log.warning("the turns of this replica are lost", problem=str(error))


def _clock() -> float:
    """Return seconds of a clock that nobody sets and that runs on while the process is stopped, or the machine suspended."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _lock_of(key: str) -> int:
    return _number(f"turn {key}")


def _place_of(key: str) -> int:
    return _number(f"next {key}")


def _claim_of(key: str) -> int:
    return _number(f"claim {key}")


def _number(text: str) -> int:
    """Return a number for an advisory lock: 64 bits, signed. The write lock's has its first bits clear, as none here has."""
    digest = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)
    return digest | (1 << 62)
