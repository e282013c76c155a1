"""Many watchers, many events, connections that break, readers that stall: everybody must see everything, once, in order.

``watch_stress.py URL NAMESPACE WATCHERS RATE SECONDS --cert FILE --key FILE`` writes ConfigMaps at RATE per second from a
process of its own while WATCHERS watch them. Each second one watcher in a hundred loses its connection and resumes from
the last revision that it saw; a few stop reading until the server cuts them off. Prints one JSON object.
"""

import argparse
import asyncio
import http.client
import json
import random
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
from array import array
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import cast

import uvloop
from session import percentile, watch_options

REVISION = re.compile(rb'"resourceVersion":"(\d+)"')
OBJECTS = 50
"""ConfigMaps that are written in turn."""
PAYLOAD = "x" * 1000
WRITERS = 4
"""Connections that write."""
BROKEN = 0.01
"""Share of the watchers that lose their connection each second."""
STALLED = 3
"""Watchers that stop reading, in runs that are long enough."""
STALL_AFTER_SECONDS = 5.0
LONG_SECONDS = 30.0
"""A run that is long enough for somebody to stall."""
STALLED_BUFFER = 16 * 1024
"""Bytes that the kernel takes for a watcher that will stop reading."""
SETTLE_SECONDS = 2.0
"""Between the last watch's start and the first write; and at most between the last write and the end."""
SEED = 5


@dataclass
class Target:
    """What is watched, and how the server is reached."""

    host: str
    port: int
    path: str
    context: ssl.SSLContext


class Watcher(asyncio.Protocol):
    """One client that watches for ever: resumes from the last revision it saw whenever its connection ends."""

    def __init__(self, target: Target, revision: int, *, stalls: bool) -> None:
        self.stalls = stalls
        self.revisions, self.times = array("Q"), array("Q")
        self.resumes = 0
        self.errors: list[bytes] = []
        self._target = target
        self._last = revision
        self._rest = b""
        self._transport: asyncio.Transport | None = None
        self._closing = False
        self._connecting: asyncio.Task[None] | None = None

    async def connect(self) -> None:
        """Open the watch after the last revision seen."""
        loop = asyncio.get_running_loop()
        plain = socket.socket()
        if self.stalls:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, STALLED_BUFFER)
        plain.setblocking(False)
        await loop.sock_connect(plain, (self._target.host, self._target.port))
        await loop.create_connection(lambda: self, sock=plain, ssl=self._target.context, server_hostname="")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        self._transport = cast("asyncio.Transport", transport)
        self._rest = b""
        path = f"{self._target.path}?watch=1&allowWatchBookmarks=true&resourceVersion={self._last}"
        self._transport.write(f"GET {path} HTTP/1.1\r\nHost: bench\r\nAccept: application/json\r\n\r\n".encode())

    def data_received(self, data: bytes) -> None:
        """Take in whole lines; what chunked encoding puts between them begins with no brace."""
        now = time.monotonic_ns()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if line.startswith(b'{"type":"ERROR"') or (line.startswith(b"HTTP/1.1 ") and b" 200 " not in line):
                self.errors.append(line[:300])
            elif line.startswith(b'{"type"') and (found := REVISION.search(line)):
                self._last = int(found[1])
                if not line.startswith(b'{"type":"BOOKMARK"'):
                    self.revisions.append(self._last)
                    self.times.append(now)

    def connection_lost(self, _error: Exception | None) -> None:
        """Come back."""
        if not self._closing:
            self.resumes += 1
            self._connecting = asyncio.get_running_loop().create_task(self.connect())

    def stall(self) -> None:
        """Stop reading."""
        if self._transport is not None:
            self._transport.pause_reading()

    def go_on(self) -> None:
        """Read again: what the kernel still has, and then the end."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def break_off(self) -> None:
        """Lose the connection."""
        if self._transport is not None:
            self._transport.abort()

    def close(self) -> None:
        """End for good."""
        self._closing = True
        self.break_off()


def write_events(options: argparse.Namespace) -> None:
    """Write at the wanted rate; print each event's revision with when it was sent and answered (monotonic ns)."""
    address = urllib.parse.urlparse(options.url)
    context = client_context(options)
    path = f"/api/v1/namespaces/{options.namespace}/configmaps"
    events: list[tuple[int, int, int]] = []
    begin = time.monotonic() + 0.5
    state = threading.local()

    def write(number: int) -> None:
        if not hasattr(state, "connection"):
            state.connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=context)
        pause = begin + number / options.rate - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        name = f"m{number % OBJECTS}"
        body = json.dumps({"metadata": {"name": name}, "data": {"payload": PAYLOAD, "number": str(number)}})
        sent = time.monotonic_ns()
        state.connection.request("PUT", f"{path}/{name}", body, {"Content-Type": "application/json"})
        answer = state.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise RuntimeError(text.decode())
        events.append((int(json.loads(text)["metadata"]["resourceVersion"]), sent, time.monotonic_ns()))

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(write, range(int(options.rate * options.seconds))))
    print(json.dumps({"events": sorted(events), "took": time.monotonic() - begin}))


