"""The same calls against this server and a real kube-apiserver, in turn: create, GET, LIST, Table, apply.

Both hold the same number of ConfigMaps of 1.2 KB; each call goes over one kept connection, in blocks that alternate
between the servers, so that a busy moment of the machine hits both. Where no kube-apiserver is at hand (it is built by
``make controlplane``), the figures that were measured once on a machine of the same kind stand in for it.
"""

import re
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from report import Row, at_most
from session import TABLE, Json, Session

BODY_BYTES = 1200
PATH = "/api/v1/namespaces/default/configmaps"
APPLY = "application/apply-patch+yaml"
BLOCK = 50
"""Quick calls sent to one server before the other has its turn."""
CONTINUE = re.compile(rb'"continue":"([^"]+)"')
PAGE = 500
"""Objects in a page, as kubectl asks for them."""

ONCE = {
    "create": 1.5,
    "GET": 0.85,
    "LIST 500": 9.2,
    "Table of 500": 7.2,
    "LIST {all}": 124.0,
    "Table of {all}": 72.0,
    "server-side apply": 1.9,
}
"""p50 in ms of kube-apiserver 1.34 with 10,000 ConfigMaps (issue 5): what counts where none can be started."""
GOALS = {
    "create": 1.5,
    "GET": 1.2,
    "LIST 500": 0.5,
    "Table of 500": 0.5,
    "LIST {all}": 0.5,
    "LIST {all} in pages": 0.5,
    "Table of {all}": 0.5,
    "server-side apply": 2.5,
}
"""How many times the kube-apiserver's p50 ours may take."""


@dataclass(frozen=True, slots=True)
class Calls:
    """How often each thing is done: objects created, quick calls, whole lists."""

    objects: int
    quick: int
    lists: int


FULL = Calls(10_000, 500, 9)
SHORT = Calls(300, 50, 2)

Call = Callable[[Session, int], object]


def config_map(number: int, value: str = "") -> Json:
    """Build a ConfigMap of about 1.2 KB."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"bench-{number:06d}", "namespace": "default", "labels": {"bench": "yes"}},
        "data": {"value": value, "filling": "x" * (BODY_BYTES - 200)},
    }


def _create(session: Session, number: int) -> object:
    return session.fetch("POST", f"{PATH}?fieldManager=bench", config_map(number))


def _get(session: Session, number: int) -> object:
    return session.fetch("GET", f"{PATH}/bench-{number:06d}")


def _apply(session: Session, number: int) -> object:
    path = f"{PATH}/bench-{number:06d}?fieldManager=bench-apply&force=true"
    return session.fetch("PATCH", path, config_map(number, f"applied {time.monotonic_ns()}"), content_type=APPLY)


def _list(query: str, accept: str) -> Call:
    def call(session: Session, _number: int) -> object:
        return session.fetch("GET", PATH + query, accept=accept)

    return call


def _pages(session: Session, _number: int) -> object:
    token = ""
    while True:
        body = session.fetch("GET", f"{PATH}?limit={PAGE}&continue={token}")
        # Both servers send a list's metadata first; decoding the items would be measured, too.
        found = CONTINUE.search(body, 0, 1000)
        if found is None:
            return body
        token = found[1].decode()


def compare(ours: Session, real: Session | None, calls: Calls) -> dict[str, tuple[float, float | None]]:
    """Fill both servers, make every call in turn, and return p50 in ms: what → (ours, the kube-apiserver's)."""
    sessions = [ours, *([real] if real else [])]
    kinds: list[tuple[str, Call, int, int]] = [
        ("create", _create, calls.objects, 10 * BLOCK),
        ("GET", _get, calls.quick, BLOCK),
        ("server-side apply", _apply, calls.quick, BLOCK),
        ("LIST 500", _list(f"?limit={PAGE}", "application/json"), calls.lists * 4, 1),
        ("Table of 500", _list(f"?limit={PAGE}", TABLE), calls.lists * 4, 1),
        ("LIST {all}", _list("", "application/json"), calls.lists, 1),
        ("LIST {all} in pages", _pages, calls.lists, 1),
        ("Table of {all}", _list("", TABLE), calls.lists, 1),
    ]
    found = {}
    for what, call, times, block in kinds:
        taken = _in_turn(sessions, call, times, block)
        figures = [statistics.median(each) * 1000 for each in taken]
        found[what] = (figures[0], figures[1] if real else None)
        name = what.format(all=calls.objects)
        print(f"  {name}: " + ", ".join(f"{figure:.2f} ms" for figure in figures), flush=True)
    return found


def _in_turn(sessions: list[Session], call: Call, times: int, block: int) -> list[list[float]]:
    taken: list[list[float]] = [[] for _ in sessions]
    for start in range(0, times, block):
        for session, seconds in zip(sessions, taken, strict=True):
            for number in range(start, min(start + block, times)):
                began = time.perf_counter()
                call(session, number)
                seconds.append(time.perf_counter() - began)
    return taken


def rows(found: dict[str, tuple[float, float | None]], calls: Calls) -> Iterator[Row]:
    """Compare the figures with the goals; a short run is too small for its bounds and only shows them."""
    for what, (ours, real) in found.items():
        theirs = real or ONCE.get(what)
        name = f"{what.format(all=calls.objects)}, p50, one connection"
        if theirs is None:
            yield Row(name, "–", "", f"{ours:.3g} ms")
            continue
        source = f"{theirs:.3g} ms (kube-apiserver{'' if real else ', once'})"
        yield at_most(name, source, GOALS[what] * theirs, ours, asked=f"≤ {GOALS[what]:g} ×")
