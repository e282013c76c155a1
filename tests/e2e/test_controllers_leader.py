"""Two processes of controllers, of which one works: the leader is killed, stopped and continued while it makes drafts.

Source: issue 7, "two controller processes with leader election"; ``variants.md`` I2, I3. Each process has a user of its own, so
that the server's audit log tells who wrote what.
"""

import datetime as dt
import itertools
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from contender import (
    QUICK,
    WORKING,
    Contender,
    add_variants,
    all_are_done,
    context_is,
    has_said,
    is_done,
)
from eventually import eventually
from git_server import GitServer
from logged_lines import logged_lines
from porch_client import CONFIG
from porch_process import PorchProcess
from variant_place import (
    Place,
    new_place,
    upstream,
    with_blueprint,
)

Json = dict[str, Any]
MANY = 40
TAKEOVER = 15.0
"""Seconds from the leader's end until another process works, as the issue demands: ten of them are the Lease's."""
BUSY = 30.0
"""Seconds more for a machine that does eight things at once."""

_numbers = itertools.count(1)

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def recording_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PorchProcess]:
    """A server that records who writes."""
    folder = tmp_path_factory.mktemp("elections")
    server = PorchProcess(folder / "data", arguments=["--audit-log", str(folder / "audit.log")])
    server.start()
    yield server
    server.stop()


@pytest.fixture
def place(recording_server: PorchProcess, git_http: GitServer) -> Iterator[Place]:
    """A place of the test's own."""
    made = with_blueprint(new_place(recording_server, git_http, f"election-{next(_numbers)}"))
    yield made
    made.porch.close()


@pytest.fixture
def leader(place: Place, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Contender]:
    """The process that leads."""
    made = Contender(place, "first", tmp_path, getattr(request, "param", None))
    made.start()
    eventually(lambda: has_said(made, WORKING))
    yield made
    made.kill()


@pytest.fixture
def other(place: Place, leader: Contender, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Contender]:
    """The process that waits."""
    made = Contender(place, "second", tmp_path, getattr(request, "param", None))
    made.start()
    eventually(lambda: has_said(made, "another process leads"))
    yield made
    made.kill()


def names() -> list[str]:
    return [f"v{number}" for number in range(MANY)]


def begin_work(place: Place, drafts: int) -> None:
    """Create the variants, and return when so many drafts were made and most were not."""
    add_variants(place, names())

    def some() -> None:
        assert len(place.porch.revisions("spec.repository=deployments")) >= drafts

    eventually(some, timeout=60)


def writes_of(place: Place, user: str) -> list[tuple[str, str, str]]:
    """Return verb, resource and name of each write that a user was granted, in order."""
    log = place.server.data.parent / "audit.log"
    recorded = [json.loads(line) for line in logged_lines(log)]
    return [
        (event["verb"], event["objectRef"]["resource"], event["objectRef"].get("name", ""))
        for event in recorded
        if event["stage"] == "ResponseComplete" and is_granted_write(event, user)
    ]


def is_granted_write(event: Json, user: str) -> bool:
    is_write = event["user"]["username"] == user and event["verb"] in {"create", "update", "patch", "delete"}
    return is_write and event["responseStatus"]["code"] < 300


def holder(place: Place) -> str:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{place.namespace}/leases/porch-controllers"
    return str(place.porch.request("GET", path).object["spec"]["holderIdentity"])


