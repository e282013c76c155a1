"""The watch stream: one JSON line per change, the same bytes for every watcher of the same form.

Events go out from where they arise, without waking a task; what is large, old or for a slow client is sent by the
watcher's own. A second one notices the client leaving. A watch ends when its time is
over, the client is gone or stops reading, the source closes it, or the server stops. Source: ``kube-api.md`` 2.7.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson
from starlette.types import Receive, Scope, Send

from apiserver.machinery.definition import Definition
from apiserver.machinery.metrics import OpenWatch
from apiserver.machinery.negotiate import Form, View
from apiserver.machinery.options import StreamOptions
from apiserver.machinery.reply import JSON_TYPE, chunks
from apiserver.machinery.rest import Item, ItemEvent, ItemWatch
from apiserver.machinery.status import status_bytes
from apiserver.machinery.stopping import Stopping
from apiserver.machinery.table import Columns, Include, Moment, metadata_only, now, table_head
from krm.meta.errors import StatusError

BOOKMARK_SECONDS = 60.0
"""Seconds between bookmarks."""
LAST_BOOKMARK_SECONDS = 2.0
"""Seconds before the end at which a last bookmark is sent, so that the client resumes close to it."""
DEFAULT_SECONDS = 1800.0
"""Shortest duration of a watch that names none; the longest is twice that, spread to avoid herds."""
SEND_SECONDS = 10.0
"""Seconds a client may leave one message unread before its watch is closed."""

AT_ONCE = 256 * 1024
"""Bytes of events that are sent without waking the watch's task."""
WRITABLE = "porch.writable"
"""Key of the ASGI extension (a callable without arguments) that tells whether ``send`` would write without waiting."""

_FRAME = b'{"type":"%b","object":%b}\n'


@dataclass(frozen=True, slots=True)
class Frames:
    """Encodes events in one form. ``header`` is sent with a watcher's first Table only."""

    definition: Definition
    columns: Columns
    form: Form
    include: Include

    @property
    def variant(self) -> str:
        """The key under which frames of this form are cached on an event."""
        return f"{self.form.view}/{self.form.meta_version}/{self.include}"

    def frame(self, type_: str, item: Item, *, first: bool, moment: Moment) -> bytes:
        """Return one line."""
        return _FRAME % (type_.encode(), self.shown(item, first=first, moment=moment))

    def cached(self, type_: str, event: ItemEvent, moment: Moment) -> bytes:
        """Return the line for an event that is not a watcher's first, made once for all of them."""
        key = f"{type_}/{self.variant}"
        found = event.frames.get(key)
        if found is None:
            found = event.frames[key] = self.frame(type_, event.entry, first=False, moment=moment)
        return found

    def shown(self, item: Item, *, first: bool, moment: Moment) -> bytes:
        """Return an item in this form; a Table of one row for the Table form."""
        if self.form.view is View.OBJECT:
            return item.body
        if self.form.view is View.METADATA:
            return metadata_only(item, self.form.meta_version)
        metadata = b'{"resourceVersion":"%d"}' % item.rv
        head = table_head(metadata, self.columns.header if first else b"null", self.form.meta_version)
        return head + self.columns.shown(item, self.include, moment) + b"]}"

    def bookmark(self, rv: int, *, initial_events_end: bool) -> bytes:
        """Return a bookmark line."""
        metadata: dict[str, object] = {"resourceVersion": str(rv)}
        if initial_events_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        kind, version = self.definition.kind, self.definition.api_version
        if self.form.view is View.METADATA:
            kind, version = "PartialObjectMetadata", f"meta.k8s.io/{self.form.meta_version}"
        elif self.form.view is View.TABLE:
            head = table_head(orjson.dumps({"resourceVersion": str(rv)}), b"[]", self.form.meta_version)
            inner = orjson.dumps({"kind": kind, "apiVersion": version, "metadata": metadata})
            cells = b"[" + b",".join([b"null"] * self.columns.count) + b"]"
            return _FRAME % (b"BOOKMARK", head + b'{"cells":%b,"object":%b}]}' % (cells, inner))
        return _FRAME % (b"BOOKMARK", orjson.dumps({"kind": kind, "apiVersion": version, "metadata": metadata}))


