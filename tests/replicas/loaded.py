"""Replicas under load: clients and watchers that come by a proxy in front of all of them, and what must be true in the end."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from cutting_proxy import CuttingProxy, cutting_proxy
from eventually import eventually
from git_server import GitServer, run_git
from porch_client import PorchClient
from replica_load import Load
from replica_set import SLOW, ReplicaSet
from resuming_watcher import Watcher, versions

CLIENTS, WATCHERS = 4, 2


@dataclass
class Loaded:
    """A running load."""

    replicas: ReplicaSet
    server: GitServer
    repository: str
    proxy: CuttingProxy
    loads: list[Load] = field(default_factory=list)
    watchers: list[Watcher] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def connect(self) -> PorchClient:
        """Return a client of whichever replica the proxy gives it."""
        data = self.replicas.members[0].data
        return PorchClient(
            f"https://127.0.0.1:{self.proxy.port}",
            ca=data / "ca.crt",
            certificate=(data / "admin.crt", data / "admin.key"),
            timeout=SLOW,
        )

    def begin(self) -> None:
        """Start clients and watchers."""
        self.loads = [Load(self.connect, self.repository, number) for number in range(CLIENTS)]
        self.watchers = [Watcher(self.connect, watch_seconds=2) for _ in range(WATCHERS)]
        for watcher in self.watchers:
            watcher.start()
        self._threads = [threading.Thread(target=load.run, daemon=True) for load in self.loads]
        for thread in self._threads:
            thread.start()

    def published(self) -> int:
        """Return how many approvals were acknowledged so far."""
        return sum(len(load.published) for load in self.loads)

    def go_on(self, count: int) -> None:
        """Wait until so many more approvals were acknowledged."""
        wanted = self.published() + count
        deadline = time.monotonic() + 2 * SLOW
        while self.published() < wanted:
            assert time.monotonic() < deadline, [load.errors[-1:] + load.wrong for load in self.loads]
            time.sleep(0.05)

    def end(self) -> None:
        """Let the clients finish what they are at."""
        for load in self.loads:
            load.stop()
        for thread in self._threads:
            thread.join(2 * SLOW)
            assert not thread.is_alive()

    def give_up(self) -> None:
        """Stop whatever still runs."""
        for load in self.loads:
            load.stop()
        for watcher in self.watchers:
            watcher.stop()
        for one in [*self._threads, *self.watchers]:
            one.join(SLOW)

    def check(self) -> None:
        """Compare what was acknowledged with what every living replica tells, with what watchers saw, and with Git."""
        assert [load.wrong for load in self.loads if load.wrong] == []
        told = [self._told(member.client()) for member in self.replicas.members if member.running]
        assert all(one == told[0] for one in told), "replicas tell different things"
        for load in self.loads:
            assert set(load.published) | set(load.drafts) <= set(told[0])
        for watcher in self.watchers:
            eventually(lambda watcher=watcher: self._same(watcher, told[0]), SLOW)  # type: ignore[misc] # as inferred
            watcher.stop()
            watcher.join(SLOW)
            assert watcher.violations == []
        eventually(self._in_git, SLOW)

    def _told(self, client: PorchClient) -> dict[str, str]:
        with closing(client):
            answer = client.request("GET", client.path("packagerevisions"))
            assert answer.code == 200, answer.body
            return versions(answer.object["items"])

    def _same(self, watcher: Watcher, told: dict[str, str]) -> None:
        assert watcher.seen == told

    def _in_git(self) -> None:
        path = self.server.root / f"{self.repository}.git"
        refs = set(run_git(path, "for-each-ref", "--format=%(refname)").splitlines())
        packages = {name: name.split(".")[1] for load in self.loads for name in load.published}
        drafts = {name.split(".")[1] for load in self.loads for name in load.drafts}
        assert {f"refs/tags/{package}/v1" for package in packages.values()} <= refs
        assert {f"refs/heads/drafts/{package}/v1" for package in drafts} <= refs
        tags = [ref for ref in refs if ref.startswith("refs/tags/load-")]
        assert all(ref.endswith("/v1") for ref in tags), "a package was published twice"


@contextmanager
def under_load(replicas: ReplicaSet, server: GitServer, repository: str) -> Iterator[Loaded]:
    """Load replicas until the block ends."""
    with cutting_proxy(*(member.port for member in replicas.members)) as proxy:
        loaded = Loaded(replicas, server, repository, proxy)
        loaded.begin()
        try:
            yield loaded
        finally:
            loaded.give_up()