def test_the_leader_is_killed_during_work_and_the_other_finishes_it(
    place: Place, leader: Contender, other: Contender
) -> None:
    begin_work(place, MANY // 8)
    leader.kill()
    killed = time.monotonic()
    eventually(lambda: has_said(other, WORKING), timeout=60)
    taken_after = time.monotonic() - killed

    all_are_done(place, names())
    assert taken_after < TAKEOVER + BUSY
    for process in (leader, other):
        assert [write for write in writes_of(place, process.user) if write[1] not in {"leases", "events"}]


def test_the_leader_is_stopped_during_work_and_writes_nothing_when_it_continues(
    place: Place, leader: Contender, other: Contender
) -> None:
    begin_work(place, MANY // 8)
    leader.signal(signal.SIGSTOP)
    stopped = time.monotonic()
    eventually(lambda: has_said(other, WORKING), timeout=60)
    taken_after = time.monotonic() - stopped
    all_are_done(place, names())
    before, held_by = writes_of(place, leader.user), holder(place)

    leader.signal(signal.SIGCONT)
    eventually(lambda: has_said(leader, "lost the lease"))
    time.sleep(5)
    all_are_done(place, names())
    assert taken_after < TAKEOVER + BUSY
    assert writes_of(place, leader.user) == before
    assert holder(place) == held_by
    assert leader.running

    # It is as good a process as before: it works when it is its turn.
    assert other.stop() == 0
    eventually(lambda: has_said(leader, WORKING, times=2))
    place.new_upstream(2)
    place.change_variant("v0", upstream=upstream(revision=2))

    def follows() -> None:
        assert "size-2" in place.files("deployments.v0.packagevariant-1")["settings.yaml"]

    eventually(follows)


def test_a_leader_that_is_told_to_stop_during_work_finishes_what_it_began_and_is_followed_at_once(
    place: Place, leader: Contender, other: Contender
) -> None:
    begin_work(place, MANY // 8)
    held_by = holder(place)
    assert leader.stop() == 0
    assert holder(place) != held_by, "it gave the Lease back, and did not let the other wait for its end"
    eventually(lambda: has_said(other, WORKING))

    all_are_done(place, names())


def test_leaders_are_killed_one_after_the_other(place: Place, tmp_path: Path) -> None:
    """Each next process finds what the one before left half done."""
    for number in range(4):
        leader = Contender(place, f"number-{number}", tmp_path, QUICK)
        leader.start()
        eventually(lambda process=leader: has_said(process, WORKING))  # type: ignore[misc]
        if number == 0:
            begin_work(place, 2)
        if number < 3:
            time.sleep(0.5)
            leader.kill()
    try:
        all_are_done(place, names())
    finally:
        leader.kill()


@pytest.mark.parametrize(("leader", "other"), [(QUICK, QUICK)], indirect=True, ids=["quick"])
def test_variants_are_deleted_by_the_process_that_took_over(place: Place, leader: Contender, other: Contender) -> None:
    begin_work(place, MANY)
    leader.signal(signal.SIGSTOP)
    for name in names()[:5]:
        assert place.delete(CONFIG, "packagevariants", name).code == 200

    def gone() -> None:
        assert not [name for name in names()[:5] if place.has_variant(name)]

    eventually(gone, timeout=TAKEOVER + BUSY)
    leader.signal(signal.SIGCONT)
    for name in names()[:5]:
        assert place.revisions_of(name) == {}


ROUNDS = 4
STOPPED = 5.5
"""Seconds for which a leader is stopped: longer than its Lease."""


@pytest.mark.parametrize(("leader", "other"), [(QUICK, QUICK)], indirect=True, ids=["quick"])
def test_whenever_a_leader_is_stopped_it_writes_nothing_after_it_continued(
    place: Place, leader: Contender, other: Contender
) -> None:
    """They are stopped in turn while there is always something to write; the moments are as random as the machine is busy."""
    begin_work(place, MANY // 4)
    for number in range(ROUNDS):
        for name in names():
            place.change_variant(name, packageContext={"data": {"round": str(number)}})
        leader.signal(signal.SIGSTOP)
        time.sleep(STOPPED)
        continued = time.time()
        leader.signal(signal.SIGCONT)
        eventually(lambda process=leader, times=number // 2 + 1: has_said(process, "lost the lease", times))  # type: ignore[misc]
        time.sleep(1)
        assert writes_without_lease(place, leader.user, since=continued) == []
        leader, other = other, leader
    for name in names():
        eventually(lambda name=name: is_done(place, name), timeout=90)  # type: ignore[misc]
        context_is(place, name, f'round: "{ROUNDS - 1}"')


def writes_without_lease(place: Place, user: str, since: float) -> list[str]:
    """Return the granted writes of a former leader that arrived after ``since`` and before it had the Lease again, if it has.

    On a busy machine the other may have been too slow to renew it. A Lease that somebody else holds refuses the write.
    """
    log = place.server.data.parent / "audit.log"
    answered = (event for event in map(json.loads, logged_lines(log)) if event["stage"] == "ResponseComplete")
    found = []
    for event in sorted((event for event in answered if is_granted_write(event, user)), key=received):
        if received(event) <= since:
            continue
        if event["objectRef"]["resource"] == "leases":
            break
        found.append(f"{event['requestReceivedTimestamp']} {event['verb']} {event['requestURI']}")
    return found


def received(event: Json) -> float:
    """Return when a request arrived, in seconds since the epoch."""
    return dt.datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