class WatchStream:
    """An ASGI application that sends one watch.

    ``initial_events_end`` asks for the bookmark after the initial items (if bookmarks are wanted at all).
    """

    def __init__(
        self,
        source: ItemWatch,
        frames: Frames,
        options: StreamOptions,
        *,
        initial_events_end: bool,
        stopping: Stopping,
        meter: OpenWatch,
    ) -> None:
        self._source = source
        self._meter = meter
        self._frames = frames
        self._options = options
        self._initial_events_end = initial_events_end
        self._stopping = stopping
        self._send: Send | None = None
        self._writable: Callable[[], bool] | None = None
        self._sending = asyncio.Lock()
        self._started = False
        self._behind = True
        """Whether something that the source gave is not sent yet; then the source's revision is no safe bookmark."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._send = send
        self._writable = scope.get("extensions", {}).get(WRITABLE)
        loop = asyncio.get_running_loop()
        seconds = self._options.timeout or random.uniform(DEFAULT_SECONDS, 2 * DEFAULT_SECONDS)  # noqa: S311 - spreads load, keeps no secret
        end = loop.time() + seconds
        tasks: set[asyncio.Task[None]] = set()
        self._meter.begin()
        try:
            await send(_start())
            pump = loop.create_task(self._pump(send))
            gone = loop.create_task(_disconnected(receive))
            stop = loop.create_task(self._stopping.wait())
            tasks = {pump, gone, stop}
            await self._until(end, tasks, send)
            if not gone.done():
                pump.cancel()
                await asyncio.wait({pump})
                if stop.done():
                    await self._bookmark(send)
                async with asyncio.timeout(SEND_SECONDS):
                    await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            self._meter.unread()
        finally:
            self._source.close()
            self._meter.end()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _until(self, end: float, tasks: set[asyncio.Task[None]], send: Send) -> None:
        """Wait for the first task to end or the time to be over; send bookmarks meanwhile."""
        loop = asyncio.get_running_loop()
        for due in self._bookmark_times(loop.time(), end):
            finished, _ = await asyncio.wait(
                tasks, timeout=max(0.0, due - loop.time()), return_when=asyncio.FIRST_COMPLETED
            )
            for task in finished:
                task.result()
            if finished:
                return
            if due < end:
                async with self._sending:
                    await self._bookmark(send)

    def _bookmark_times(self, start: float, end: float) -> Iterable[float]:
        last = end - LAST_BOOKMARK_SECONDS
        if self._options.bookmarks:
            due = start + BOOKMARK_SECONDS
            while due < last:
                yield due
                due += BOOKMARK_SECONDS
            if last > start:
                yield last
        yield end

    async def _bookmark(self, send: Send) -> None:
        """Send a bookmark, if one is wanted and everything before it has been sent; a later one will do else."""
        if self._options.bookmarks and not self._behind:
            await self._emit(self._frames.bookmark(self._source.rv, initial_events_end=False), send)

    async def _pump(self, send: Send) -> None:
        async with self._sending:
            await self._send_initial(self._source.take_initial(), send)
        self._behind = False
        if self._writable is not None:
            self._source.deliver_to(self._send_at_once)
        async for batch in self._source:
            self._behind = True
            async with self._sending:
                for piece in chunks(self._lines(batch)):
                    await self._emit(piece, send)
            self._behind = False
            self._meter.sent(len(batch))

    def _send_at_once(self, batch: Sequence[tuple[str, ItemEvent]]) -> bool:
        """Send a batch from where it arises, unless it is large or the client slow; then the pump does it."""
        self._behind = True
        if self._sending.locked() or self._send is None or self._writable is None or not self._writable():
            return False
        started = self._started
        lines = list(self._lines(batch))
        if sum(map(len, lines)) > AT_ONCE:
            self._started = started
            return False
        # The server's send is a coroutine that waits, if at all, before it writes.
        sending = cast(
            Coroutine[Any, Any, None],
            self._send({"type": "http.response.body", "body": b"".join(lines), "more_body": True}),
        )
        try:
            sending.send(None)
        except StopIteration:
            self._behind = False
            self._meter.sent(len(batch))
            return True
        sending.close()
        self._started = started
        return False

    async def _send_initial(self, items: Iterable[Item], send: Send) -> None:
        moment = now()
        for piece in chunks(self._frames.frame("ADDED", item, first=self._is_first(), moment=moment) for item in items):
            await self._emit(piece, send)
            await asyncio.sleep(0)
        if self._initial_events_end and self._options.bookmarks:
            await self._emit(self._frames.bookmark(self._source.rv, initial_events_end=True), send)

    def _lines(self, batch: Sequence[tuple[str, ItemEvent]]) -> Iterable[bytes]:
        moment = now()
        for type_, event in batch:
            if self._is_first():
                yield self._frames.frame(type_, event.entry, first=True, moment=moment)
                continue
            known = len(event.frames)
            line = self._frames.cached(type_, event, moment)
            if not known:
                self._meter.encoded(len(line))
            yield line

    def _is_first(self) -> bool:
        """Tell, once, that nothing has been sent yet; only Tables differ."""
        first = not self._started and self._frames.form.view is View.TABLE
        self._started = True
        return first

    async def _emit(self, piece: bytes, send: Send) -> None:
        async with asyncio.timeout(SEND_SECONDS):
            await send({"type": "http.response.body", "body": piece, "more_body": True})


class FailedWatch:
    """An ASGI application that sends one ERROR event, as clients expect for a revision that is gone."""

    def __init__(self, error: StatusError) -> None:
        self._error = error

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send(_start())
        await send({"type": "http.response.body", "body": _FRAME % (b"ERROR", status_bytes(self._error))})


def _start() -> dict[str, object]:
    return {"type": "http.response.start", "status": 200, "headers": [(b"content-type", JSON_TYPE)]}


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