def prepare(options: argparse.Namespace) -> int:
    """Create what is written to; return the revision to watch from."""
    address = urllib.parse.urlparse(options.url)
    connection = http.client.HTTPSConnection(address.hostname or "", address.port, context=client_context(options))
    path = f"/api/v1/namespaces/{options.namespace}/configmaps"
    for number in range(OBJECTS):
        connection.request(
            "POST", path, json.dumps({"metadata": {"name": f"m{number}"}}), {"Content-Type": "application/json"}
        )
        connection.getresponse().read()
    connection.request("GET", f"{path}?limit=1")
    revision = int(json.loads(connection.getresponse().read())["metadata"]["resourceVersion"])
    connection.close()
    return revision


def client_context(options: argparse.Namespace) -> ssl.SSLContext:
    context = ssl._create_unverified_context()  # noqa: S323, SLF001  (loopback)
    context.load_cert_chain(options.cert, options.key)
    return context


async def stress(options: argparse.Namespace) -> None:
    """Watch, write, break things, and print what came of it."""
    address = urllib.parse.urlparse(options.url)
    path = f"/api/v1/namespaces/{options.namespace}/configmaps"
    target = Target(address.hostname or "", address.port or 443, path, client_context(options))
    revision = await asyncio.to_thread(prepare, options)
    stalled = STALLED if options.seconds > LONG_SECONDS else 0
    watchers = [Watcher(target, revision, stalls=number < stalled) for number in range(options.watchers)]
    for watcher in watchers:
        await watcher.connect()
    await asyncio.sleep(SETTLE_SECONDS)
    writer = await asyncio.create_subprocess_exec(
        sys.executable, __file__, *sys.argv[1:], "--write", stdout=subprocess.PIPE
    )
    trouble = asyncio.create_task(break_things(watchers))
    output, _ = await writer.communicate()
    trouble.cancel()
    for watcher in watchers[:stalled]:
        watcher.go_on()
    written = json.loads(output)
    expected = array("Q", (event[0] for event in written["events"]))
    await settle(watchers, len(expected))
    print(json.dumps(verdict(watchers, expected, written)))
    for watcher in watchers:
        watcher.close()


async def break_things(watchers: list[Watcher]) -> None:
    """Break connections, and have some watchers read nothing."""
    chance = random.Random(SEED)  # noqa: S311
    begun, stalling = time.monotonic(), False
    sound = [watcher for watcher in watchers if not watcher.stalls]
    while True:
        await asyncio.sleep(1 / max(1.0, BROKEN * len(sound)))
        chance.choice(sound).break_off()
        if not stalling and time.monotonic() - begun > STALL_AFTER_SECONDS:
            stalling = True
            for watcher in watchers[: len(watchers) - len(sound)]:
                watcher.stall()


async def settle(watchers: list[Watcher], count: int) -> None:
    """Wait until everybody has as many events as there are, for a while."""
    end = time.monotonic() + 5 * SETTLE_SECONDS
    while time.monotonic() < end and any(len(one.revisions) < count for one in watchers):  # noqa: ASYNC110  (no signal)
        await asyncio.sleep(0.1)


def verdict(watchers: list[Watcher], expected: "array[int]", written: dict[str, object]) -> dict[str, object]:
    """Compare what watchers saw with what was written."""
    events = cast("list[tuple[int, int, int]]", written["events"])
    wrong = [watcher for watcher in watchers if watcher.revisions != expected]
    from_answer, from_sending = [], []
    for watcher in watchers:
        if watcher.stalls or watcher in wrong:
            continue
        for (_, sent, answered), seen in zip(events, watcher.times, strict=True):
            from_answer.append(max(0.0, (seen - answered) / 1e6))
            from_sending.append((seen - sent) / 1e6)
    figures = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {
        "watchers": len(watchers),
        "events": len(events),
        "events_per_s": round(len(events) / cast("float", written["took"]), 1),
        "deliveries": sum(len(watcher.revisions) for watcher in watchers),
        "watchers_with_wrong_events": len(wrong),
        "examples": [difference(watcher, expected) for watcher in wrong[:3]],
        "resumes": sum(watcher.resumes for watcher in watchers),
        "stalled_and_cut_off": sum(watcher.stalls and watcher.resumes > 0 for watcher in watchers),
        "errors": [error.decode() for watcher in watchers for error in watcher.errors][:3],
        "from_answer_ms": {name: percentile(from_answer, quantile) for name, quantile in figures.items()},
        "from_sending_ms": {name: percentile(from_sending, quantile) for name, quantile in figures.items()},
    }


def difference(watcher: Watcher, expected: "array[int]") -> dict[str, object]:
    """Describe what one watcher saw wrongly."""
    seen = list(watcher.revisions)
    return {
        "missing": sorted(set(expected) - set(seen))[:5],
        "repeated": len(seen) - len(set(seen)),
        "in_order": seen == sorted(seen),
        "count": len(seen),
    }


def main() -> None:
    options = watch_options(__doc__)
    if options.write:
        write_events(options)
    else:
        uvloop.run(stress(options))


if __name__ == "__main__":
    main()
