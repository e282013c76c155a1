"""One client, whole package lives in a row: how long each step takes as packages pile up.

``lifecycle.py URL NAMESPACE REPOSITORY COUNT [--cert C --key K] [--prefix P] [--every N]``; a JSON line per checkpoint.
Stands in for the acceptance program of the same purpose where that is not at hand; same arguments, same keys.
"""

import argparse
import json
import statistics
import time
from collections import defaultdict

from session import CONFIG_MAP, TABLE, Session, new_revision, percentile

STEPS = ("create", "read", "edit", "propose", "approve", "cycle")


class Steps:
    """Milliseconds of each step since the last checkpoint."""

    def __init__(self) -> None:
        self._taken: defaultdict[str, list[float]] = defaultdict(list)

    def add(self, step: str, started: float) -> None:
        """Note that a step that began at ``started`` is done."""
        self._taken[step].append((time.perf_counter() - started) * 1000)

    def take(self) -> dict[str, dict[str, float]]:
        """Return the percentiles and begin anew."""
        quantiles = (("p50", 0.5), ("p95", 0.95), ("max", 1.0))
        found = {step: {name: percentile(self._taken[step], q) for name, q in quantiles} for step in STEPS}
        self._taken.clear()
        return found


def one_life(session: Session, repository: str, package: str, steps: Steps) -> None:
    """Init, read, edit, propose and approve one package."""
    begin = started = time.perf_counter()
    name = session.call("POST", "packagerevisions", new_revision(repository, package))["metadata"]["name"]
    steps.add("create", started)
    started = time.perf_counter()
    files = session.call("GET", f"packagerevisionresources/{name}")
    steps.add("read", started)
    files["spec"]["resources"]["settings.yaml"] = CONFIG_MAP
    started = time.perf_counter()
    session.call("PUT", f"packagerevisionresources/{name}", files)
    steps.add("edit", started)
    revision = session.call("GET", f"packagerevisions/{name}")
    revision["spec"]["lifecycle"] = "Proposed"
    started = time.perf_counter()
    revision = session.call("PUT", f"packagerevisions/{name}", revision)
    steps.add("propose", started)
    revision["spec"]["lifecycle"] = "Published"
    started = time.perf_counter()
    session.call("PUT", f"packagerevisions/{name}/approval", revision)
    steps.add("approve", started)
    steps.add("cycle", begin)


def lists(session: Session) -> dict[str, float]:
    """Time LIST three times, as full objects and as a Table."""
    full, table, data = [], [], b""
    for _ in range(3):
        started = time.perf_counter()
        data = session.fetch("GET", "packagerevisions")
        full.append((time.perf_counter() - started) * 1000)
        started = time.perf_counter()
        session.fetch("GET", "packagerevisions", accept=TABLE)
        table.append((time.perf_counter() - started) * 1000)
    return {
        "revisions": len(json.loads(data)["items"]),
        "list_ms": round(statistics.median(full), 1),
        "table_ms": round(statistics.median(table), 1),
        "list_bytes": len(data),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("namespace")
    parser.add_argument("repository")
    parser.add_argument("count", type=int)
    parser.add_argument("--cert")
    parser.add_argument("--key")
    parser.add_argument("--prefix", default="p")
    parser.add_argument("--every", type=int, default=100)
    options = parser.parse_args()
    session = Session(options.url, options.namespace, options.cert, options.key)
    steps = Steps()
    for number in range(1, options.count + 1):
        one_life(session, options.repository, f"{options.prefix}{number:05d}", steps)
        if number % options.every == 0 or number == options.count:
            print(json.dumps({"cycles": number, **lists(session), **steps.take()}), flush=True)


if __name__ == "__main__":
    main()
