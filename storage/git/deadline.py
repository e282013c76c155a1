"""A bound on a whole operation, for blocking calls that only bound each wait.

A server that sends one byte per minute never trips a socket timeout; when the deadline passes, whatever the operation
registered is broken off and the blocked call fails.
"""

import threading
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Self

_current: ContextVar["Deadline | None"] = ContextVar("git_deadline", default=None)


class Deadline:
    """Breaks off what was registered once ``seconds`` have passed; a context manager."""

    def __init__(self, seconds: float) -> None:
        self.expired = False
        self._breakers: list[Callable[[], None]] = []
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True

    def __enter__(self) -> Self:
        self._token = _current.set(self)
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        _current.reset(self._token)

    def on_expiry(self, breaker: Callable[[], None]) -> None:
        """Call ``breaker`` when time is up, or now if it already is."""
        self._breakers.append(breaker)
        if self.expired:
            breaker()

    def _expire(self) -> None:
        self.expired = True
        for breaker in list(self._breakers):
            breaker()


def break_on_expiry(breaker: Callable[[], None]) -> None:
    """Register with the deadline of the operation this thread is in; without one nothing happens."""
    deadline = _current.get()
    if deadline is not None:
        deadline.on_expiry(breaker)
