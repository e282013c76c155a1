"""Watchers that move from replica to replica while two clients write: what each of them saw, compared with what was written.

Source: ``users.md`` 7.2 #2.
"""

import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field

from eventually import eventually
from porch_client import PorchClient
from replica_set import SLOW, ReplicaSet
from resuming_watcher import Watcher

PATCH = "application/merge-patch+json"


@dataclass
class WatchStory:
    """``written`` is each acknowledged write: resourceVersion → when it was answered (monotonic seconds)."""

    replicas: ReplicaSet
    drafts: list[str]
    written: dict[int, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, seed: int, *, watchers: int, writes: int, per_second: float) -> list[float]:
        """Write and watch; return the lag of each event at each open watch, sorted, in seconds.

        Raises:
            AssertionError: a watcher missed an event, or saw one twice, or in the wrong order.
        """
        chance = random.Random(seed)  # noqa: S311 # repeatable, not secret
        watching = [
            Watcher(lambda: chance.choice(self.replicas.members).client(), watch_seconds=1) for _ in range(watchers)
        ]
        for watcher in watching:
            watcher.start()
        for watcher in watching:
            eventually(lambda watcher=watcher: _listed(watcher), SLOW)  # type: ignore[misc] # as inferred
        begun = {watcher: watcher.version for watcher in watching}
        with ThreadPoolExecutor(2) as pool:
            halves = [pool.submit(self._write, number, writes // 2, per_second / 2) for number in range(2)]
            for half in halves:
                half.result()
        last = max(self.written)
        for watcher in watching:
            eventually(lambda watcher=watcher: _reached(watcher, last), SLOW)  # type: ignore[misc] # as inferred
            watcher.stop()
        for watcher in watching:
            watcher.join(SLOW)
            self._check(watcher, begun[watcher], last)
        return sorted(lag for watcher in watching for lag in self._lags(watcher))

    def _lags(self, watcher: Watcher) -> Iterator[float]:
        """Yield the lags of what was written while a watch was open; what came before is told when it resumes."""
        for version, (opened, arrived) in watcher.arrived.items():
            if self.written.get(version, 0.0) > opened:
                yield arrived - self.written[version]

    def _write(self, number: int, writes: int, per_second: float) -> None:
        """Change annotations of drafts at one replica."""
        with closing(self.replicas.members[number % 2].client()) as client:
            began = time.monotonic()
            for step in range(writes):
                name = self.drafts[(2 * step + number) % len(self.drafts)]
                version = self._annotate(client, name, f"{number}-{step}")
                with self._lock:
                    self.written[version] = time.monotonic()
                time.sleep(max(0.0, began + (step + 1) / per_second - time.monotonic()))

    def _annotate(self, client: PorchClient, name: str, value: str) -> int:
        path = client.path("packagerevisions", name)
        body = {"metadata": {"annotations": {"tests/step": value}}}
        answer = client.request("PATCH", path, body, content_type=PATCH)
        assert answer.code == 200, answer.body
        return int(answer.object["metadata"]["resourceVersion"])

    def _check(self, watcher: Watcher, begun: int, last: int) -> None:
        assert watcher.violations == []
        seen = {version for version in watcher.arrived if begun < version <= last}
        missed = {version for version in self.written if version > begun} - seen
        assert not missed, f"{len(missed)} events were never seen: {sorted(missed)[:5]}"


def _listed(watcher: Watcher) -> None:
    assert watcher.version > 0


def _reached(watcher: Watcher, version: int) -> None:
    assert watcher.version >= version, watcher.violations
