"""A server and its controllers while they are measured: how long until something holds, what was written, what it cost.

Shared by the parts of ``make bench`` that have controllers at work.
"""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from measured_controllers import ControllersProcess, cpu_seconds, series
from testbed import CONFIG, PorchClient, PorchProcess

Json = dict[str, Any]
Item = TypeVar("Item")

CLIENTS = 8
PATIENCE = 1800.0
"""Seconds that a stage may take before the run is given up."""
QUIET_SECONDS = 2.0
"""So long nothing may be going on until a stage counts as over."""
_REQUEST = re.compile(r"apiserver_request_total\{(.*)\}")
_LABEL = re.compile(r'([a-z]+)="([^"]*)"')
_READS = frozenset({"GET", "LIST", "WATCH", "HEAD", "CONNECT", "OPTIONS"})
_NOT_COUNTED = frozenset({"leases", "events"})


class ControllersRun:
    """One server with controllers beside it, and the connections of those who use it."""

    def __init__(self, server: PorchProcess, controllers: ControllersProcess) -> None:
        self.server, self.controllers = server, controllers
        self._clients = [server.client(timeout=300) for _ in range(CLIENTS)]
        self.porch = self._clients[0]

    def close(self) -> None:
        """Close the connections; a request opens its own again. The server ends those that nobody used for long."""
        for client in self._clients:
            client.close()

    # --- doing ------------------------------------------------------------------------------------

    def all(self, items: Iterable[Item], work: Callable[[PorchClient, Item], object]) -> None:
        """Do one thing for every item over all connections."""
        shares = list(items)

        def some(part: int) -> None:
            for item in shares[part::CLIENTS]:
                work(self._clients[part], item)

        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(some, range(CLIENTS)))

    def create(self, plural: str, body: Json, version: str = CONFIG) -> None:
        """Create an object of the configuration's group."""
        ok(self.porch.request("POST", self.path(plural, version=version), body))

    def path(self, plural: str, name: str = "", *, version: str = CONFIG) -> str:
        """Return the path of a kind's objects in the namespace, or of one of them."""
        base = f"{version}/namespaces/{self.porch.namespace}/{plural}"
        return f"{base}/{name}" if name else base

    # --- waiting ----------------------------------------------------------------------------------

    def until(self, done: Callable[[dict[str, float]], bool], *, often: float = 0.2) -> float:
        """Wait for what the controllers' metrics say; return the monotonic time in seconds."""
        deadline = time.monotonic() + PATIENCE
        while not done(found := self.controllers.metrics()):
            if time.monotonic() > deadline:
                told = {name: value for name, value in found.items() if name.startswith(("porch_", "workqueue_"))}
                raise RuntimeError(f"not done after {PATIENCE} s: {told}")
            time.sleep(often)
        self.close()
        return time.monotonic()

    def until_quiet(self) -> None:
        """Wait until nothing was looked at for a while."""
        deadline = time.monotonic() + PATIENCE
        quiet, seen = time.monotonic(), -1.0
        while time.monotonic() - quiet < QUIET_SECONDS:
            found = self.controllers.metrics()
            now = found.get("controller_runtime_reconcile_total", 0.0)
            if now != seen or not is_idle(found):
                quiet, seen = time.monotonic(), now
            if time.monotonic() > deadline:
                raise RuntimeError(f"the controllers find no rest: {found}")
            time.sleep(0.2)
        self.close()

    # --- counting ---------------------------------------------------------------------------------

    def writes(self) -> "Writes":
        """Return what the server has done and refused of writes."""
        text = self.porch.request("GET", "/metrics", accept="text/plain").body.decode()
        counts: Counter[str] = Counter()
        refused: Counter[str] = Counter()
        for name, value in series(text).items():
            if (found := _REQUEST.fullmatch(name)) is None:
                continue
            labels = dict(_LABEL.findall(found[1]))
            if labels["verb"] not in _READS and labels["resource"] not in _NOT_COUNTED:
                what = "/".join(filter(None, (labels["resource"], labels["subresource"])))
                into = refused if labels["code"] >= "400" else counts
                into[f"{labels['verb']} {what}"] += round(value)
        return Writes(counts, refused)

    def spent(self) -> "Spent":
        """Return what was used up to now."""
        found = self.controllers.metrics() if self.controllers.running else {}
        cpu = cpu_seconds(self.server.pid), self.controllers.cpu_seconds()
        return Spent(*cpu, found.get("rest_client_requests_total", 0.0))

    def say(self, what: str, before: "Spent", seconds: float, number: int) -> None:
        """Print what a stage over so many variants has used."""
        now = self.spent()
        print(
            f"  {what}: {seconds:.1f} s; CPU of the server {now.server - before.server:.1f} s, of the controllers "
            f"{now.controllers - before.controllers:.1f} s; {(now.requests - before.requests) / number:.2f} requests a variant",
            flush=True,
        )


@dataclass(frozen=True)
class Writes:
    """How many writes the server has done, by verb and resource; those of Leases and Events are left out."""

    counts: Counter[str]
    refused: Counter[str]
    """Requests that changed nothing, mostly because somebody else wrote the object in the same moment."""

    def __sub__(self, before: "Writes") -> "Writes":
        return Writes(self.counts - before.counts, self.refused - before.refused)

    def __str__(self) -> str:
        refused = f"; refused: {_listed(self.refused)}" if self.refused else ""
        return f"{_listed(self.counts)}{refused}"

    @property
    def total(self) -> int:
        """All of them."""
        return self.counts.total()

    def of(self, *whats: str) -> int:
        """Return how many there are of these."""
        return sum(self.counts[what] for what in whats)


@dataclass(frozen=True)
class Spent:
    """Processor seconds of the server and of the controllers, and the controllers' requests."""

    server: float
    controllers: float
    requests: float


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{number} × {what}" for what, number in sorted(counts.items())) or "none"


def is_idle(found: dict[str, float]) -> bool:
    """Tell whether nothing waits or is worked on."""
    return not found.get("workqueue_depth") and not found.get("controller_runtime_active_workers")


def ok(answer: Any) -> None:
    """Give the run up where a request was refused."""
    if answer.code >= 300:
        raise RuntimeError(f"{answer.code}: {answer.body[:1000]!r}")
