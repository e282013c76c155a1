"""Work on a package's files and Kptfile, kept off the event loop where it takes longer than a moment.

A Kptfile of 4 KB is edited in some 5 ms, one of 1 MB in a second; going to a thread and back costs a tenth of a millisecond.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from krm.package.contents import Contents

T = TypeVar("T")

SMALL_KPTFILE = 2 << 10
"""Bytes of a root Kptfile that is read and edited in a moment."""
FEW_FILES = 200
"""Files whose paths are checked in a moment."""


async def off_loop(contents: Contents, work: Callable[..., T], *arguments: Any) -> T:
    """Do ``work`` that reads the files' names and the root Kptfile of ``contents``: at once, or in a thread."""
    kptfile = contents.get("Kptfile")
    if len(contents) <= FEW_FILES and (kptfile is None or len(kptfile.data) <= SMALL_KPTFILE):
        return work(*arguments)
    return await asyncio.to_thread(work, *arguments)
