"""Keeping a long-lived process small: garbage that never was, and memory that is given back.

Reading a repository of thousands of revisions needs a hundred megabytes for a few seconds. glibc keeps what was freed
between live blocks unless it is asked; other C libraries are left alone.
"""

import ctypes
import gc
from collections.abc import Callable
from typing import Any

YOUNG_OBJECTS = 20_000
"""Allocations between two collections of the youngest generation; requests make few cycles, and many objects."""


def settle_long_lived() -> None:
    """Take what is loaded now out of the collector's sight, so that collections stay short (``kube-api.md`` 6.1)."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 10, 20)


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
