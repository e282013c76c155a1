"""A variant whose drafts somebody deletes as fast as they come is stopped, and stays stopped until its spec changes (I4).

The controller as it runs, with a real server and real Git remotes. Source: ``variants.md`` 2.15, 6.11.
"""

from collections.abc import Iterator

import pytest
from drafts import accepted
from eventually import eventually
from git_server import GitServer
from live_controller import live_controller
from porch_process import PorchProcess
from variant_place import GATE, SET_LABELS, Place, condition_of, new_place, variant, with_blueprint

MOST = 4
"""More than three."""


@pytest.fixture
def place(porch_server: PorchProcess, git_http: GitServer, namespace: str) -> Iterator[Place]:
    made = with_blueprint(new_place(porch_server, git_http, namespace))
    yield made
    made.porch.close()


def draft(place: Place) -> str:
    (workspace,) = place.revisions_of("bar")
    return f"deployments.bar.{workspace}"


def delete_draft(place: Place) -> None:
    name = eventually(lambda: _one(place))
    answer = place.porch.request("DELETE", place.porch.path("packagerevisions", name))
    assert answer.code == 200, answer.body


def _one(place: Place) -> str:
    assert len(place.revisions_of("bar")) == 1
    name = draft(place)
    assert condition_of(place.revision(name), GATE)["status"] == "True"  # the controller is done with it
    return name


def is_stopped(place: Place) -> None:
    status, reason, message = place.condition("Ready")
    assert (status, reason) == ("False", "DraftChurn")
    assert message == "more than 3 drafts were made within 10 minutes; no further one is made until the spec changes"


def test_four_drafts_are_made_and_no_fifth_before_the_spec_changes(place: Place) -> None:
    with live_controller(place.server.kubeconfig, place.namespace) as controller:
        place.add_variant(variant())
        for _ in range(MOST):
            delete_draft(place)
        eventually(lambda: is_stopped(place))
        controller.settle()
        made = controller.count("drafts")
    with live_controller(place.server.kubeconfig, place.namespace) as restarted:
        restarted.settle()
        is_stopped(place)
        after_restart = place.revisions_of("bar")
        place.change_variant(pipeline={"mutators": [SET_LABELS]})
        eventually(lambda: _one(place))

        assert restarted.count("drafts") == 1
    assert made == MOST
    assert after_restart == {}


def test_drafts_that_are_approved_one_after_the_other_are_counted_only_together(place: Place) -> None:
    """Three new versions within minutes are work, no churn."""
    with live_controller(place.server.kubeconfig, place.namespace):
        place.add_variant(variant(upstream={"repo": "blueprints", "package": "foo"}))
        for number in (2, 3):
            name = eventually(lambda: _unpublished(place))
            accepted(place.porch.propose(name))
            accepted(place.porch.approve(name))
            place.new_upstream(number)
        last = eventually(lambda: _unpublished(place))

    assert last == "deployments.bar.packagevariant-3"


def _unpublished(place: Place) -> str:
    drafts = [workspace for workspace, lifecycle in place.revisions_of("bar").items() if lifecycle == "Draft"]
    assert len(drafts) == 1
    assert place.condition("Ready")[0] == "True"
    name = f"deployments.bar.{drafts[0]}"
    conditions = place.revision(name)["status"]["conditions"]
    assert all(one["status"] == "True" for one in conditions), conditions
    return name
