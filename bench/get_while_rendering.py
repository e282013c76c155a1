"""How fast a GET is answered while large packages render: ``get_while_rendering.py URL NAMESPACE REPOSITORY PACKAGES
RESOURCES --cert C --key K``.

Makes PACKAGES drafts, notes how long GETs of a small one take, then saves RESOURCES Deployments with five functions into
each of the drafts at once, and notes it again until the last save is answered. Prints a JSON line, times in ms.
"""

import argparse
import json
import multiprocessing
import time
from multiprocessing.synchronize import Event
from typing import Any

from large_packages import deployments
from session import Session, new_revision, percentile

QUIET_SECONDS = 3.0
PAUSE = 0.005
"""Seconds between two GETs."""

Json = dict[str, Any]


def open_session(options: argparse.Namespace) -> Session:
    return Session(options.url, options.namespace, options.cert, options.key)


def save(options: argparse.Namespace, name: str) -> None:
    """Put the large package into a draft, which renders it."""
    session = open_session(options)
    path = f"packagerevisionresources/{name}"
    body = session.call("GET", path)
    files = deployments(options.resources)
    body["spec"]["resources"].update({path: file.data.decode() for path, file in files.items()})
    session.call("PUT", path, body)


def get_until(options: argparse.Namespace, name: str, stop: Event, into: Any) -> None:
    """GET a revision again and again; send the times taken when told to stop."""
    session = open_session(options)
    times = []
    while not stop.is_set():
        began = time.perf_counter()
        session.fetch("GET", f"packagerevisions/{name}")
        times.append((time.perf_counter() - began) * 1000)
        time.sleep(PAUSE)
    into.send(times)


class Getter:
    """A process that measures GETs between start and stop."""

    def __init__(self, options: argparse.Namespace, name: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._stop = context.Event()
        self._times, sending = context.Pipe(duplex=False)
        self._process = context.Process(target=get_until, args=(options, name, self._stop, sending))
        self._process.start()

    def stop(self) -> Json:
        """End it and return its figures."""
        self._stop.set()
        times = self._times.recv()
        self._process.join()
        return {"n": len(times), "p50": percentile(times, 0.5), "p99": percentile(times, 0.99), "max": max(times)}


def measure(options: argparse.Namespace) -> Json:
    session = open_session(options)
    drafts = [new_revision(options.repository, f"large-{number}") for number in range(options.packages)]
    names = [session.call("POST", "packagerevisions", draft)["metadata"]["name"] for draft in drafts]
    watched = session.call("POST", "packagerevisions", new_revision(options.repository, "watched"))["metadata"]["name"]
    getter = Getter(options, watched)
    time.sleep(QUIET_SECONDS)
    quiet = getter.stop()
    getter = Getter(options, watched)
    time.sleep(0.5)
    began = time.perf_counter()
    context = multiprocessing.get_context("spawn")
    savers = [context.Process(target=save, args=(options, name)) for name in names]
    for saver in savers:
        saver.start()
    for saver in savers:
        saver.join()
    took = time.perf_counter() - began
    busy = getter.stop()
    failed = sum(saver.exitcode != 0 for saver in savers)
    return {"quiet_ms": quiet, "busy_ms": busy, "saves_took_s": round(took, 2), "failed": failed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("namespace")
    parser.add_argument("repository")
    parser.add_argument("packages", type=int)
    parser.add_argument("resources", type=int)
    parser.add_argument("--cert", required=True)
    parser.add_argument("--key", required=True)
    print(json.dumps(measure(parser.parse_args())))


if __name__ == "__main__":
    main()
