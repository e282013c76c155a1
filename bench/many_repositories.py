"""What the steps of a package's life cost beside 100, 1,000, 10,000 and 100,000 other revisions, and what a start costs then.

Two servers on one Git server: ``few`` keeps one repository, ``many`` gets more and more. At each stage the same cycles
run on both in turn, each in an own repository of its server, so that a slow minute of the machine slows both.
"""

import os
import shutil
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import measurements as m
from report import Row, at_most
from testbed import PorchClient, PorchProcess, RemoteServer, address_of, register, remotes, resident_megabytes

STEPS = ("create", "edit", "propose")
PROBE = "probe"
"""The repository that the cycles run in."""
REGISTERING = 4
"""Clients that register repositories at once."""


@dataclass(frozen=True)
class Stages:
    """Repositories at each stage, packages × revisions of each, slices of cycles per stage, bare pushes per slice."""

    repositories: tuple[int, ...]
    size: tuple[int, int]
    slices: int
    cycles: int
    pushes: int


FULL = Stages((1, 10, 100, 1000), (10, 10), 3, 25, 3)
SHORT = Stages((1, 10), (5, 2), 1, 5, 1)


def rows(start: Callable[[str], PorchProcess], git: RemoteServer, stages: Stages) -> list[Row]:
    """Measure every stage, then a start with all of it."""
    sizes = m.Sizes(1, stages.cycles, stages.pushes, 0, 0, 0, 0, (0, 0), (0, 0), 0, 0)
    names = make_remotes(git, stages)
    few, many = start("few"), start("many")
    found: list[Row] = []
    try:
        for server in (few, many):
            remotes.empty_remote(git.path(f"{PROBE}-{server.data.name}"))
            add(server, git, [f"{PROBE}-{server.data.name}"])
        add(few, git, names[:1])
        registered = 0
        for stage, count in enumerate(stages.repositories):
            took = add(many, git, names[registered:count])
            print(f"  {count - registered} more repositories were Ready after {took:.1f} s", flush=True)
            registered = count
            found += _stage(few, many, git, sizes, stages, stage)
        found += _start_rows(many)
    finally:
        few.stop()
        many.stop()
    return found


def make_remotes(git: RemoteServer, stages: Stages) -> list[str]:
    """Make one repository and copies of it that share its objects' files; return their names."""
    first = m.make_big(git, stages.size)
    remotes.git("gc", "--quiet", cwd=git.path(first))
    names = [f"site-{number:04d}" for number in range(stages.repositories[-1])]
    for name in names:
        shutil.copytree(git.path(first), git.path(name), copy_function=_link_objects)
    return names


def _link_objects(source: str, target: str) -> None:
    """Share what Git never changes, and copy the rest."""
    if "/objects/" in source:
        os.link(source, target)
    else:
        shutil.copy2(source, target)


def add(server: PorchProcess, git: RemoteServer, names: list[str]) -> float:
    """Register repositories; return the seconds until the last one is Ready."""
    started = time.monotonic()

    def register_some(some: list[str]) -> None:
        client = server.client()
        for name in some:
            register(client, name, git.url(name))
        client.close()

    with ThreadPoolExecutor(REGISTERING) as pool:
        list(pool.map(register_some, [names[part::REGISTERING] for part in range(REGISTERING)]))
    client = server.client()
    for name in names:
        m.wait_until_ready(client, name)
    client.close()
    return time.monotonic() - started


def _stage(
    few: PorchProcess, many: PorchProcess, git: RemoteServer, sizes: m.Sizes, stages: Stages, stage: int
) -> list[Row]:
    """Run slices of cycles on both servers in turn, and compare."""
    windows: dict[str, list[m.Window]] = {"few": [], "many": []}
    for number in range(stages.slices):
        for server in (few, many):
            name = server.data.name
            prefix = f"s{stage}x{number}"
            windows[name] += m.lifecycle(address_of(server), git, f"{PROBE}-{name}", sizes, prefix)
    count = _revisions(many)
    return [*_compared(windows, count), _approve_row(windows["many"], count)]


def _compared(windows: dict[str, list[m.Window]], count: int) -> list[Row]:
    found = []
    for step in STEPS:
        least, ours = (_median([window.steps[step] for window in windows[name]]) for name in ("few", "many"))
        what = f"{step}, p50 with {count} revisions in all"
        bound = max(least * 1.3, least + 3)
        found.append(at_most(what, "–", bound, ours, asked="≤ 1.3 × or + 3 ms beside few"))
    return found


def _approve_row(windows: list[m.Window], count: int) -> Row:
    push = _median([window.push for window in windows])
    ours = _median([window.steps["approve"] for window in windows])
    what = f"approve, p50 with {count} revisions in all"
    return at_most(what, "–", push + 10, ours, asked="≤ bare push + 10 ms")


def _median(values: list[float]) -> float:
    return statistics.median(values)


def _revisions(server: PorchProcess) -> int:
    client = server.client()
    try:
        return _count(client)
    finally:
        client.close()


def _count(client: PorchClient) -> int:
    """Count revisions by what the first page says remains."""
    path = "/apis/porch.kpt.dev/v1alpha1/packagerevisions?limit=1"
    page = client.request("GET", path).object
    return len(page["items"]) + int(page["metadata"].get("remainingItemCount") or 0)


def _start_rows(server: PorchProcess) -> list[Row]:
    """Stop and start the server; how long until it is ready, and how large it is when all is quiet again."""
    count = _revisions(server)
    before = resident_megabytes(server.pid)
    server.stop()
    started = time.monotonic()
    server.start()
    ready = time.monotonic() - started
    time.sleep(SETTLE)
    after = resident_megabytes(server.pid)
    return [
        at_most(f"start with {count} revisions, until ready", "–", 10, ready, "s"),
        at_most(f"resident memory with {count} revisions, after the load", "–", 1024, before, "MB"),
        at_most(f"resident memory with {count} revisions, after a start", "–", 1024, after, "MB"),
    ]


SETTLE = 25.0
"""Seconds after a start in which the repositories are looked at again."""
