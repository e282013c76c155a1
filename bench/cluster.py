"""The aggregated server in a cluster: behind a real kube-apiserver, on PostgreSQL, alone and with a second replica.

What is asked is what issue 9 asks. Where nothing is, a figure stands beside another of the same run: the bare push, the same calls past
kube-apiserver, one server beside two. Needs the program that ``make controlplane`` builds.
"""

import contextlib
import shutil
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import measurements as m
from bare_push import bare_pushes
from cluster_place import Place, is_available, place, wait_until
from report import Row, at_most
from session import TABLE
from testbed import ControlPlane, RemoteServer

KUBE_APISERVER_MILLISECONDS = 60.0
"""What a cycle may take more than a bare push."""
START_SECONDS = 5.0
AVAILABLE_SECONDS = 60.0
BEHIND = "through kube-apiserver, on PostgreSQL"
UPSTREAM = {
    "create": "10 → 24 ms",
    "read": "–",
    "edit": "9 → 8 ms",
    "propose": "8 → 8 ms",
    "approve": "163 → 272 ms",
}
"""p50 at 100 and 600 packages (``controlplane.md`` 3)."""


@dataclass(frozen=True)
class Load:
    """How much is measured."""

    sizes: m.Sizes
    midst: m.Sizes
    """One slice of cycles in the midst of many revisions."""
    slices: int
    """Of these, through kube-apiserver and past it in turn."""
    rounds: int
    """Of many clients, with one server and with two in turn."""
    lists: int
    starts: int
    away_seconds: float
    """How long the server is away before it comes back; after a minute kube-apiserver looks seldom."""


FULL = Load(m.FULL, replace(m.FULL, slices=1, slice_cycles=25), 3, 3, 9, 5, 60.0)
SHORT = Load(replace(m.SHORT, slices=2, slice_cycles=5), replace(m.SHORT, slices=1, slice_cycles=3), 1, 1, 2, 1, 0.0)


def rows(folder: Path, cluster: ControlPlane, git: RemoteServer, load: Load) -> list[Row]:
    """Measure everything, on one server and database."""
    with place(folder, cluster, git) as here:
        here.register_empty("cluster-growing")
        windows = m.lifecycle(here.through, git, "cluster-growing", load.sizes, "p")
        found = _growth_rows(windows)
        found += _crowd_rows(here, load)
        found += _many_rows(here, load)
        return found


# --- one client ------------------------------------------------------------------------------


def _growth_rows(windows: Sequence[m.Window]) -> list[Row]:
    """Compare the first and the last hundred cycles of one client with bare pushes between them."""
    first, last = windows[0], windows[-1]
    where = f"p50 at {first.cycles} → {last.cycles} packages, {BEHIND}"

    def both(step: str) -> str:
        return f"{first.steps[step]:.1f} → {last.steps[step]:.1f} ms"

    bounds = [window.push + KUBE_APISERVER_MILLISECONDS for window in (first, last)]
    met = all(window.steps["cycle"] <= bound for window, bound in zip((first, last), bounds, strict=True))
    asked = f"≤ bare push + 60 ms = {bounds[0]:.0f} → {bounds[1]:.0f} ms"
    return [
        Row(f"cycle, {where}", "196 → 321 ms", asked, both("cycle"), met),
        *(Row(f"{step}, p50, the same", upstream, "", both(step)) for step, upstream in UPSTREAM.items()),
        Row(
            "approve / bare push, interleaved, the same",
            "1.3 → –",
            "",
            " → ".join(f"{window.steps['approve'] / window.push:.2f}" for window in (first, last)),
        ),
    ]


# --- many clients ----------------------------------------------------------------------------


def _crowd_rows(here: Place, load: Load) -> list[Row]:
    """Run cycles of many clients in one repository, on one server and on two in turn."""
    name = "cluster-crowded"
    here.register_empty(name)
    here.join()
    pushes = bare_pushes(here.git, name, load.sizes.pushes)
    alone, both = here.servers[:1], here.servers
    results: dict[int, list[m.Json]] = {len(alone): [], len(both): []}
    single: list[m.Window] = []
    for number in range(load.rounds):
        for servers in (alone, both):
            with here.led_to(servers, name):
                prefix = f"r{number}n{len(servers)}x"
                results[len(servers)].append(m.parallel(here.through, name, load.sizes, prefix))
                if servers is both:
                    single += m.lifecycle(here.through, here.git, name, load.midst, f"s{number}x")
        pushes += bare_pushes(here.git, name, load.sizes.pushes)
    here.servers[1].stop()
    push = statistics.median(pushes)
    print(f"  bare push beside them: {push:.0f} ms", flush=True)
    rows = [row for count, told in results.items() for row in _crowd_row(count, told, load.sizes.clients, push)]
    return [*rows, _cycle_row("cycle, p50 of one client beside two replicas", single, single)]


def _cycle_row(what: str, windows: Sequence[m.Window], pushed: Sequence[m.Window]) -> Row:
    """Compare cycles with the bare pushes among ``pushed``."""
    bound = statistics.median(window.push for window in pushed) + KUBE_APISERVER_MILLISECONDS
    return at_most(what, "–", bound, _median_of(windows, "cycle"), asked="≤ bare push + 60 ms")


def _crowd_row(servers: int, told: Sequence[m.Json], clients: int, push: float) -> list[Row]:
    per_second = statistics.median(one["published_per_s"] for one in told)
    approve = statistics.median(one["approve"]["p50"] for one in told)
    what = f"{clients} clients, whole cycles, one repository, {'one server' if servers == 1 else f'{servers} replicas'}"
    retries = sum(one["retries"] for one in told)
    upstream = ("2.6 /s", "5900 ms") if servers == 1 else ("–", "–")
    beside = f"{approve:.0f} ms ({approve / push:.1f} × bare push, {push:.0f} ms)"
    return [
        Row(what, upstream[0], "", f"{per_second:.1f} published/s, {retries} retries"),
        Row(f"{what}: approve p50", upstream[1], "", beside),
    ]


