# ruff: noqa: T201 # a program that prints
"""``replicas_run.py [--rounds 100] [--histories 200]``: two replicas on PostgreSQL, for long; ends with a table.

Pauses inside a publish for longer than the lease (users.md 7.2 #11), histories of one revision (#1), watches that move (#2).
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "replicas")]

from embedded_postgres import OwnPostgres, new_postgres  # noqa: E402  (the tests' folder is on the path only now)
from git_server import GitServer, create_repository, git_server  # noqa: E402
from linearizability import violation  # noqa: E402
from object_histories import History  # noqa: E402
from replica_set import LEASE_SECONDS, ReplicaSet, register, running_replicas  # noqa: E402
from split_brain import SplitBrain  # noqa: E402
from watch_story import WatchStory, delays_between  # noqa: E402

OPERATIONS = 500
LONGEST_LAG = 0.25
"""Seconds, of 99 of 100 events (issue 9). All of this machine's processors are needed: twenty watchers, two servers, a database."""


def main() -> int:
    """Run everything and print what happened; 1 when something must not have."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--histories", type=int, default=200)
    parser.add_argument("--writes", type=int, default=6000)
    parser.add_argument("--first", type=int, default=1, help="seed of the first round and history")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="porch-replicas-"))
    database = OwnPostgres(folder / "pg")
    try:
        with (
            git_server(folder / "remotes") as server,
            running_replicas(folder, new_postgres(database.url)) as replicas,
        ):
            failed = _histories(replicas, server, range(options.first, options.first + options.histories))
            failed += _watches(replicas, server, options.writes)
            failed += _rounds(replicas, server, range(options.first, options.first + options.rounds))
    finally:
        database.end()
    print(f"failed: {failed or 'none'}; folder: {folder}")
    return 1 if failed else 0


def _repository(replicas: ReplicaSet, server: GitServer, name: str) -> None:
    server.root.mkdir(exist_ok=True)
    create_repository(server.root / f"{name}.git")
    clients = replicas.clients()
    try:
        register(clients, server, name)
    finally:
        for client in clients:
            client.close()


def _rounds(replicas: ReplicaSet, server: GitServer, seeds: range) -> list[str]:
    _repository(replicas, server, "split")
    story, failed, began = SplitBrain(replicas, server, "split"), [], time.monotonic()
    for seed in seeds:
        try:
            story.round(seed)
        except (AssertionError, OSError) as error:
            failed.append(f"round {seed}")
            print(f"FAILED round {seed}: {error!r}", flush=True)
    seen = ", ".join(f"{count} × {what}" for what, count in sorted(story.seen.items()))
    print(f"{len(seeds)} pauses inside a publish in {time.monotonic() - began:.0f} s: {seen}", flush=True)
    if story.took:
        took = sorted(story.took)
        print(
            f"taken over after {took[len(took) // 2]:.1f} s, at most {took[-1]:.1f} s; the lease is {LEASE_SECONDS} s"
        )
    return failed


def _histories(replicas: ReplicaSet, server: GitServer, seeds: range) -> list[str]:
    _repository(replicas, server, "lin")
    failed, answers, began = [], Counter[str](), time.monotonic()
    for seed in seeds:
        history = History(replicas.members, "lin", f"object-{seed}")
        history.run(seed, OPERATIONS)
        answers += history.answers
        if problem := violation(history.operations):
            failed.append(f"history {seed}")
            print(f"FAILED history {seed}: {problem}", flush=True)
    told = ", ".join(f"{count} × {what}" for what, count in sorted(answers.items()))
    print(f"{len(seeds)} histories of {OPERATIONS} operations in {time.monotonic() - began:.0f} s: {told}", flush=True)
    return failed


def _watches(replicas: ReplicaSet, server: GitServer, writes: int) -> list[str]:
    _repository(replicas, server, "watched")
    drafts = []
    client = replicas.members[0].client()
    for number in range(10):
        made = client.create_revision("watched", f"drafted-{number}")
        drafts.append(made.object["metadata"]["name"])
    client.close()
    delays = delays_between(replicas.members[0], replicas.members[1], drafts[0])
    print(f"one writer, one watcher at the other replica: lag {_shown(delays)}", flush=True)
    try:
        lags = WatchStory(replicas, drafts).run(1, watchers=20, writes=writes, per_second=100)
    except AssertionError as error:
        print(f"FAILED watches: {error}", flush=True)
        return ["watches"]
    print(f"{writes} writes, 20 watchers, {len(lags)} events: lag {_shown(lags)}", flush=True)
    if lags[len(lags) * 99 // 100] > LONGEST_LAG:
        return ["lag of watches"]
    return []


def _shown(lags: Sequence[float]) -> str:
    """Return the figures of delays that are sorted, in seconds."""
    p50, p99 = (lags[len(lags) * share // 100] * 1000 for share in (50, 99))
    return f"p50 {p50:.0f} ms, p99 {p99:.0f} ms, longest {lags[-1] * 1000:.0f} ms"


if __name__ == "__main__":
    sys.exit(main())
