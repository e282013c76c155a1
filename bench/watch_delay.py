"""How long after a write watchers hear of it: ``watch_delay.py URL NAMESPACE WATCHERS RATE SECONDS --cert C --key K``.

A writer in a process of its own patches an annotation of published package revisions RATE times a second; WATCHERS
watches of all package revisions note when they see each. Prints a JSON line: p50, p99 and max in ms, from the answer to
the write (it is committed by then) and from its sending (an upper bound).
"""

import argparse
import asyncio
import json
import re
import ssl
import subprocess
import sys
import time
import urllib.parse
from typing import cast

import uvloop
from session import Session, percentile, watch_options

STAMP = "bench.example/stamp"
SEEN = re.compile(rb'"bench\.example/stamp":"(\d+)"')
MERGE_PATCH = "application/merge-patch+json"
SETTLE_SECONDS = 1.0
"""Between the last watch's start and the first write, and between the last write and the end."""


class Watcher(asyncio.Protocol):
    """One watch connection: remembers when each stamp was seen first."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._rest = b""
        self.seen: dict[int, int] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.WriteTransport", transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        now = time.monotonic_ns()
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if found := SEEN.search(line):
                self.seen.setdefault(int(found[1]), now)


def write_events(options: argparse.Namespace) -> None:
    """Patch at the wanted rate and print what was sent and answered when (monotonic ns)."""
    session = Session(options.url, options.namespace, options.cert, options.key)
    items = session.call("GET", "packagerevisions?fieldSelector=spec.lifecycle=Published")["items"]
    names = [item["metadata"]["name"] for item in items if item["spec"].get("revision", 0) > 0][:50]
    times = []
    begin = time.monotonic()
    for number in range(int(options.rate * options.seconds)):
        pause = begin + number / options.rate - time.monotonic()
        if pause > 0:
            time.sleep(pause)
        stamp = time.monotonic_ns()
        patch = {"metadata": {"annotations": {STAMP: str(stamp)}}}
        session.fetch("PATCH", f"packagerevisions/{names[number % len(names)]}", patch, content_type=MERGE_PATCH)
        times.append((stamp, time.monotonic_ns()))
    print(json.dumps({"times": times, "took": time.monotonic() - begin}))


async def watch_events(options: argparse.Namespace) -> None:
    """Open the watches, run the writer, and print the delays."""
    address = urllib.parse.urlparse(options.url)
    context = ssl._create_unverified_context()  # noqa: S323, SLF001  (loopback)
    context.load_cert_chain(options.cert, options.key)
    session = Session(options.url, options.namespace, options.cert, options.key)
    version = session.call("GET", "packagerevisions?limit=1")["metadata"]["resourceVersion"]
    path = f"/apis/porch.kpt.dev/v1alpha1/namespaces/{options.namespace}/packagerevisions?watch=1&resourceVersion={version}"
    request = f"GET {path} HTTP/1.1\r\nHost: bench\r\nAccept: application/json\r\n\r\n".encode()
    loop = asyncio.get_running_loop()
    watchers = []
    for _ in range(options.watchers):
        _, watcher = await loop.create_connection(
            lambda: Watcher(request), address.hostname, address.port, ssl=context, server_hostname=""
        )
        watchers.append(watcher)
    await asyncio.sleep(SETTLE_SECONDS)
    writer = await asyncio.create_subprocess_exec(
        sys.executable, __file__, *sys.argv[1:], "--write", stdout=subprocess.PIPE
    )
    output, _ = await writer.communicate()
    await asyncio.sleep(SETTLE_SECONDS)
    written = json.loads(output)
    print(json.dumps(delays(watchers, written["times"], written["took"])))


def delays(watchers: list[Watcher], times: list[tuple[int, int]], took: float) -> dict[str, object]:
    """Compare when watchers saw each write with when it was sent and answered."""
    from_answer, from_sending, missing = [], [], 0
    for sent, answered in times:
        for watcher in watchers:
            seen = watcher.seen.get(sent)
            if seen is None:
                missing += 1
                continue
            from_answer.append(max(0.0, (seen - answered) / 1e6))
            from_sending.append((seen - sent) / 1e6)
    figures = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    return {
        "watchers": len(watchers),
        "events": len(times),
        "events_per_s": round(len(times) / took, 1),
        "missing": missing,
        "from_answer_ms": {name: percentile(from_answer, quantile) for name, quantile in figures.items()},
        "from_sending_ms": {name: percentile(from_sending, quantile) for name, quantile in figures.items()},
    }


def main() -> None:
    options = watch_options(__doc__)
    if options.write:
        write_events(options)
    else:
        uvloop.run(watch_events(options))


if __name__ == "__main__":
    main()
