"""Fifty clients that want something of one repository in the same moment: clones, then approvals.

``crowd.py URL NAMESPACE REPOSITORY UPSTREAM COUNT [--cert C --key K]``; one JSON line. Pushes are counted by the server's own
metric, from before the approvals until the last is answered.
"""

import argparse
import json
import re
import threading
import time
from collections.abc import Callable, Sequence

from session import Json, Session, new_revision, percentile

PUSHED = re.compile(r'porch_git_push_duration_seconds_count\{result="pushed"\} (\S+)')
QUIET_SECONDS = 3.0
"""Long enough for the branches of drafts and proposals to have been pushed, so that only approvals are counted."""


def all_at_once(sessions: Sequence[Session], send: Callable[[Session, int], Json]) -> tuple[list[Json], list[float]]:
    """Have every session send in the same moment; return the answers and the milliseconds that each took."""
    gate = threading.Barrier(len(sessions))
    answers: dict[int, tuple[Json, float]] = {}

    def one(session: Session, number: int) -> None:
        gate.wait(30)
        began = time.perf_counter()
        answer = send(session, number)
        answers[number] = (answer, (time.perf_counter() - began) * 1000)

    threads = [threading.Thread(target=one, args=(session, number)) for number, session in enumerate(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(answers) < len(sessions):
        raise SystemExit("a request failed")
    return [answers[n][0] for n in range(len(sessions))], [answers[n][1] for n in range(len(sessions))]


def clone(repository: str, upstream: str, number: int) -> Json:
    """Build a clone."""
    wanted = new_revision(repository, f"crowd-{number}")
    wanted["spec"]["tasks"] = [{"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": upstream}}}}]
    return wanted


def pushes(session: Session) -> int:
    """Return how many pushes the server has made."""
    found = PUSHED.search(session.fetch("GET", "/metrics", accept="text/plain").decode())
    return int(float(found.group(1))) if found else 0


def in_lifecycle(revision: Json, lifecycle: str) -> Json:
    """Return a revision as a client sends it to move it."""
    return {**revision, "spec": {**revision["spec"], "lifecycle": lifecycle}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("url", "namespace", "repository", "upstream"):
        parser.add_argument(name)
    parser.add_argument("count", type=int)
    parser.add_argument("--cert")
    parser.add_argument("--key")
    options = parser.parse_args()
    sessions = [Session(options.url, options.namespace, options.cert, options.key) for _ in range(options.count)]
    for session in sessions:
        session.fetch("GET", "/version")

    made, cloning = all_at_once(
        sessions, lambda one, n: one.call("POST", "packagerevisions", clone(options.repository, options.upstream, n))
    )
    first = sessions[0]
    names = [revision["metadata"]["name"] for revision in made]
    proposed = [
        first.call("PUT", f"packagerevisions/{name}", in_lifecycle(revision, "Proposed"))
        for name, revision in zip(names, made, strict=True)
    ]
    time.sleep(QUIET_SECONDS)
    before = pushes(first)
    published, approving = all_at_once(
        sessions,
        lambda one, n: one.call("PUT", f"packagerevisions/{names[n]}/approval", in_lifecycle(proposed[n], "Published")),
    )
    print(
        json.dumps(
            {
                "clone": {"p50": percentile(cloning, 0.5), "p99": percentile(cloning, 0.99)},
                "approve": {"p50": percentile(approving, 0.5), "p99": percentile(approving, 0.99)},
                "published": sum(one["spec"].get("revision") == 1 for one in published),
                "pushes": pushes(first) - before,
            }
        )
    )


if __name__ == "__main__":
    main()
