"""Keeping a long-lived process small: garbage that never was, and memory that is given back.

Reading a repository of thousands of revisions needs a hundred megabytes for a few seconds. glibc keeps what was freed
between live blocks unless it is asked; other C libraries are left alone.
"""

import asyncio
import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_OBJECTS = 20_000
"""Allocations between two collections of the youngest generation; requests make few cycles, and many objects."""

SWITCH_SECONDS = 0.001
"""How long one thread may keep the interpreter from another. Git threads make many short system calls and need it back
after each; with Python's 5 ms a push waits longer for the interpreter than for the disk."""


ARENAS = 2
"""Heaps of glibc's. It makes one for nearly every thread, and each keeps its own gaps; under the interpreter's lock two
are enough."""

LARGE_BYTES = 128 * 1024
"""From this size on a block is mapped by itself and goes back to the system when it is freed. glibc raises its own limit
to 32 MiB once such a block was freed, after which packs and large bodies leave gaps in the heap."""

GIVE_BACK_SECONDS = 60.0

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
"""Parameters of mallopt(3)."""


@contextmanager
def loading_long_lived() -> Iterator[None]:
    """Set the interpreter up for a long life, while everything is loaded that stays.

    Nothing of that is garbage, so nobody looks for it meanwhile: a hundred thousand objects load a quarter faster. Then it
    goes out of the collector's sight, so that collections stay short (``kube-api.md`` 6.1).
    """
    _leave_few_gaps()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 10, 20)
    sys.setswitchinterval(SWITCH_SECONDS)


def _c_library() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("libc.so.6")
        library.malloc_trim, library.mallopt  # noqa: B018 -- looked up: another C library of that name may lack them
    except (OSError, AttributeError):
        return None
    return library


_GLIBC = _c_library()


def _leave_few_gaps() -> None:
    """Have the C library keep its heap dense; a server under a mixed load grew by 40 MB of gaps in ten minutes."""
    if _GLIBC is not None:
        _GLIBC.mallopt(_M_ARENA_MAX, ARENAS)
        _GLIBC.mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        _GLIBC.mallopt(_M_TRIM_THRESHOLD, LARGE_BYTES)


def give_back() -> None:
    """Return freed memory to the operating system; blocks for some milliseconds, so call it in a thread."""
    if _GLIBC is not None:
        _GLIBC.malloc_trim(0)


async def give_back_regularly() -> None:
    """Return freed memory every minute, until cancelled: what is free between live blocks goes back, too."""
    while True:
        await asyncio.sleep(GIVE_BACK_SECONDS)
        await asyncio.to_thread(give_back)
