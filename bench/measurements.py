"""Each thing that ``make bench`` measures, as a function from a testbed to rows of the table.

The bounds and upstream's figures are those of the issue that asked for them (``docs/benchmarks.md`` says how upstream's
were taken).
"""

import json
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bare_push import bare_pushes
from report import Row, at_least, at_most
from session import TABLE, Session
from testbed import (
    HERE,
    Address,
    PorchClient,
    PorchProcess,
    RemoteServer,
    address_of,
    register,
    remotes,
    repository_path,
    resident_megabytes,
    yardstick,
)

Json = dict[str, Any]
PATIENCE = 600.0
"""Seconds that a sync may take before the run is given up."""


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    slices: int
    """Slices of one hundred cycles."""
    slice_cycles: int
    pushes: int
    """Bare pushes after each slice."""
    clients: int
    cycles: int
    watchers: int
    watch_seconds: float
    small: tuple[int, int]
    """Packages and revisions of the smaller synced repository."""
    large: tuple[int, int]
    repeats: int
    deployments: int
    """Resources of each of the four packages that render while GETs are measured."""


FULL = Sizes(24, 25, 4, 16, 12, 100, 20.0, (100, 10), (1000, 10), 5, 1000)
SHORT = Sizes(4, 10, 2, 8, 2, 20, 4.0, (10, 10), (50, 10), 3, 100)


