"""The controller of sets dies before or after each of its writes; the next one does the rest, and nothing twice."""

from collections.abc import Iterator

import pytest
from eventually import eventually
from git_server import GitServer
from live_set_controller import LiveSetController, live_set_controller
from porch_process import PorchProcess
from recording_client import Killed, Write
from set_place import SetPlace, package_set
from variant_place import Json, new_place

from krm.variants.sets.guards import GuardDefaults

WRITES = (
    "DELETE PV {}-cluster-01-foo",
    "PUT PV {}-cluster-02-foo",
    "POST PV {}-cluster-03-foo",
    "PUT packagevariantsets {} status",
)


@pytest.fixture(scope="module")
def sets(porch_server: PorchProcess, git_http: GitServer) -> Iterator[SetPlace]:
    """One namespace for all cases."""
    place = new_place(porch_server, git_http, "crashes-of-sets")
    made = SetPlace(place)
    made.prepare()
    yield made
    place.porch.close()


def target(label: str, *clusters: int) -> Json:
    repositories = [{"name": f"cluster-0{number}"} for number in clusters]
    return {"repositories": repositories, "template": {"labels": {"a": label}}}


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_the_next_controller_does_the_rest(sets: SetPlace, moment: str, number: int) -> None:
    name = f"{moment}-{number}"
    server, namespace = sets.place.server, sets.place.namespace
    sets.add(package_set(name, target("1", 1, 2)))
    with live_set_controller(server.kubeconfig, namespace):
        eventually(lambda: equal(sets.condition(name, "Ready")[0], "True"))
    sets.change(name, {"spec": {"targets": [target("2", 2, 3)]}})

    killed = doomed(sets, moment, number)
    killed.start()
    killed.wait_killed()
    with live_set_controller(server.kubeconfig, namespace) as next_one:
        eventually(lambda: equal(sorted(sets.pairs(name).values()), ["cluster-02/foo", "cluster-03/foo"]))
        eventually(lambda: equal(sets.get(name)["status"]["observedGeneration"], 2))
        next_one.settle()
        done = [one.line for one in (*killed.recording.accepted, *next_one.recording.accepted)]

    expected = [line.format(name) for line in WRITES]
    # A deletion is counted where it was told; the status is the only write that is made again.
    assert [line for line in done if " PV " in line] == expected[:3]
    assert sets.variants(name)[f"{name}-cluster-02-foo"]["spec"]["labels"] == {"a": "2"}
    assert sets.condition(name, "Ready")[0] == "True"


def doomed(sets: SetPlace, moment: str, number: int) -> LiveSetController:
    """Return a controller that dies before or after its n-th write."""
    made = LiveSetController(sets.place.server.kubeconfig, sets.place.namespace, GuardDefaults())

    def die(at: int, _write: Write) -> None:
        if at == number:
            raise Killed

    if moment == "before":
        made.recording.before_each = die
    else:
        made.recording.after_each = die
    return made


def equal(found: object, expected: object) -> None:
    assert found == expected
