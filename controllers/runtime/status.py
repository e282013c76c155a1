"""Writing what controllers tell: the status of an object, once and only when it differs, and Events."""

import asyncio
import datetime as dt
import hashlib
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final, Protocol

import structlog

from krm.client.client import KubeClient, NoAnswer, WriteRefused
from krm.client.resources import EVENTS, Resource
from krm.meta.errors import AlreadyExists, Conflict, NotFound, StatusError

Json = dict[str, Any]
log = structlog.get_logger()

STATUS_ATTEMPTS: Final = 5
SAID_LENGTH: Final = 1024
"""Characters of an Event's message that the API keeps."""
WAITING: Final = 2048
"""Different reports that wait to be written at most; what comes then is dropped and counted."""
NAME_LENGTH: Final = 200
"""Characters of the object's name that begin the Event's."""
REMEMBERED: Final = 4096
"""Events that were written and are counted up when they repeat."""
EVENT_SECONDS: Final = 10.0
FLUSH_SECONDS: Final = 1.0
"""Seconds a stop gives to what was reported until then."""


async def set_status(client: KubeClient, resource: Resource, body: Json, status: Json) -> Json | None:
    """Write ``status`` unless ``body`` has it already; return the object as stored, None when nothing was written.

    ``body`` is not changed. A conflict reads the object again: while its generation is the same the status still
    belongs to it and is written, otherwise it is somebody else's to write. A deleted object needs none.

    Raises:
        StatusError: refused for another reason, or conflicts that do not end.
        NoAnswer, WriteRefused: see the client.
    """
    meta = body["metadata"]
    current = body
    for attempt in range(STATUS_ATTEMPTS):
        if without_nulls(current.get("status") or {}) == without_nulls(status):
            return None
        try:
            return await client.update(resource, {**current, "status": status}, subresource="status")
        except NotFound:
            return None
        except Conflict:
            if attempt == STATUS_ATTEMPTS - 1:
                raise
        try:
            current = await client.get(resource, meta.get("namespace"), meta["name"])
        except NotFound:
            return None
        if any(current["metadata"].get(key) != meta.get(key) for key in ("uid", "generation")):
            return None
    return None


def without_nulls(value: Any) -> Any:
    """Return JSON as a server keeps it that drops nulls; without them two spellings of one object are equal."""
    if isinstance(value, dict):
        return {key: without_nulls(one) for key, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


class EventRecorder(Protocol):
    """Writes Events; never fails and never waits. The name is client-go's."""

    def event(self, body: Json, type_: str, reason: str, message: str, /) -> None:
        """Tell that something happened to the object ``body``; ``type_`` is Normal or Warning."""
        ...


@dataclass(slots=True)
class _Report:
    involved: Json
    type: str
    reason: str
    message: str
    times: int = 1


class Recorder:
    """Core v1 Events about objects, written beside the work: a report neither waits nor fails.

    The same report about the same object is one Event that is counted up.
    """

    def __init__(self, client: KubeClient, component: str) -> None:
        self._client = client
        self._component = component
        self._waiting: OrderedDict[str, _Report] = OrderedDict()
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._reported = asyncio.Event()
        self.dropped = 0
        """Reports that are not written, since more were made than can be; the log tells it once they are written again."""

    def event(self, body: Json, type: str, reason: str, message: str) -> None:  # noqa: A002 # the field's name
        """Report something about the object ``body``; ``type`` is Normal or Warning."""
        report = _Report(_reference(body), type, reason, message[:SAID_LENGTH])
        name = _name(report, self._component)
        if name in self._waiting:
            self._waiting[name].times += 1
        elif len(self._waiting) >= WAITING:
            self.dropped += 1
        else:
            self._waiting[name] = report
            self._reported.set()

    async def run(self) -> None:
        """Write reports until cancelled, then for a second what is left of them."""
        try:
            while True:
                await self._reported.wait()
                await self._write_next()
        finally:
            try:
                async with asyncio.timeout(FLUSH_SECONDS):
                    while self._waiting:
                        await self._write_next()
            except TimeoutError:
                log.warning("events were not written before the stop", number=len(self._waiting))

    async def _write_next(self) -> None:
        name, report = self._waiting.popitem(last=False)
        if not self._waiting:
            self._reported.clear()
            if self.dropped:
                log.warning("events dropped, more were reported than can be written", number=self.dropped)
                self.dropped = 0
        try:
            async with asyncio.timeout(EVENT_SECONDS):
                await self._write(name, report)
        except asyncio.CancelledError:
            self._waiting[name] = report  # counted twice rather than not at all
            raise
        except WriteRefused:
            self._waiting.clear()  # who works now will tell what it finds
            self._reported.clear()
        except (StatusError, NoAnswer, TimeoutError) as error:
            log.warning("event not written", reason=report.reason, object=report.involved["name"], error=str(error))

    async def _write(self, name: str, report: _Report) -> None:
        namespace = report.involved.get("namespace") or "default"
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        count = self._counts.pop(name, 0)
        if not count:
            try:
                await self._client.create(EVENTS, namespace, _event(name, namespace, report, self._component, now))
            except AlreadyExists:  # an earlier process reported the same
                count = (await self._client.get(EVENTS, namespace, name)).get("count") or 1
        if count:
            again = {"count": count + report.times, "lastTimestamp": now}
            try:
                await self._client.patch(EVENTS, namespace, name, again)
            except NotFound:  # it expired
                count = 0
                await self._client.create(EVENTS, namespace, _event(name, namespace, report, self._component, now))
        self._counts[name] = count + report.times
        if len(self._counts) > REMEMBERED:
            self._counts.popitem(last=False)


def _reference(body: Json) -> Json:
    """Return the parts of an object that an Event names, so that the rest is not held on to."""
    meta = body["metadata"]
    kept = {key: meta[key] for key in ("namespace", "name", "uid", "resourceVersion") if meta.get(key)}
    return {"apiVersion": body.get("apiVersion", ""), "kind": body.get("kind", ""), **kept}


def _name(report: _Report, component: str) -> str:
    """Return the same name for the same report about the same object, whichever process makes it."""
    involved = report.involved.get("namespace", ""), report.involved.get("uid", "")
    told = "\0".join((component, *involved, report.type, report.reason, report.message))
    digest = hashlib.sha256(told.encode()).hexdigest()[:16]
    return f"{report.involved['name'][:NAME_LENGTH]}.{digest}"


def _event(name: str, namespace: str, report: _Report, component: str, now: str) -> Json:
    return {
        "apiVersion": EVENTS.api_version,
        "kind": EVENTS.kind,
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": report.involved,
        "type": report.type,
        "reason": report.reason,
        "message": report.message,
        "source": {"component": component},
        "reportingComponent": component,
        "count": report.times,
        "firstTimestamp": now,
        "lastTimestamp": now,
    }
