"""Bringing what one repository's outbox holds to its remote, soon after it was written and again after a failure.

Source: ``decisions.md`` 8.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from apiserver.engine.claims import Claims
from apiserver.engine.drafts import DraftJob
from apiserver.engine.held_repository import Held, Options
from apiserver.engine.log_context import enter_background
from apiserver.engine.recording import Recorder, is_published, key_of
from krm.meta.errors import Forbidden, StatusError
from storage.git.errors import GitError
from storage.interfaces import ObjectStore, StoreUnavailable
from storage.outbox import Parcel

log = structlog.get_logger(__name__)

FIRST_RETRY, LAST_RETRY = 1.0, 300.0
"""Seconds between attempts to push what a remote refuses; doubled each time."""
NEVER = math.inf


@dataclass(frozen=True, slots=True)
class DraftPusher:
    """Pushes the outbox parcels of any repository."""

    store: ObjectStore
    recorder: Recorder
    claims: Claims
    options: Options

    async def keep_pushed(self, held: Held) -> None:
        """Push a repository's parcels whenever it says that there are some; never returns."""
        enter_background(held.repository.settings.key)
        retry, retry_at = FIRST_RETRY, NEVER
        while True:
            await _set_until(held.dirty, retry_at)
            if time.monotonic() >= retry_at:
                held.push_all_again()
                retry_at = NEVER
            await asyncio.sleep(self.options.push_delay)
            if not held.repository.synced:
                await asyncio.sleep(self.options.push_delay)
                continue
            held.dirty.clear()
            try:
                again = await self.push_parcels(held)
            except (StatusError, GitError, StoreUnavailable) as error:
                log.warning("drafts wait for their remote", repository=held.repository.settings.key, problem=str(error))
            except Exception:
                log.exception("drafts could not be pushed", repository=held.repository.settings.key)
            else:
                if again:
                    held.dirty.set()
                if not held.refused:
                    retry, retry_at = FIRST_RETRY, NEVER
                continue
            # A new save does not wait for what the remote refused.
            retry_at, retry = min(retry_at, time.monotonic() + retry), min(retry * 2, LAST_RETRY)

    async def push_parcels(self, held: Held) -> bool:
        """Push what the outbox holds, but for what the remote refused; return whether something was postponed.

        Raises:
            StatusError: the remote refused, or could not be reached.
            StoreUnavailable: the database cannot be read.
        """
        settings = held.repository.settings
        parcels = await self._parcels(settings.namespace, settings.key)
        held.outbox.count(parcels)
        known = held.refused & {(parcel.revision, parcel.version) for parcel in parcels}
        held.refused.intersection_update(known)
        refused = [parcel for parcel in parcels if (parcel.revision, parcel.version) in known]
        parcels = [parcel for parcel in parcels if (parcel.revision, parcel.version) not in known]
        jobs = [DraftJob(held.repository, self.store, self.recorder, self.claims, parcel) for parcel in parcels]
        results = await asyncio.gather(*(held.queue.submit(job) for job in jobs), return_exceptions=True)
        for parcel, result in zip(parcels, results, strict=True):
            if isinstance(result, Forbidden):
                held.refused.add((parcel.revision, parcel.version))
        for result in results:
            if isinstance(result, BaseException):
                raise result
        postponed = [parcel for parcel, job in zip(parcels, jobs, strict=True) if job.postponed]
        held.outbox.count([*refused, *postponed])
        return bool(postponed)

    async def _parcels(self, namespace: str, key: str) -> Sequence[Parcel]:
        """Return what is to be brought to the remote; of drafts that stay here, however many, not even the objects are read."""
        if self.options.push_drafts != "never":
            return await self.store.outbox.parcels(key)
        heads = await self.store.outbox.heads(key)
        read = [
            await self.store.outbox.parcel(key, head.revision)
            for head in heads
            if await self._concerns_remote(namespace, head)
        ]
        return [parcel for parcel in read if parcel is not None]

    async def _concerns_remote(self, namespace: str, parcel: Parcel) -> bool:
        """Tell whether a parcel is more than a draft that stays here: a branch the remote has, or a proposed deletion."""
        if parcel.seen:
            return True
        key = key_of(namespace, parcel.revision)
        # The parcel was read from the database; what memory does not know may be new at another replica, and not gone.
        entry = self.store.get(key) or await self.store.get_fresh(key)
        return entry is None or is_published(entry)

    async def push_last(self, held: Held, seconds: float) -> None:
        """Push what is acknowledged and not in the remote yet; the repository goes even when that fails."""
        if not held.repository.synced:
            return
        held.refused.clear()
        try:
            async with asyncio.timeout(seconds):
                await self.push_parcels(held)
        except (StatusError, GitError, StoreUnavailable, TimeoutError) as error:
            key = held.repository.settings.key
            problem = str(error) or "the remote did not answer in time"
            log.warning("unregistered with drafts that were never pushed", repository=key, problem=problem)


async def _set_until(event: asyncio.Event, moment: float) -> None:
    """Wait for an event, at most until a moment (monotonic seconds)."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(None if moment == NEVER else max(moment - time.monotonic(), 0)):
            await event.wait()
