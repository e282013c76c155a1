"""Keeping a long-lived process small: garbage that never was, and memory that is given back.

Reading a repository of thousands of revisions needs a hundred megabytes for a few seconds. glibc keeps what was freed
between live blocks unless it is asked; other C libraries are left alone.
"""

import ctypes
import gc
import sys
from collections.abc import Callable
from typing import Any

YOUNG_OBJECTS = 20_000
"""Allocations between two collections of the youngest generation; requests make few cycles, and many objects."""

SWITCH_SECONDS = 0.001
"""How long one thread may keep the interpreter from another. Git threads make many short system calls and need it back
after each; with Python's 5 ms a push waits longer for the interpreter than for the disk."""


def settle_long_lived() -> None:
    """Set the interpreter up for a long life, once everything is loaded.

    What is there now goes out of the collector's sight, so that collections stay short (``kube-api.md`` 6.1).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 10, 20)
    sys.setswitchinterval(SWITCH_SECONDS)


def _trimmer() -> Callable[[int], Any] | None:
    try:
        trim = ctypes.CDLL("libc.so.6").malloc_trim
    except (OSError, AttributeError):
        return None
    return trim


_TRIM = _trimmer()


def give_back() -> None:
    """Return freed memory to the operating system; blocks for some milliseconds, so call it in a thread."""
    if _TRIM is not None:
        _TRIM(0)
