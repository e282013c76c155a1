"""The controllers' process beside a cluster: one variant from its blueprint to a published package, with the controllers' own rights."""

import itertools
from collections.abc import Iterator

import pytest
from aggregated_replicas import AggregatedReplicas
from controllers_process import ControllersProcess
from eventually import eventually
from git_server import GitServer
from variant_place import DOWNSTREAM, GATE, Place, new_place, variant, with_blueprint

PATIENCE = 120.0

_numbers = itertools.count(1)


@pytest.fixture
def place(porch_server: AggregatedReplicas, git_http: GitServer) -> Iterator[Place]:
    """A namespace with a published blueprint."""
    place = with_blueprint(new_place(porch_server, git_http, f"variants-{next(_numbers)}"), deployment=False)
    yield place
    place.porch.request("DELETE", f"/api/v1/namespaces/{place.namespace}")
    place.porch.close()


@pytest.fixture
def controllers(porch_server: AggregatedReplicas) -> ControllersProcess:
    """The controllers as a user of the cluster who has the rights of controllers, and no others."""
    return porch_server.controllers


def test_a_variant_follows_its_blueprint_in_a_cluster(place: Place, controllers: ControllersProcess) -> None:
    place.add_variant(variant())

    def drafted() -> str:
        made = place.revisions_of("bar")
        assert len(made) == 1, controllers.tail()
        (workspace,) = made
        name = f"{DOWNSTREAM}.bar.{workspace}"
        conditions = {one["type"]: one["status"] for one in place.revision(name)["status"].get("conditions") or []}
        assert conditions.get(GATE) == "True", controllers.tail()
        return name

    name = eventually(drafted, timeout=PATIENCE)
    (owner,) = place.revision(name)["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("PackageVariant", "my-pv")
    place.approve(name)
    place.new_upstream(2)
    place.patch(
        "/apis/config.porch.kpt.dev/v1alpha1", "packagevariants", "my-pv", {"spec": {"upstream": {"revision": 2}}}
    )

    def upgraded() -> None:
        drafts = [workspace for workspace, lifecycle in place.revisions_of("bar").items() if lifecycle == "Draft"]
        assert len(drafts) == 1, controllers.tail()
        assert "size-2" in place.files(f"{DOWNSTREAM}.bar.{drafts[0]}")["settings.yaml"]

    eventually(upgraded, timeout=PATIENCE)


def test_what_a_variant_made_goes_with_it_by_the_hand_of_the_cluster(
    place: Place, controllers: ControllersProcess
) -> None:
    place.add_variant(variant())

    def drafted() -> None:
        assert len(place.revisions_of("bar")) == 1, controllers.tail()

    eventually(drafted, timeout=PATIENCE)

    place.delete("/apis/config.porch.kpt.dev/v1alpha1", "packagevariants", "my-pv")

    def gone() -> None:
        assert place.revisions_of("bar") == {}

    eventually(gone, timeout=PATIENCE)
