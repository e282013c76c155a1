"""What is asked of the PackageVariantSet controller by its settings: the check of the mapping of events, the identity of upstreams.

The controller as it runs, with a real server. Source: ``variants.md`` 6.10, 6.12.
"""

from collections.abc import Iterator

import pytest
from eventually import eventually
from git_server import GitServer
from live_set_controller import LiveSetController, live_set_controller
from porch_process import PorchProcess
from set_place import SetPlace, package_set
from variant_place import Json, new_place

from controllers.packagevariantset import wakeups

FLEET: Json = {
    "repositorySelector": {"matchLabels": {"fleet": "yes"}},
    "template": {"labelExprs": [{"key": "region", "valueExpr": "repository.labels['region']"}]},
}
MISSED = "porch_variant_set_missed_wakeups_total"
LOOKED = 60.0
"""Seconds until every suspicion was followed, on a busy machine."""


@pytest.fixture
def sets(porch_server: PorchProcess, git_http: GitServer, namespace: str) -> Iterator[SetPlace]:
    """A place with the repositories of the golden cases; two sets are in it, which one repository concerns."""
    made = SetPlace(new_place(porch_server, git_http, namespace))
    made.prepare()
    made.add_repository("edge", {"fleet": "yes", "region": "east"})
    made.add(package_set("fleet", FLEET))
    made.add(package_set("named", {"repositories": [{"name": "edge", "packageNames": ["other"]}]}))
    yield made
    made.porch.close()


def checking(sets: SetPlace) -> Iterator[LiveSetController]:
    with live_set_controller(sets.place.server.kubeconfig, sets.place.namespace, check_wakeups=True) as made:
        for name in ("fleet", "named"):
            eventually(lambda name=name: is_ready(sets, name))  # type: ignore[misc]
        made.settle()
        made.begin()
        yield made


@pytest.fixture
def controller(sets: SetPlace) -> Iterator[LiveSetController]:
    """A controller that looks at every set after every event."""
    yield from checking(sets)


def is_ready(sets: SetPlace, name: str) -> None:
    assert sets.condition(name, "Ready")[0] == "True"


def region_is(sets: SetPlace, region: str) -> None:
    assert sets.variants("fleet")["fleet-edge-foo"]["spec"]["labels"] == {"region": region}


def test_no_event_should_have_woken_another_set(sets: SetPlace, controller: LiveSetController) -> None:
    sets.label("edge", {"region": "west"})
    eventually(lambda: region_is(sets, "west"))
    sets.label("cluster-01", {"more": "labels"})
    sets.add_repository("edge-2", {"fleet": "yes", "region": "north"})
    eventually(lambda: two_variants(sets))
    sets.place.patch_variant({"metadata": {"labels": {"mine": "yes"}}}, "fleet-edge-2-foo")
    eventually(lambda: suspicions_were_followed(controller), timeout=LOOKED)
    controller.settle()

    assert controller.sample(MISSED) == 0


def two_variants(sets: SetPlace) -> None:
    assert len(sets.pairs("fleet")) == 2


def suspicions_were_followed(controller: LiveSetController) -> None:
    assert controller.controller is not None
    check = controller.controller._check
    assert check is not None
    assert check.followed > 0


def test_an_event_that_wakes_nobody_although_it_should_is_found(
    sets: SetPlace, controller: LiveSetController, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wakeups, "by_repository", lambda *_: set())
    sets.label("edge", {"region": "west"})

    eventually(lambda: missed(controller, 1), timeout=LOOKED)
    region_is(sets, "west")


def missed(controller: LiveSetController, number: int) -> None:
    assert controller.sample(MISSED) == number


@pytest.mark.parametrize("allowed", [True, False])
def test_expressions_see_which_package_the_upstream_is_where_that_is_allowed(sets: SetPlace, *, allowed: bool) -> None:
    expression = "upstream.package + '-' + upstream.repo + '-v' + string(upstream.revision)"
    target = {"repositories": [{"name": "cluster-01"}], "template": {"downstream": {"packageExpr": expression}}}
    with live_set_controller(
        sets.place.server.kubeconfig, sets.place.namespace, upstream_identity=allowed
    ) as controller:
        sets.add(package_set("identity", target))
        if allowed:
            eventually(lambda: is_ready(sets, "identity"))
            assert list(sets.pairs("identity").values()) == ["cluster-01/foo-example-repo-v1"]
        else:
            eventually(lambda: says(sets, "template.downstream.packageExpr: no such key: package"))
            controller.settle()
            assert sets.pairs("identity") == {}


def says(sets: SetPlace, message: str) -> None:
    assert message in sets.condition("identity", "Stalled")[2]