# --- ten thousand ----------------------------------------------------------------------------


def _many_rows(here: Place, load: Load) -> list[Row]:
    """Add a large repository; list everything, go on beside it, start anew, and go away and come back."""
    name = f"big-{load.sizes.large[0]}x{load.sizes.large[1]}"
    if not here.git.path(name).exists():
        m.make_big(here.git, load.sizes.large)
    began = time.monotonic()
    here.register(name)
    print(f"  {name}: Ready after {time.monotonic() - began:.1f} s", flush=True)
    with here.client() as client:
        count = len(client.revisions())
    return [
        *_list_rows(here, load, count),
        *_midst_rows(here, load, name, count),
        *_start_rows(here, load, count),
        _return_row(here, load, count),
    ]


def _list_rows(here: Place, load: Load, count: int) -> list[Row]:
    """LIST through kube-apiserver and past it, in turn."""
    sessions = {"through": here.through.session(), "past": here.past.session()}
    taken: dict[tuple[str, str], list[float]] = {}
    size = 0
    for _ in range(load.lists):
        for way, session in sessions.items():
            for form, accept in (("full", "application/json"), ("Table", TABLE)):
                began = time.perf_counter()
                size = max(size, len(session.fetch("GET", "packagerevisions", accept=accept)))
                taken.setdefault((way, form), []).append((time.perf_counter() - began) * 1000)
    found = []
    for form in ("full", "Table"):
        through, past = (statistics.median(taken[way, form]) for way in ("through", "past"))
        what = f"LIST of {count}, {form}" + (f" ({size / 1e6:.1f} MB)" if form == "full" else "")
        found.append(Row(f"{what}, through kube-apiserver", "–", "", f"{through:.0f} ms; past it {past:.0f} ms"))
    return found


def _midst_rows(here: Place, load: Load, name: str, count: int) -> list[Row]:
    """One client's cycles in the midst of many revisions, with as many bare pushes, and the same cycles past kube-apiserver."""
    through: list[m.Window] = []
    past: list[m.Window] = []
    for number in range(load.slices):
        through += m.lifecycle(here.through, here.git, name, load.midst, f"t{number}x")
        past += m.lifecycle(here.past, here.git, name, load.midst, f"u{number}x")
    what = f"cycle, p50 at {count} revisions, {BEHIND}"
    steps = ", ".join(f"{step} {_median_of(through, step):.0f}" for step in UPSTREAM)
    return [
        _cycle_row(what, through, [*through, *past]),
        Row("its steps", "–", "", f"{steps} ms"),
        Row("the same cycle past kube-apiserver", "–", "", f"{_median_of(past, 'cycle'):.0f} ms"),
    ]


def _median_of(windows: Sequence[m.Window], step: str) -> float:
    return statistics.median(window.steps[step] for window in windows)


# --- starts ----------------------------------------------------------------------------------


def _start_rows(here: Place, load: Load, count: int) -> list[Row]:
    """Start the server again, with its clones and in an empty folder."""
    here.server.stop()
    kept = [_start(here) for _ in range(load.starts)]
    anew = []
    for _ in range(load.starts):
        shutil.rmtree(here.server.data / "clones")
        anew.append(_start(here))
    here.server.run()
    found = []
    for what, taken in (("", kept), (" in an empty data folder (a new pod)", anew)):
        ready, readable = (statistics.median(column) for column in zip(*taken, strict=True))
        found += [
            at_most(f"start with {count} revisions{what}, until ready", "–", START_SECONDS, ready, "s"),
            Row(f"start with {count} revisions{what}, until files are read", "–", "", f"{readable:.2f} s"),
        ]
    return found


def _start(here: Place) -> tuple[float, float]:
    """Start and stop the server; return the seconds until it was ready, and until a file of the large repository was read."""
    began = time.monotonic()
    here.server.run()
    ready = time.monotonic() - began
    with contextlib.closing(here.server.own_client()) as direct:
        name = next(
            one["metadata"]["name"]
            for one in direct.revisions()
            if one["spec"]["repository"].startswith("big-") and one["spec"]["lifecycle"] == "Published"
        )
        path = direct.path("packagerevisionresources", name)
        wait_until(lambda: direct.request("GET", path).code == 200, "files are read")
    readable = time.monotonic() - began
    here.server.stop()
    print(f"  ready after {ready:.2f} s, files after {readable:.2f} s", flush=True)
    return ready, readable


def _return_row(here: Place, load: Load, count: int) -> Row:
    """Take the server away until kube-apiserver knows, look that the rest of the cluster works, and bring it back."""
    with here.client() as client:
        wait_until(lambda: is_available(client), "the APIService is available")
        here.server.kill()
        wait_until(lambda: not is_available(client), "kube-apiserver knows that the server is away")
        time.sleep(load.away_seconds)
        if client.request("GET", "/api/v1/namespaces").code != 200:
            raise RuntimeError("without the server the rest of the cluster does not answer")
        began = time.monotonic()
        here.server.run()
        up = time.monotonic() - began
        wait_until(lambda: is_available(client), "the APIService is available again")
        back = time.monotonic() - began
    print(f"  back after {up:.1f} s, available after {back:.1f} s", flush=True)
    what = f"server started again with {count} revisions, until the APIService is Available"
    return at_most(what, "–", AVAILABLE_SECONDS, back, "s")
