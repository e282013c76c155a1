"""Wait for what happens in the background: the first time the check passes is enough."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
PAUSE = 0.05
"""Seconds between two looks."""
PATIENCE = 60.0
"""Seconds until what should be there at once is given up: CI has two cores, on which more than this test is run."""


def eventually(check: Callable[[], T], timeout: float = PATIENCE) -> T:
    """Call ``check`` until it raises no AssertionError and return what it returned; its last error after ``timeout`` s."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
        time.sleep(PAUSE)
