"""Turns of replicas at something that one of them does at a time, such as talking to one repository's remote.

A turn is a courtesy, not a guarantee: a replica that is paused for longer than the lease loses it without noticing. What must
not happen twice has a fence of its own: a push compares and swaps refs, and is not sent by who may have lost its turn; a write
that was decided in a turn names it, so that the database refuses it once another replica has had the turn since. Source: ``decisions.md`` 5 and 8, ``kube-api.md`` 5.4.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final, Protocol


class Turn(Protocol):
    """A turn that was taken."""

    @property
    def key(self) -> str:
        """What it is a turn at."""
        ...

    @property
    def epoch(self) -> int:
        """A number that rises whenever the turn goes to another replica; 0 where there are none."""
        ...

    @property
    def moved(self) -> bool:
        """Whether another replica may have had the turn since this one had it last."""
        ...

    async def renew(self) -> bool:
        """Make sure that it is our turn, waiting for it again if it was lost; tell whether others had it meanwhile.

        Raises:
            NotOurTurn: another replica keeps it.
            StoreUnavailable: the database cannot be reached.
        """
        ...

    def fence(self, claims: Iterable[str] = ()) -> Callable[[], bool]:
        """Return what tells whether no other replica can have the turn, or one of these claims of ours, nor will very soon.

        What is returned asks nobody: it is free, and for any thread. Where it says no, :meth:`renew` finds out. A claim that
        nobody here has says nothing.
        """
        ...


TakenTurn = AbstractAsyncContextManager[Turn]
"""Waits for the turn on entry, gives it up at the end; entering raises what :meth:`Turn.renew` does."""


Claim = AbstractAsyncContextManager[bool]
"""Takes something at once, or not: entering says whether no other replica has it. Given up at the end."""


class Leadership(Protocol):
    """That one replica was elected, until it stands down."""

    async def lost(self) -> None:
        """Wait until another replica may have been elected instead."""
        ...


Election = AbstractAsyncContextManager[Leadership]
"""Waits on entry until no other replica leads, however long; stands down at the end. Entering raises StoreUnavailable."""


class Replicated(Protocol):
    """Something that several processes may write to, and agree about."""

    @property
    def shared(self) -> bool:
        """Whether other replicas may write to the same database."""
        ...

    def turn(self, key: str) -> TakenTurn:
        """Wait for the turn at ``key`` among all replicas; free and without waiting in a process that is alone.

        What the store shows from memory is then as new as the turn.
        """
        ...

    def claim(self, key: str) -> Claim:
        """Take ``key`` unless another replica has it. A process must not claim what it holds."""
        ...

    def elect(self, key: str) -> Election:
        """Wait to lead what ``key`` names; at once in a process that is alone. A process is one candidate, not two."""
        ...


class _Alone:
    """The turn, and the leadership, of a process that has its database for itself."""

    key = ""
    epoch = 0
    moved = False

    async def renew(self) -> bool:
        """Return False."""
        return False

    def fence(self, claims: Iterable[str] = ()) -> Callable[[], bool]:  # noqa: ARG002 # nobody else claims anything
        """Return what is always true."""
        return lambda: True

    async def lost(self) -> None:
        """Wait for ever."""
        await asyncio.get_running_loop().create_future()


_ALONE: Final = _Alone()


def unclaimed(_key: str) -> Claim:
    """Return a claim in a process without replicas: nobody else has anything."""
    return nullcontext(True)  # what entering it says


def unopposed(_key: str) -> Election:
    """Return the election of a process without replicas."""
    return nullcontext(_ALONE)


def alone() -> TakenTurn:
    """Return the turn of a process without replicas: always ours, and free."""
    return nullcontext(_ALONE)
