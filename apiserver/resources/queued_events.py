"""Events that the engine reports, kept in a queue and written beside the requests that they are about.

Reports of a moment are written together, so that the database commits them at once and no request waits for its own.
Source: ``kube-api.md`` 2.16.
"""

import asyncio
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import structlog

from apiserver.machinery.rest import Updater, User
from apiserver.resources.event_recorder import SAID_LENGTH, EventRecorder

Json = dict[str, Any]
log = structlog.get_logger()

COMPONENT: Final = "porch-server"
USER: Final = User("system:apiserver", ("system:masters",))
WAITING: Final = 1000
"""Different reports that wait at most, and as many warnings more; what comes then is dropped, and the log says how many."""
GATHER_SECONDS: Final = 0.25
"""Seconds from a report to its being written, in which others join it."""
AT_ONCE: Final = 25
"""Events written then; the others wait as long again, so that a busy server writes a hundred a second and no more."""
BATCH: Final = 8
"""Events written at a time, which takes a few milliseconds; in between, requests get their turn."""
FLUSH_SECONDS: Final = 1.0
"""Seconds that a stop waits for what was reported until then."""


@dataclass(slots=True)
class _Report:
    obj: Json
    reason: str
    message: str
    warning: bool
    times: int = 1


class QueuedEvents:
    """A ``RevisionEvents`` that writes to a resource of Events; ``events`` creates what an update finds missing."""

    def __init__(self, events: Updater, *, waiting: int = WAITING, gather: float = GATHER_SECONDS) -> None:
        self._recorder = EventRecorder(events, component=COMPONENT, user=USER)
        self._limit = waiting
        self._gather = gather
        self._waiting: dict[tuple[str, str, str], _Report] = {}
        self._dropped = 0
        self._reported = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def report(self, body: Json, reason: str, message: str, *, warning: bool = False) -> None:
        """Queue a report; see the port. What waits already is only counted."""
        uid, message = str(body["metadata"].get("uid") or ""), message[:SAID_LENGTH]
        key = (uid, reason, message)
        if report := self._waiting.get(key):
            report.times += 1
        elif len(self._waiting) >= (2 * self._limit if warning else self._limit):
            self._dropped += 1
        else:
            self._waiting[key] = _Report(_reference(body), reason, message, warning)
            self._reported.set()

    def start(self) -> None:
        """Begin to write."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Write what was reported, as far as a second allows, and stop."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = None
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                await self._write(len(self._waiting))
        except TimeoutError:
            log.warning("events were not written before the stop")

    async def _run(self) -> None:
        while True:
            await self._reported.wait()
            await asyncio.sleep(self._gather)
            await self._write(AT_ONCE)

    async def _write(self, most: int) -> None:
        """Write the reports that have waited longest."""
        reports = [self._waiting.pop(key) for key in list(islice(self._waiting, most))]
        if not self._waiting:
            self._reported.clear()
        dropped, self._dropped = self._dropped, 0
        if dropped:
            log.warning("events dropped, more were reported than can be written", events=dropped)
        for at in range(0, len(reports), BATCH):
            await asyncio.gather(*(self._write_one(report) for report in reports[at : at + BATCH]))

    async def _write_one(self, report: _Report) -> None:
        try:
            await self._recorder.record(
                report.obj, report.reason, report.message, warning=report.warning, times=report.times
            )
        except Exception:
            # A report is a courtesy: one that breaks something must not end those that come after it.
            log.exception("event cannot be written", reason=report.reason, name=report.obj["metadata"]["name"])


def _reference(body: Json) -> Json:
    """Return the parts of an object that an Event needs, so that the rest is not held on to."""
    metadata = body["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace", "uid") if key in metadata}
    return {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": kept}
