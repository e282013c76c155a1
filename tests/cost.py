"""What work costs a processor, measured so that a busy machine and a process with much in memory say the same.

For tests that tell linear work from worse: compare what ten times as much costs, or count operations where that can be done.
"""

import gc
import time
from collections.abc import Callable


def processor_seconds(work: Callable[[], object], times: int = 3) -> float:
    """Return the least processor time of this thread that some runs of ``work`` took, in seconds.

    Other threads do not count, and neither does the collector: after ten thousand tests it takes longer than what is measured.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        return min(_once(work) for _ in range(times))
    finally:
        if collecting:
            gc.enable()


def _once(work: Callable[[], object]) -> float:
    started = time.thread_time()
    work()
    return time.thread_time() - started
