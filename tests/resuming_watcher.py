"""A watcher that lives through crashes: it resumes where it was, and what it saw must be one consistent history."""

import http.client
import json
import threading
import time
from collections.abc import Callable

from porch_client import Object, PorchClient

GONE = 410
WATCH_SECONDS = 5
"""How long one watch goes on before the next resumes where it was."""


class Watcher(threading.Thread):
    """Follows the package revisions of a namespace; ``violations`` says what cannot be true of one history.

    ``connect`` is asked for a client whenever a watch begins: it may be one of another replica each time.
    """

    def __init__(self, connect: Callable[[], PorchClient], *, watch_seconds: int = WATCH_SECONDS) -> None:
        super().__init__(name="watcher", daemon=True)
        self.arrived: dict[int, tuple[float, float]] = {}
        """resourceVersion of each event → when its watch was opened, and when it was read (monotonic seconds)."""
        self._opened = 0.0
        self._watch_seconds = watch_seconds
        self.seen: dict[str, str] = {}
        """Name → resourceVersion of everything that is there, as told by the events."""
        self.violations: list[str] = []
        self.events = 0
        self._connect = connect
        self._version = 0
        self._stopped = threading.Event()

    def run(self) -> None:
        """Watch until told to stop, through any number of lost connections."""
        while not self._stopped.is_set():
            try:
                self._follow()
            except (OSError, http.client.HTTPException, json.JSONDecodeError):
                time.sleep(0.05)  # the server is down; the last line may be torn

    @property
    def version(self) -> int:
        """Everything up to this resourceVersion was seen."""
        return self._version

    def stop(self) -> None:
        """End; call :meth:`join` afterwards."""
        self._stopped.set()

    def _follow(self) -> None:
        client = self._connect()
        try:
            if not self._version:
                self._list(client)
            path = f"{client.path('packagerevisions')}?watch=1&timeoutSeconds={self._watch_seconds}&resourceVersion={self._version}"
            client._connection.request("GET", path)
            response = client._connection.getresponse()
            if response.status != 200:
                self._refused(response.status, response.read())
                return
            self._opened = time.monotonic()
            while (line := response.readline()) and not self._stopped.is_set():
                self._take(json.loads(line), time.monotonic())
        finally:
            client.close()

    def _list(self, client: PorchClient) -> None:
        listed = client.request("GET", client.path("packagerevisions")).object
        self.seen = versions(listed["items"])
        self._version = int(listed["metadata"]["resourceVersion"])

    def _refused(self, status: int, body: bytes) -> None:
        if status < 500:
            self.violations.append(f"resuming after {self._version} was refused: {status} {body[:300]!r}")
            self._version = 0
        self._stopped.wait(0.1)

    def _take(self, event: Object, read_at: float) -> None:
        kind, body = event["type"], event["object"]
        if kind == "ERROR":
            self._refused(body.get("code", GONE), json.dumps(body).encode())
            return
        name, version = body["metadata"].get("name", ""), int(body["metadata"]["resourceVersion"])
        if version <= self._version and kind != "BOOKMARK":
            self.violations.append(f"{kind} {name} at {version} came after {self._version}")
        self._version = max(version, self._version)
        if kind == "BOOKMARK":
            return
        self.events += 1
        self.arrived[version] = (self._opened, read_at)
        if (kind == "ADDED") == (name in self.seen):
            self.violations.append(f"{kind} {name} at {version}, and it was {'' if name in self.seen else 'not '}there")
        if kind == "DELETED":
            self.seen.pop(name, None)
        else:
            self.seen[name] = str(version)


def versions(items: list[Object]) -> dict[str, str]:
    """Return name → resourceVersion of listed objects."""
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in items}
