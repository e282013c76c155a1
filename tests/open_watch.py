"""One watch that is read in the background for as long as it lives."""

import contextlib
import http.client
import json
import re
import socket
import threading
import time
from typing import Any

from porch_client import PorchClient
from porch_process import PorchProcess

Object = dict[str, Any]


def has_open_watches(server: PorchProcess, count: int) -> None:
    """Fail unless so many watches are open at a server: what is watched for must not happen before."""
    found = re.search(
        r'^apiserver_current_inflight_requests\{request_kind="watch"\} (\S+)', server.metrics(), re.MULTILINE
    )
    assert found
    assert float(found[1]) == count


class OpenWatch(threading.Thread):
    """The events of one watch, in order, each with when it was read (monotonic seconds).

    The client is the watch's own; its deadline must be longer than the watch may be silent.
    """

    def __init__(self, porch: PorchClient, path: str) -> None:
        super().__init__(name=f"watch of {path}", daemon=True)
        self.opened = time.monotonic()
        self.events: list[tuple[float, Object]] = []
        self.ended = ""
        """Why nothing comes any more; empty while the watch is open."""
        porch._connection.request("GET", path)
        self._porch, self._socket = porch, porch._connection.sock
        self._answer = porch._connection.getresponse()
        assert self._answer.status == http.client.OK, self._answer.read()
        self.start()

    def run(self) -> None:
        """Read until there is no more to read."""
        try:
            while line := self._answer.readline():
                self.events.append((time.monotonic(), json.loads(line)))
        except (OSError, ValueError, http.client.HTTPException) as error:
            self.ended = repr(error)
        else:
            self.ended = "it was closed"

    def close(self) -> None:
        """End it, and its client."""
        with contextlib.suppress(OSError):  # it has ended already
            self._socket.shutdown(socket.SHUT_RDWR)
        self.join()
        self._porch.close()

    @property
    def versions(self) -> dict[int, float]:
        """The resourceVersion of each event, and when it was read."""
        return {int(event["object"]["metadata"]["resourceVersion"]): at for at, event in list(self.events)}

    def of_type(self, kind: str) -> list[Object]:
        """Return the objects of the events of one type."""
        return [event["object"] for _, event in list(self.events) if event["type"] == kind]
