"""The child process that renders, one set after the other, under limits that the kernel enforces.

Started as ``python -m krm.variants.sets.rendering_process`` with the memory limit in bytes; ``rendering_worker`` is its owner.
A set that takes too much memory ends it by a failed allocation, one that takes too long is ended by the owner, and by an
alarm should the owner be gone; the end of stdin ends it, too. Source: ``variants.md`` 3.4, 6.9 and 6.12.
"""

import gc
import resource
import signal
import sys
from typing import IO, Any, Final

import orjson

from krm.functions.peak_memory import peak_memory
from krm.variants.sets.rendering import Renderer
from krm.variants.sets.rendering_frames import (
    LENGTH,
    READY,
    FrameError,
    done,
    framed,
    object_from_json,
    rendered_part,
)

Json = dict[str, Any]

OUT_OF_MEMORY: Final = 3
"""Exit code: the set needs more memory than there may be."""
TOO_LARGE: Final = 4
"""Exit code: an answer is too large."""
_GRACE: Final = 5.0
"""Seconds after its deadline when a process ends itself, which its owner should have done."""
_GROWN: Final = 0.5
"""Share of the memory limit that a process may have used and still be given another set."""
_ALLOCATIONS: Final = 100_000
"""Objects that are made between two searches for cycles: rendering makes none."""


def serve(requests: IO[bytes], answers: IO[bytes], memory: int) -> None:
    """Say that this process is ready, then render until the requests end."""
    _send(answers, framed(READY))
    while (request := _next(requests)) is not None:
        signal.setitimer(signal.ITIMER_REAL, request["seconds"] + _GRACE)
        _render(request, requests, answers)
        signal.setitimer(signal.ITIMER_REAL, 0)
        last = peak_memory() > memory * _GROWN
        _send(answers, done(last=last))
        if last:
            return


def _render(request: Json, requests: IO[bytes], answers: IO[bytes]) -> None:
    renderer = Renderer(request["set"], request["upstream"])
    while (part := _next(requests)) is not None and "end" not in part:
        if "repositories" in part:
            renderer.add_repositories({one.name: one for one in map(object_from_json, part["repositories"])})
        else:
            _send(answers, rendered_part(renderer, part["contexts"]))


def _next(requests: IO[bytes]) -> Json | None:
    header = requests.read(LENGTH.size)
    if len(header) < LENGTH.size:
        return None
    (length,) = LENGTH.unpack(header)
    data = requests.read(length)
    if len(data) < length:
        return None
    read: Json = orjson.loads(data)
    return read


def _send(answers: IO[bytes], frame: bytes) -> None:
    answers.write(frame)
    answers.flush()


def main(arguments: list[str]) -> int:
    """Set the limits and serve stdin; return the exit code."""
    memory = int(arguments[0])
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    gc.freeze()
    gc.set_threshold(_ALLOCATIONS)
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer, memory)
    except MemoryError:
        return OUT_OF_MEMORY
    except FrameError:
        return TOO_LARGE
    except (BrokenPipeError, KeyboardInterrupt):  # the owner is gone, or goes
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
