"""Watchers in processes of their own, so that what is measured is the server's delay and not that of a crowded test.

Thirty threads of one Python process wait for each other: twenty watchers beside the writers added a hundred milliseconds and
more to the slowest events. Times are of the machine's monotonic clock, which all processes share.
"""

import multiprocessing
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from eventually import eventually
from porch_client import PorchClient
from replica_set import SLOW, ReplicaSet
from resuming_watcher import Watcher

TOGETHER = 4
"""Watchers of one process."""
WATCH_SECONDS = 1
"""How long a watch goes on before it is closed, and resumed at any replica over a new connection."""


@dataclass(frozen=True)
class Seen:
    """What a watcher saw beyond ``begun``: resourceVersion → when its watch was opened and when the event was read (s)."""

    begun: int
    arrived: dict[int, tuple[float, float]]
    violations: list[str]


@dataclass(frozen=True)
class _Servers:
    """How to reach the replicas; can be handed to another process."""

    urls: list[str]
    data: Path

    def client(self, chance: random.Random) -> PorchClient:
        certificate = (self.data / "admin.crt", self.data / "admin.key")
        return PorchClient(chance.choice(self.urls), ca=self.data / "ca.crt", certificate=certificate)


class WatchingProcesses:
    """Running watchers; all of them have listed."""

    def __init__(self, pipes: Sequence[Connection]) -> None:
        self._pipes = pipes

    def until(self, version: int) -> list[Seen]:
        """Wait until every watcher has seen everything up to a resourceVersion, end them, and return what they saw.

        Raises:
            EOFError: one of the processes failed, and has said why.
        """
        for pipe in self._pipes:
            pipe.send(version)
        return [seen for pipe in self._pipes for seen in pipe.recv()]


@contextmanager
def watching(replicas: ReplicaSet, count: int, seed: int) -> Iterator[WatchingProcesses]:
    """Run so many watchers, each of which moves from replica to replica, until the block ends."""
    servers = _Servers([member.url for member in replicas.members], replicas.members[0].data)
    context = multiprocessing.get_context("spawn")
    processes, pipes = [], []
    try:
        for number, first in enumerate(range(0, count, TOGETHER)):
            here, there = context.Pipe()
            size = min(TOGETHER, count - first)
            process = context.Process(target=_watch, args=(there, servers, size, seed * 1000 + number), daemon=True)
            process.start()
            there.close()  # or its end would not be noticed
            processes.append(process)
            pipes.append(here)
        for pipe in pipes:
            assert pipe.recv() == "listed"
        yield WatchingProcesses(pipes)
    finally:
        for process in processes:
            process.terminate()
            process.join(SLOW)


def _watch(pipe: Connection, servers: _Servers, count: int, seed: int) -> None:
    """Watch until everything up to the version that the pipe says is seen; in a process of its own."""
    chance = random.Random(seed)  # noqa: S311 # repeatable, not secret
    watchers = [Watcher(lambda: servers.client(chance), watch_seconds=WATCH_SECONDS) for _ in range(count)]
    for watcher in watchers:
        watcher.start()
    for watcher in watchers:
        eventually(lambda watcher=watcher: _reached(watcher, 1), SLOW)  # type: ignore[misc] # as inferred
    begun = [watcher.version for watcher in watchers]
    pipe.send("listed")
    last = pipe.recv()
    for watcher in watchers:
        eventually(lambda watcher=watcher: _reached(watcher, last), SLOW)  # type: ignore[misc] # as inferred
        watcher.stop()
    for watcher in watchers:
        watcher.join(SLOW)
    pipe.send(
        [Seen(*one) for one in zip(begun, (w.arrived for w in watchers), (w.violations for w in watchers), strict=True)]
    )


def _reached(watcher: Watcher, version: int) -> None:
    assert watcher.version >= version, watcher.violations
