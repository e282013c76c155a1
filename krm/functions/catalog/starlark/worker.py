"""The child process that runs scripts: one after the other, under limits that the kernel enforces.

Started as ``python -m krm.functions.catalog.starlark.worker`` with the memory limit in bytes and the time limit in seconds.
Requests and answers are two frames each: one of JSON about the script, one of the resources' JSON. A script that
takes too long is ended by an alarm signal, one that takes too much memory by a failed allocation, each together
with this process: the server starts another. The end of stdin ends it; so does the alarm, if the server is gone.
"""

import json
import resource
import signal
import sys
from typing import IO

from krm.functions.catalog.starlark.frames import READY, BrokenFrame, read_frame, write_frame
from krm.functions.catalog.starlark.interpreter import Outcome, Script, evaluate
from krm.functions.peak_memory import peak_memory

MAX_FRAME = 128 << 20
"""Bytes of a request's frame; the packages of a server are smaller."""
MOST_ADDED = 16 << 20
"""Bytes that the resources' JSON may be more than twice as large as before."""
_GROWN = 0.5
"""Share of the memory limit that a process may have used and still be given another script."""


def serve(requests: IO[bytes], answers: IO[bytes], *, memory: int, seconds: float) -> None:
    """Say that this process is ready, then answer requests until their stream ends."""
    write_frame(answers, READY)
    answers.flush()
    while (about := _next(requests)) is not None:
        document = _next(requests) or b"{}"
        signal.setitimer(signal.ITIMER_REAL, seconds)
        outcome = evaluate(_script(about, document))
        signal.setitimer(signal.ITIMER_REAL, 0)
        last = peak_memory() > memory * _GROWN
        _answer(answers, outcome, most=2 * len(document) + MOST_ADDED, last=last)
        if last:
            return


def _next(requests: IO[bytes]) -> bytes | None:
    try:
        return read_frame(requests, MAX_FRAME)
    except BrokenFrame:
        return None


def _script(about: bytes, document: bytes) -> Script:
    return Script(**json.loads(about), document=document.decode())


def _answer(answers: IO[bytes], outcome: Outcome, *, most: int, last: bool) -> None:
    items = outcome.items.encode()
    if len(items) > most:
        outcome = Outcome(error=f"the script made more than {MOST_ADDED >> 20} MiB of new content")
        items = b"[]"
    about = {"error": outcome.error, "printed": outcome.printed, "numbers": outcome.numbers, "last": last}
    write_frame(answers, json.dumps(about).encode())
    write_frame(answers, items)
    answers.flush()


def main(arguments: list[str]) -> None:
    """Set the limits and serve stdin."""
    memory, seconds = int(arguments[0]), float(arguments[1])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    serve(sys.stdin.buffer, sys.stdout.buffer, memory=memory, seconds=seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
