"""A process that does one piece of package work: it comes on stdin, the outcome goes to stdout.

Limits of its own end it when the server cannot any more, because that was killed.
"""

import os
import pickle
import resource
import signal
import sys

from apiserver.engine.package_work import PackageWork

MEMORY_LIMIT = 2 << 30
"""Bytes of data; the largest packages need less than half."""
TOO_LARGE = 3
"""Exit code when the memory is not enough."""
_POLITENESS = 5
"""Steps of niceness below the server, which answers everybody while this works for one."""


def main() -> None:
    """Do the work."""
    # Ctrl-C in a terminal reaches the whole process group; the server decides when its processes end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(_POLITENESS)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what anything prints must not end up in the outcome
    seconds: float
    work: PackageWork
    seconds, work = pickle.loads(sys.stdin.buffer.read())  # noqa: S301 - our own server's bytes
    processor = int(seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (processor, processor))
    try:
        answer = pickle.dumps(work.run(), protocol=pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        sys.exit(TOO_LARGE)
    answers.write(answer)
    answers.close()


if __name__ == "__main__":
    main()
