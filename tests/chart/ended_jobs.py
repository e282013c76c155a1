"""There is no kubelet in the control plane of the tests: a thread says of Jobs that they succeeded, as their Pods would."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from threading import Event, Thread

from chart_rendering import SECONDS
from kubectl import Kubectl


@contextmanager
def jobs_succeed(cluster: Kubectl) -> Iterator[list[str]]:
    """Say of every Job of the namespace that it succeeded, until the context is left; the names of those that were there."""
    seen: list[str] = []
    over = Event()

    def end_jobs() -> None:
        while not over.wait(0.2):
            found = cluster("get", "jobs", "-o", "json")
            for job in json.loads(found.stdout)["items"] if found.returncode == 0 else ():  # or it looks again
                if not job.get("status", {}).get("completionTime"):
                    seen.append(job["metadata"]["name"])
                    cluster("patch", "job", seen[-1], "--subresource=status", "--type=merge", "-p", succeeded())

    thread = Thread(target=end_jobs, name="jobs")
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join(timeout=SECONDS)


def succeeded() -> str:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": now, "lastTransitionTime": now}
        for kind in ("SuccessCriteriaMet", "Complete")
    ]
    return json.dumps({"status": {"startTime": now, "completionTime": now, "succeeded": 1, "conditions": conditions}})
