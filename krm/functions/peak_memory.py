"""How much memory this process has needed, for workers that are replaced when they have grown."""

import resource
from pathlib import Path

_STATUS = Path("/proc/self/status")
_PEAK = "VmHWM:"


def peak_memory() -> int:
    """Return the most bytes that were resident since this program was started.

    Not from ``getrusage`` where there is another way: on Linux a child's peak begins with that of the process that
    started it, so that the workers of a large server would seem large from the start.
    """
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(_PEAK))
