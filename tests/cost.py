"""What work costs a processor, measured so that a busy machine and a process with much in memory say the same.

For tests that tell linear work from worse: compare what ten times as much costs, or count operations where that can be done.
"""

import gc
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Cost:
    """Processor seconds of one thread; known when the work has been done."""

    seconds: float = math.inf


@contextmanager
def metered() -> Iterator[Cost]:
    """Measure what the block costs its thread.

    Other threads do not count, and neither does the collector: after ten thousand tests it takes longer than what is measured.
    """
    cost, collecting = Cost(), gc.isenabled()
    gc.disable()
    started = time.thread_time()
    try:
        yield cost
    finally:
        cost.seconds = time.thread_time() - started
        if collecting:
            gc.enable()


def processor_seconds(work: Callable[[], object], times: int = 3) -> float:
    """Return the least that some runs of ``work`` cost, in seconds, as :func:`metered` measures them."""
    return min(_once(work) for _ in range(times))


def _once(work: Callable[[], object]) -> float:
    with metered() as cost:
        work()
    return cost.seconds
