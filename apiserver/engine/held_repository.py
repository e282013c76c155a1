"""A registered repository in use: its clone and queue, what its object wishes, and the tasks that serve it."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from apiserver.engine.registered import RegisteredRepository
from apiserver.engine.remote_access import AccessOptions
from apiserver.engine.remote_queue import RemoteQueue
from apiserver.engine.sync import Synchronizer
from apiserver.rules.sync_plan import SyncWishes
from storage.outbox import Parcel


@dataclass(frozen=True, slots=True)
class Options:
    """How repositories are kept; times in seconds."""

    folder: Path
    sync_interval: float = 60.0
    full_sync_interval: float = 3600.0
    access: AccessOptions = field(default_factory=AccessOptions)
    push_drafts: str = "async"
    max_parallel_syncs: int = 4
    push_delay: float = 0.5
    """A draft waits this long for further edits, or its approval, before it is pushed."""


@dataclass(slots=True)
class Waiting:
    """Acknowledged drafts that a remote has not got, as they were last counted; ``size`` in bytes."""

    drafts: int = 0
    size: int = 0
    since: float = 0.0
    """When the first of them was counted (monotonic seconds); 0 when there are none."""

    def count(self, parcels: Sequence[Parcel]) -> None:
        """Count anew."""
        self.drafts, self.size = len(parcels), sum(len(obj.data) for parcel in parcels for obj in parcel.objects)
        self.since = (self.since or time.monotonic()) if parcels else 0.0

    def waits(self) -> float:
        """Return for how many seconds the first of them waits."""
        return time.monotonic() - self.since if self.since else 0.0


@dataclass(slots=True)
class Held:
    """A repository in use and the tasks that serve it."""

    repository: RegisteredRepository
    queue: RemoteQueue
    synchronizer: Synchronizer
    wishes: SyncWishes
    last_full: datetime | None = None
    """When everything that changed was last read; None before that, and after a failure."""
    looked: float = field(default_factory=time.monotonic)
    """When the remote was last looked at with success, or the repository taken up (monotonic seconds)."""
    problem: str = ""
    """Why the repository cannot be used, as its Ready condition says; empty when it can."""
    outbox: Waiting = field(default_factory=Waiting)
    refused: set[tuple[str, int]] = field(default_factory=set)
    """(revision, version) of the parcels that the remote does not take; they are not sent along with every other one."""
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    dirty: asyncio.Event = field(default_factory=asyncio.Event)
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def push_all_again(self) -> None:
        """Have everything pushed that waits, what was refused included: something may have changed."""
        self.refused.clear()
        self.dirty.set()
