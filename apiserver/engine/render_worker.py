"""One render worker: a child process that renders package after package for its server.

The first frame on its stdin says what functions it may run, every further one is a package; the answer holds only the
files that changed. It ends when its server does, however that ends: the end of its stdin is the end of the process,
also amid a render.
"""

import os
import pickle
import queue
import resource
import signal
import sys
import threading
from typing import BinaryIO

from apiserver.engine.function_options import FunctionOptions
from apiserver.engine.render_frames import HEADER, answer, frame
from krm.functions.peak_memory import peak_memory
from krm.functions.pipeline import render
from krm.functions.step_cache import StepCache
from krm.package.contents import File

MEMORY_LIMIT = 2 << 30
"""Bytes of memory of one worker; the largest package allowed needs less than half. Of data and not of address space,
because programs that it starts may reserve much more than they use."""
_RETIRE_ABOVE = 512 << 20
"""Bytes of resident memory after which a worker is replaced: memory that Python has freed it seldom gives back."""
_REMEMBERED = 64 << 20
"""Bytes of what single functions made of their input."""
_POLITENESS = 5
"""Steps of niceness below the server, which answers everybody while this works for one."""


def _frames(stream: BinaryIO, into: "queue.SimpleQueue[bytes]") -> None:
    """Read frames ahead of the work, so that the end of the server is noticed amid a render."""
    while len(header := stream.read(HEADER.size)) == HEADER.size:
        into.put(stream.read(HEADER.unpack(header)[0]))
    os._exit(0)


def main() -> None:
    """Render until the server closes the pipe."""
    # Ctrl-C in a terminal reaches the whole process group; the server decides when its workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_POLITENESS)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints must not end up between two frames
    frames: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_frames, args=(sys.stdin.buffer, frames), daemon=True).start()
    options: FunctionOptions = pickle.loads(frames.get())  # noqa: S301 - our own server's bytes
    runner, steps = options.runner(), StepCache(_REMEMBERED)
    while True:
        contents: dict[str, File] = pickle.loads(frames.get())  # noqa: S301 - the same
        rendered = render(contents, runner, step_cache=steps, look_ahead=True)
        retire = peak_memory() > _RETIRE_ABOVE
        answers.write(frame(answer(contents, rendered, retire=retire, lookups=steps.take_lookups())))
        answers.flush()


if __name__ == "__main__":
    main()
