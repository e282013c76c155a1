"""The controllers' process, killed with SIGKILL at its n-th write: ``python doomed_controller.py N before|after``.

N counts writes of package revisions, their files and variants; ``before`` dies before it is sent, ``after`` when the
server has answered. Settings come from the environment as ever.
"""

import os
import runpy
import signal
import sys
from typing import Any

from krm.client.connection import Connection

COUNTED = ("/packagerevisions", "/packagerevisionresources", "/packagevariants")
FATAL, WHEN = int(sys.argv[1]), sys.argv[2]


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _doom() -> None:
    send = Connection.request
    count = 0

    async def request(self: Connection, method: str, path: str, **more: Any) -> bytes:
        nonlocal count
        if method == "GET" or not any(part in path for part in COUNTED):
            return await send(self, method, path, **more)
        count += 1
        number = count
        if number >= FATAL and WHEN == "before":
            _die()
        answer = await send(self, method, path, **more)
        if number >= FATAL:
            _die()
        return answer

    Connection.request = request  # type: ignore[method-assign]  # the point of this program


if __name__ == "__main__":
    _doom()
    sys.argv = ["controllers"]
    runpy.run_module("controllers", run_name="__main__")
