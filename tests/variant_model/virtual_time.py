"""An event loop whose time passes only when nobody has anything to do, and then at once."""

import asyncio
import selectors
from typing import Any


class NothingLeft(Exception):
    """Everybody waits for something that never comes."""


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Waits for nothing: where nothing can run, the clock jumps to the next timer. For programs without sockets."""

    def __init__(self) -> None:
        self._passed = 0.0
        super().__init__(_Jump(self._pass))

    def time(self) -> float:
        """Return the seconds since the loop was made."""
        return self._passed

    def run_in_executor(  # type: ignore[override]  # typeshed ties the arguments to each other
        self, executor: Any, func: Any, *args: Any
    ) -> "asyncio.Future[Any]":
        """Do at once what belongs into a thread: real time does not pass here."""
        done = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it is the caller's
            done.set_exception(error)
        return done

    def _pass(self, seconds: float) -> None:
        self._passed += seconds


class _Jump(selectors.SelectSelector):
    def __init__(self, passes: Any) -> None:
        super().__init__()
        self._passes = passes

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise NothingLeft
        if not ready and timeout:
            self._passes(timeout)
        return ready