def run_yardstick(name: str, own: str, *arguments: str) -> list[Json]:
    """Run a load program and return the JSON lines it prints."""
    command = [*yardstick(name, own), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE, cwd=HERE)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout[-1000:]}{done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def wait_until_ready(client: PorchClient, name: str) -> None:
    """Poll a Repository until its Ready condition is True."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        status = client.request("GET", repository_path(client, name)).object.get("status") or {}
        if any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or []):
            return
        time.sleep(0.01)
    raise RuntimeError(f"{name} was not ready after {PATIENCE} s")


# --- one client ------------------------------------------------------------------------------


@dataclass
class Window:
    """Medians over some slices of the lifecycle program, and of the bare pushes between them."""

    cycles: int
    steps: dict[str, float]
    push: float
    lists: Json


def lifecycle(at: Address, git: RemoteServer, name: str, sizes: Sizes, prefix: str) -> list[Window]:
    """Run the lifecycle program in slices with bare pushes between; one window per hundred cycles, or per run."""
    windows: list[Window] = []
    per_window = max(1, 100 // sizes.slice_cycles)
    lines: list[Json] = []
    pushes: list[float] = []
    for number in range(sizes.slices):
        arguments = [at.url, "default", name, str(sizes.slice_cycles), *at.identity]
        lines += run_yardstick(
            "bench_lifecycle.py", "lifecycle.py", *arguments, "--prefix", f"{prefix}{number}x", "--every", "100"
        )[-1:]
        pushes += bare_pushes(git, name, sizes.pushes)
        if len(lines) == per_window or number == sizes.slices - 1:
            windows.append(_window(lines, pushes, (number + 1) * sizes.slice_cycles))
            _say(windows[-1])
            lines, pushes = [], []
    return windows


def _window(lines: list[Json], pushes: list[float], cycles: int) -> Window:
    steps = {
        step: statistics.median(line[step]["p50"] for line in lines)
        for step in ("create", "read", "edit", "propose", "approve", "cycle")
    }
    return Window(cycles, steps, statistics.median(pushes), lines[-1])


def _say(window: Window) -> None:
    steps = "  ".join(f"{step} {ms:.1f}" for step, ms in window.steps.items())
    print(
        f"  {window.cycles:5} cycles: {steps}  bare push {window.push:.1f}  "
        f"LIST {window.lists['list_ms']} Table {window.lists['table_ms']} ({window.lists['revisions']})",
        flush=True,
    )


def one_client_rows(windows: list[Window]) -> list[Row]:
    """Compare a growing repository's first and last hundred."""
    first, last = windows[0], windows[-1]
    where = f"at {first.cycles} → {last.cycles} packages"

    def both(step: str, bound: float) -> Row:
        text = f"{first.steps[step]:.1f} → {last.steps[step]:.1f} ms"
        met = max(first.steps[step], last.steps[step]) <= bound
        return Row(
            f"{step}, p50 {where}",
            {"create": "10 → 24 ms", "edit": "8 ms", "propose": "8 ms"}[step],
            f"≤ {bound:g} ms",
            text,
            met,
        )

    approve = f"{first.steps['approve']:.0f} → {last.steps['approve']:.0f} ms"
    asked = f"≤ bare push + 10 ms = {first.push + 10:.0f} → {last.push + 10:.0f} ms"
    met = all(window.steps["approve"] <= window.push + 10 for window in (first, last))
    rows = [both("create", 8), both("edit", 7), both("propose", 5)]
    rows.append(Row(f"approve, p50 {where}", "163 → 272 ms", asked, approve, met))
    rows.append(Row("approve / bare push, interleaved", "1.3 → –", "", f"{_ratio(first)} → {_ratio(last)}"))
    revisions = last.lists["revisions"]
    rows.append(at_most(f"LIST of {revisions}, full", "39 ms", 10, last.lists["list_ms"]))
    rows.append(at_most(f"LIST of {revisions}, Table", "39 ms", 10, last.lists["table_ms"]))
    return rows


def _ratio(window: Window) -> str:
    return f"{window.steps['approve'] / window.push:.2f}"


# --- many clients ----------------------------------------------------------------------------


def parallel(at: Address, name: str, sizes: Sizes, prefix: str = "c") -> Json:
    """Run whole cycles of many clients in one repository; return what the program says, unless a client failed."""
    arguments = [at.url, "default", name, str(sizes.clients), str(sizes.cycles), *at.identity, "--prefix", prefix]
    result = run_yardstick("bench_parallel.py", "parallel.py", *arguments)[-1]
    print(f"  {result}", flush=True)
    if result["failed_n"]:
        raise RuntimeError(f"{result['failed_n']} clients failed: {result['failed']}")
    return result


def parallel_rows(server: PorchProcess, git: RemoteServer, name: str, sizes: Sizes) -> list[Row]:
    """Run whole cycles of many clients in one repository, and compare an approval with bare pushes before and after."""
    before = bare_pushes(git, name, sizes.pushes)
    result = parallel(address_of(server), name, sizes)
    push = statistics.median(before + bare_pushes(git, name, sizes.pushes))
    what = f"{sizes.clients} clients, whole cycles, one repository"
    bound = 4 * push
    return [
        at_least(what, "2.6 /s", 30, result["published_per_s"], "published/s"),
        at_most(f"{what}: approve p50", "5900 ms", bound, result["approve"]["p50"], asked="≤ 4 × bare push"),
    ]


def crowd_rows(server: PorchProcess, upstream: str, name: str, count: int) -> list[Row]:
    """Let many clients clone, then approve, in one moment in one repository."""
    arguments = [server.url, "default", name, upstream, str(count), *address_of(server).identity]
    command = [sys.executable, str(HERE / "crowd.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    result = json.loads(done.stdout)
    print(f"  {result}", flush=True)
    if result["published"] != count:
        raise RuntimeError(f"of {count} packages {result['published']} are revision 1")
    what = f"{count} clones in one repository at once"
    return [
        at_most(f"{what}: p99", "–", 2000, result["clone"]["p99"]),
        at_most(f"{count} approvals in one repository at once", "–", 10, result["pushes"], "pushes"),
        Row(
            f"{count} approvals in one repository at once: p50 / p99",
            "–",
            "",
            f"{result['approve']['p50']:.0f} / {result['approve']['p99']:.0f} ms",
        ),
    ]


# --- watching --------------------------------------------------------------------------------


def watch_rows(server: PorchProcess, sizes: Sizes) -> list[Row]:
    """Measure the delay from a write to its watchers."""
    arguments = [
        server.url,
        "default",
        str(sizes.watchers),
        "100",
        str(sizes.watch_seconds),
        *address_of(server).identity,
    ]
    done = subprocess.run(
        [sys.executable, str(HERE / "watch_delay.py"), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    result = json.loads(done.stdout)
    print(f"  {result}", flush=True)
    if result["missing"]:
        raise RuntimeError(f"{result['missing']} events did not arrive")
    what = f"watch, {sizes.watchers} watchers, {result['events_per_s']:.0f} events/s, p99"
    return [
        at_most(f"{what}, from the write's answer", "–", 50, result["from_answer_ms"]["p99"]),
        Row(f"{what}, from its sending", "–", "", f"{result['from_sending_ms']['p99']} ms"),
    ]


# --- rendering -------------------------------------------------------------------------------


def rendering_rows(server: PorchProcess, name: str, sizes: Sizes) -> list[Row]:
    """Measure GETs while four large packages render."""
    arguments = [server.url, "default", name, "4", str(sizes.deployments), *address_of(server).identity]
    command = [sys.executable, str(HERE / "get_while_rendering.py"), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    result = json.loads(done.stdout)
    print(f"  {result}", flush=True)
    if result["failed"]:
        raise RuntimeError(f"{result['failed']} saves failed: {done.stderr[-2000:]}")
    what = f"GET while 4 × {sizes.deployments} Deployments render, p99"
    quiet = f"{result['quiet_ms']['p99']} ms before"
    return [at_most(what, "–", 20, result["busy_ms"]["p99"], asked=f"{quiet}; ≤")]


# --- sync ------------------------------------------------------------------------------------


def make_big(git: RemoteServer, size: tuple[int, int]) -> str:
    """Make a repository of packages × revisions; return its name."""
    name = f"big-{size[0]}x{size[1]}"
    command = yardstick("make_big_repo.py", "big_repository.py")
    subprocess.run([*command, str(git.path(name)), *map(str, size)], check=True, timeout=PATIENCE)
    return name


def first_sync(server: PorchProcess, git: RemoteServer, name: str) -> float:
    """Register a repository on a running server; return the seconds until it is Ready."""
    client = server.client()
    started = time.monotonic()
    register(client, name, git.url(name))
    wait_until_ready(client, name)
    took = time.monotonic() - started
    client.close()
    return took


def mirror(git: RemoteServer, name: str, folder: Path) -> float:
    """Return the seconds of ``git clone --mirror``."""
    started = time.monotonic()
    remotes.git("clone", "--quiet", "--mirror", git.url(name), str(folder / f"mirror-{time.monotonic_ns()}"))
    return time.monotonic() - started


def first_sync_rows(server: PorchProcess, git: RemoteServer, name: str, folder: Path, *, upstream: str) -> list[Row]:
    """Compare a first sync with a mirror clone before and after it."""
    clones = [mirror(git, name, folder)]
    ours = first_sync(server, git, name)
    clone = statistics.mean([*clones, mirror(git, name, folder)])
    print(f"  {name}: first sync {ours:.2f} s, git clone --mirror {clone:.2f} s", flush=True)
    bound = 2 * clone + 2
    return [at_most(f"first sync of {name}", upstream, bound, ours, "s", asked="≤ 2 × clone --mirror + 2 s")]


def without_git_rows(git: RemoteServer, name: str, data: Path) -> list[Row]:
    """First sync on a server that finds no git binary."""
    server = PorchProcess(data, environment={"PATH": str(data)})
    server.start()
    try:
        ours = first_sync(server, git, name)
    finally:
        server.stop()
    print(f"  {name} without a git binary: {ours:.2f} s", flush=True)
    return [at_most(f"first sync of {name} without a git binary", "fails after 5 min", 12, ours, "s")]


def unchanged_rows(server: PorchProcess, git: RemoteServer, name: str, sizes: Sizes) -> list[Row]:
    """Compare a sync of an unchanged repository with ls-remote, in turn. A new description makes it sync."""
    client = server.client()
    ours, theirs = [], []
    for number in range(sizes.repeats):
        started = time.monotonic()
        remotes.git("ls-remote", "--quiet", git.url(name))
        theirs.append((time.monotonic() - started) * 1000)
        ours.append(_sync_again(client, name, number))
    client.close()
    listing = statistics.median(theirs)
    print(f"  {name} unchanged: {statistics.median(ours):.0f} ms, git ls-remote {listing:.0f} ms", flush=True)
    what = f"sync of {name} unchanged"
    return [at_most(what, "–", listing + 50, statistics.median(ours), asked="≤ ls-remote + 50 ms")]


def _sync_again(client: PorchClient, name: str, number: int) -> float:
    """Change the description and wait until that generation is observed: the server has synced for it."""
    patch = {"spec": {"description": f"look again {number}"}}
    started = time.monotonic()
    path = repository_path(client, name)
    changed = client.request("PATCH", path, patch, content_type="application/merge-patch+json").object
    wanted = changed["metadata"]["generation"]
    while client.request("GET", path).object["status"].get("observedGeneration") != wanted:
        time.sleep(0.002)
    return (time.monotonic() - started) * 1000


# --- ten thousand ------------------------------------------------------------------------------


def many_rows(server: PorchProcess, count: int) -> list[Row]:
    """Measure LIST with everything that a large repository holds."""
    session = Session(server.url, "default", str(server.data / "admin.crt"), str(server.data / "admin.key"))
    table, full, size = [], [], 0
    for _ in range(5):
        started = time.perf_counter()
        session.fetch("GET", "packagerevisions", accept=TABLE)
        table.append((time.perf_counter() - started) * 1000)
        started = time.perf_counter()
        size = len(session.fetch("GET", "packagerevisions"))
        full.append((time.perf_counter() - started) * 1000)
    megabytes = size / 1e6
    asked = f"≤ 80 ms + 1 ms per MB ({megabytes:.1f})"
    return [
        at_most(f"LIST of {count} revisions, Table", "–", 80, statistics.median(table)),
        at_most(f"LIST of {count} revisions, full", "–", 80 + megabytes, statistics.median(full), asked=asked),
    ]


def flat_rows(first: Window, large: Window, count: int) -> list[Row]:
    """Compare the steps with many revisions present with those at the beginning."""
    rows = []
    for step, upstream in (("create", "–"), ("edit", "–"), ("propose", "–")):
        bound = max(first.steps[step] * 1.3, first.steps[step] + 3)
        what = f"{step}, p50 at {count} revisions"
        rows.append(at_most(what, upstream, bound, large.steps[step], asked="≤ 1.3 × or + 3 ms"))
    bound = large.push + 10
    rows.append(
        at_most(f"approve, p50 at {count} revisions", "–", bound, large.steps["approve"], asked="≤ bare push + 10 ms")
    )
    return rows


def memory_row(server: PorchProcess, count: int, bound: float, upstream: str) -> Row:
    """Measure resident memory as it is now."""
    return at_most(f"resident memory with {count} revisions", upstream, bound, resident_megabytes(server.pid), "MB")
