"""Watchers that move from replica to replica while two clients write: what each of them saw, compared with what was written.

Source: ``users.md`` 7.2 #2.
"""

import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field

from porch_client import PorchClient
from porch_process import PorchProcess
from replica_set import ReplicaSet
from watching_process import Seen, watching

PATCH = "application/merge-patch+json"
FROM_ONE_TO_THE_OTHER = 60
"""Writes each of which each is waited for at another replica."""


def delays_between(writer: PorchProcess, watched: PorchProcess, draft: str) -> list[float]:
    """Write at one replica and watch at another, one write after the other; return from answer to event, sorted, in seconds.

    An event may be there before the answer is.
    """
    delays = []
    with closing(writer.client()) as one, closing(watched.client()) as two:
        version = annotate(one, draft, "begin")
        two.send("GET", f"{two.path('packagerevisions')}?watch=1&timeoutSeconds=600&resourceVersion={version}")
        lines = two._connection.getresponse()
        for number in range(FROM_ONE_TO_THE_OTHER):
            version = annotate(one, draft, str(number))
            answered = time.monotonic()
            while int(json.loads(lines.readline())["object"]["metadata"]["resourceVersion"]) < version:
                pass
            delays.append(time.monotonic() - answered)
    return sorted(delays)


def annotate(client: PorchClient, name: str, value: str) -> int:
    """Change an annotation of a draft; return its new resourceVersion."""
    path = client.path("packagerevisions", name)
    body = {"metadata": {"annotations": {"tests/step": value}}}
    answer = client.request("PATCH", path, body, content_type=PATCH)
    assert answer.code == 200, answer.body
    return int(answer.object["metadata"]["resourceVersion"])


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
        with watching(self.replicas, watchers, seed) as processes:
            with ThreadPoolExecutor(2) as pool:
                halves = [pool.submit(self._write, number, writes // 2, per_second / 2) for number in range(2)]
                for half in halves:
                    half.result()
            last = max(self.written)
            everything = processes.until(last)
        assert len(everything) == watchers
        for seen in everything:
            self._check(seen, last)
        return sorted(lag for seen in everything for lag in self._lags(seen))

    def _lags(self, seen: Seen) -> Iterator[float]:
        """Yield the lags of what was written while a watch was open; what came before is told when it resumes."""
        for version, (opened, arrived) in seen.arrived.items():
            if self.written.get(version, 0.0) > opened:
                yield arrived - self.written[version]

    def _write(self, number: int, writes: int, per_second: float) -> None:
        """Change annotations of drafts at one replica."""
        with closing(self.replicas.members[number % 2].client()) as client:
            began = time.monotonic()
            for step in range(writes):
                name = self.drafts[(2 * step + number) % len(self.drafts)]
                version = annotate(client, name, f"{number}-{step}")
                with self._lock:
                    self.written[version] = time.monotonic()
                time.sleep(max(0.0, began + (step + 1) / per_second - time.monotonic()))

    def _check(self, seen: Seen, last: int) -> None:
        assert seen.violations == []
        told = {version for version in seen.arrived if seen.begun < version <= last}
        missed = {version for version in self.written if version > seen.begun} - told
        assert not missed, f"{len(missed)} events were never seen: {sorted(missed)[:5]}"
