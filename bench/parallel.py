"""Many clients at once: whole package lives per second, in one repository or spread over several.

``parallel.py URL NAMESPACE REPOSITORY[,REPOSITORY…] CLIENTS CYCLES [--cert C --key K] [--prefix P]``; one JSON line.
A 409 or 429 is retried from a fresh read and counted. Stands in for the acceptance program of the same purpose.
"""

import argparse
import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable

from session import CONFIG_MAP, Json, Refused, Session, new_revision, percentile

STEPS = ("create", "edit", "propose", "approve")
BUSY = {409, 429}
PAUSE = 0.05
"""Seconds before a retry."""


class Tally:
    """What all clients measured."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.taken: defaultdict[str, list[float]] = defaultdict(list)
        self.retries = 0
        self.failed: list[str] = []

    def add(self, step: str, started: float) -> None:
        with self._lock:
            self.taken[step].append((time.perf_counter() - started) * 1000)

    def retry(self) -> None:
        with self._lock:
            self.retries += 1

    def fail(self, why: str) -> None:
        with self._lock:
            self.failed.append(why)


class Client:
    """One client on its own connection and packages."""

    def __init__(self, session: Session, repositories: list[str], number: int, tally: Tally) -> None:
        self._session = session
        self._repositories = repositories
        self._number = number
        self._tally = tally

    def run(self, cycles: int, prefix: str) -> None:
        try:
            for cycle in range(cycles):
                repository = self._repositories[(self._number + cycle) % len(self._repositories)]
                self._one_life(repository, f"{prefix}{self._number:03d}x{cycle:04d}")
        except (Refused, OSError) as error:
            self._tally.fail(f"client {self._number}: {error}")

    def _one_life(self, repository: str, package: str) -> None:
        started = time.perf_counter()
        name = self._session.call("POST", "packagerevisions", new_revision(repository, package))["metadata"]["name"]
        self._tally.add("create", started)
        self._change("edit", f"packagerevisionresources/{name}", "", _add_file)
        self._change("propose", f"packagerevisions/{name}", "", _lifecycle("Proposed"))
        self._change("approve", f"packagerevisions/{name}", "/approval", _lifecycle("Published"))

    def _change(self, step: str, path: str, subresource: str, change: Callable[[Json], None]) -> None:
        """Read, change and put; the time includes retries."""
        started = time.perf_counter()
        while True:
            body = self._session.call("GET", path)
            change(body)
            try:
                self._session.call("PUT", path + subresource, body)
            except Refused as refused:
                if refused.code not in BUSY:
                    raise
                self._tally.retry()
                time.sleep(PAUSE)
            else:
                self._tally.add(step, started)
                return


def _add_file(body: Json) -> None:
    body["spec"]["resources"]["settings.yaml"] = CONFIG_MAP


def _lifecycle(wanted: str) -> Callable[[Json], None]:
    def change(body: Json) -> None:
        body["spec"]["lifecycle"] = wanted

    return change


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("namespace")
    parser.add_argument("repositories")
    parser.add_argument("clients", type=int)
    parser.add_argument("cycles", type=int)
    parser.add_argument("--cert")
    parser.add_argument("--key")
    parser.add_argument("--prefix", default="c")
    options = parser.parse_args()
    tally = Tally()
    clients = [
        Client(
            Session(options.url, options.namespace, options.cert, options.key),
            options.repositories.split(","),
            number,
            tally,
        )
        for number in range(options.clients)
    ]
    threads = [threading.Thread(target=client.run, args=(options.cycles, options.prefix)) for client in clients]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = time.perf_counter() - began
    published = len(tally.taken["approve"])
    result: Json = {
        "clients": options.clients,
        "published": published,
        "wall_s": round(wall, 2),
        "published_per_s": round(published / wall, 2),
        "retries": tally.retries,
        "failed": tally.failed[:3],
        "failed_n": len(tally.failed),
    }
    for step in STEPS:
        result[step] = {"p50": percentile(tally.taken[step], 0.5), "p99": percentile(tally.taken[step], 0.99)}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
