"""Approval policies with both controllers as processes, each with the rights of its own user. Source: ``variants.md`` 6.3."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from approving_place import APPROVAL, VARIANTS, Approvals, approvals, approver
from drafts import accepted, refused
from eventually import eventually
from git_server import GitServer
from porch_client import CONFIG, PorchClient
from porch_process import PorchProcess
from variant_place import (
    DOWNSTREAM,
    NO_FUNCTION,
    Place,
    downstream,
    new_place,
    owners_of,
    upstream,
    variant,
    with_blueprint,
)

Json = dict[str, Any]
BOTH = {"propose": "WhenReady", "publish": "Always"}
LATEST = upstream(revision="latest")
FIRST, SECOND = "deployments.bar.packagevariant-1", "deployments.bar.packagevariant-2"
SETTLES = 3.0
"""Seconds in which something would have happened if it were going to."""

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def running(porch_server: PorchProcess, git_http: GitServer, namespace: str, tmp_path: Path) -> Iterator[Approvals]:
    """Both controllers, in a place with a blueprint."""
    place = with_blueprint(new_place(porch_server, git_http, namespace))
    with approvals(place, tmp_path) as made:
        yield made
    place.porch.close()


def test_a_package_follows_its_blueprint_without_a_person(running: Approvals) -> None:
    """Both steps are told; the next revision of the blueprint is published, too; Git has both."""
    place = running.place
    place.add_variant(variant(upstream=LATEST, approval=BOTH))
    running.becomes(FIRST, "Published")
    why = 'policy of package variant "my-pv"'
    told = [("Proposed", f"proposed: {why}"), ("Published", f"published: {why}")]
    eventually(lambda: _equal(running.events(FIRST), told))

    place.new_upstream(2)
    running.becomes(SECOND, "Published")
    assert place.revision(SECOND)["spec"]["revision"] == 2
    tags = {"refs/tags/bar/v1", "refs/tags/bar/v2"}
    eventually(lambda: _equal({one for one in place.refs() if "tags" in one}, tags))
    eventually(lambda: _equal(place.condition("Ready")[0], "True"))


def test_the_annotation_of_catalogs_publishes_the_first_revision_only(running: Approvals) -> None:
    place = running.place
    place.add_variant(variant(upstream=LATEST, annotations={"approval.nephio.org/policy": "initial"}))
    running.becomes(FIRST, "Published")
    eventually(
        lambda: _equal(
            running.events(FIRST)[-1:], [("Published", "published: annotation approval.nephio.org/policy: initial")]
        )
    )

    place.new_upstream(2)
    running.becomes(SECOND, "Draft")
    eventually(lambda: _equal(place.targets(), [SECOND]))
    time.sleep(SETTLES)
    assert running.lifecycle(SECOND) == "Draft"
    assert running.events(SECOND) == []


def test_a_package_without_a_variant_has_its_policy_in_an_annotation(running: Approvals) -> None:
    place = running.place
    name = place.new_draft("own")
    eventually(lambda: _rendered(place.revision(name)))

    place.edit(
        name,
        lambda body: body["metadata"].setdefault("annotations", {}).update({"approval.nephio.org/policy": "always"}),
    )
    running.becomes(name, "Published")


def test_what_is_only_proposed_waits_for_a_person(running: Approvals) -> None:
    running.place.add_variant(variant(approval={"propose": "WhenReady"}))
    running.becomes(FIRST, "Proposed")
    time.sleep(SETTLES)
    assert running.lifecycle(FIRST) == "Proposed"
    accepted(running.place.porch.approve(FIRST))


def test_without_a_policy_nothing_is_done(running: Approvals) -> None:
    running.place.add_variant(variant())
    eventually(lambda: _equal(running.place.condition("Ready")[0], "True"))
    time.sleep(SETTLES)
    assert running.lifecycle(FIRST) == "Draft"


def test_a_policy_that_is_written_later_counts_at_once(running: Approvals) -> None:
    running.place.add_variant(variant())
    eventually(lambda: _equal(running.place.condition("Ready")[0], "True"))
    running.place.change_variant(approval=BOTH)
    running.becomes(FIRST, "Published")


def test_what_does_not_render_is_not_approved_until_it_does(running: Approvals) -> None:
    place = running.place
    place.add_variant(variant(approval=BOTH, pipeline={"mutators": [NO_FUNCTION]}))
    eventually(lambda: _equal(place.condition("Ready")[1], "RenderFailed"))
    time.sleep(SETTLES)
    assert running.lifecycle(FIRST) == "Draft"
    place.change_variant(pipeline=None)
    running.becomes(FIRST, "Published")


def test_a_delay_counts_from_the_creation(running: Approvals) -> None:
    running.place.add_variant(variant(approval={**BOTH, "delay": "6s"}))
    running.becomes(FIRST, "Draft")
    began = time.monotonic()
    eventually(lambda: _equal(running.place.condition("Ready")[0], "True"))
    assert running.lifecycle(FIRST) == "Draft"
    running.becomes(FIRST, "Published")
    assert time.monotonic() - began > 4


def test_a_policy_that_cannot_be_understood_is_told(running: Approvals) -> None:
    running.place.add_variant(variant(annotations={"approval.nephio.org/policy": "sometimes"}))
    said = 'annotation approval.nephio.org/policy: "sometimes" is neither initial nor always'
    eventually(lambda: _equal(running.events(FIRST), [("InvalidApprovalPolicy", said)]))
    assert running.lifecycle(FIRST) == "Draft"


def test_an_annotation_of_the_lease_stops_everything(running: Approvals) -> None:
    place = running.place
    running.switch(off=True)
    running.has_said("approvals are stopped")
    place.add_variant(variant(approval=BOTH))
    eventually(lambda: _equal(place.condition("Ready")[0], "True"))
    time.sleep(SETTLES)
    assert running.lifecycle(FIRST) == "Draft"

    running.switch(off=False)
    running.becomes(FIRST, "Published")


def test_with_its_variant_goes_what_was_published_if_the_policy_says_so(running: Approvals) -> None:
    place = running.place
    place.add_variant(variant(approval={**BOTH, "approveDeletion": "Always"}))
    place.add_variant(variant("kept", downstream=downstream("kept"), approval=BOTH))
    kept = "deployments.kept.packagevariant-1"
    for name in (FIRST, kept):
        running.becomes(name, "Published")
    for name in ("my-pv", "kept"):
        assert place.delete(CONFIG, "packagevariants", name).code == 200
    eventually(lambda: _equal(place.exists(FIRST), False))  # what is expected
    running.becomes(kept, "DeletionProposed")
    eventually(
        lambda: _equal(
            running.events(FIRST)[-1:],
            [("DeletionApproved", 'the proposed deletion was approved: policy of package variant "my-pv"')],
        )
    )
    eventually(lambda: _equal({one for one in place.refs() if "bar" in one}, set()))
    time.sleep(SETTLES)
    assert running.lifecycle(kept) == "DeletionProposed"


def test_what_was_published_for_a_former_target_goes_and_a_persons_proposal_stays(running: Approvals) -> None:
    place = running.place
    place.add_variant(variant(approval={**BOTH, "approveDeletion": "Always"}))
    running.becomes(FIRST, "Published")
    eventually(lambda: _equal(place.targets(), [FIRST]))
    eventually(
        lambda: _equal((place.variant()["status"].get("downstreamTargets") or [{}])[0].get("lifecycle"), "Published")
    )
    accepted(place.porch.set_lifecycle(FIRST, "DeletionProposed"))
    eventually(lambda: _equal(place.condition("Ready")[1], "DownstreamDeletionProposed"))
    time.sleep(SETTLES)
    assert running.lifecycle(FIRST) == "DeletionProposed"

    place.change_variant(downstream=downstream("other"))
    eventually(lambda: _equal(place.exists(FIRST), False))  # what is expected
    running.becomes("deployments.other.packagevariant-1", "Published")


def test_an_approver_that_is_killed_is_followed_by_another(running: Approvals, tmp_path: Path) -> None:
    """Nothing is done twice: each package has one published revision and no further draft."""
    place = running.place
    names = [f"p{number}" for number in range(12)]
    for name in names:
        place.add_variant(variant(name, downstream=downstream(name), approval=BOTH))
    eventually(
        lambda: _some_published(place.porch.revisions("spec.lifecycle=Published,spec.repository=deployments")),
    )
    running.approver.kill()
    second = approver(place, tmp_path)
    second.start()
    try:
        for name in names:
            running.becomes(f"{DOWNSTREAM}.{name}.packagevariant-1", "Published", timeout=60)
            eventually(lambda name=name: _equal(place.revisions_of(name), {"packagevariant-1": "Published"}))  # type: ignore[misc]
    finally:
        second.kill()


def test_a_draft_that_somebody_edits_meanwhile_is_decided_about_again(running: Approvals) -> None:
    """Whoever closes a gate before the approval is heard."""
    place = running.place
    running.switch(off=True)
    running.has_said("approvals are stopped")
    place.add_variant(variant(approval=BOTH))
    eventually(lambda: _equal(place.condition("Ready")[0], "True"))

    def close(body: Json) -> None:
        body["spec"]["readinessGates"].append({"conditionType": "example.com/Reviewed"})

    place.edit(FIRST, close)
    running.switch(off=False)
    time.sleep(SETTLES)
    assert running.lifecycle(FIRST) == "Draft"

    def reviewed(body: Json) -> None:
        body["status"]["conditions"].append({"type": "example.com/Reviewed", "status": "True", "reason": "Read"})

    place.edit(FIRST, reviewed)
    running.becomes(FIRST, "Published")


def test_each_controller_has_only_its_own_rights(running: Approvals) -> None:
    """The controller of variants cannot approve, the approver touches neither contents nor variants."""
    place = running.place
    place.add_variant(variant())
    eventually(lambda: _equal(place.condition("Ready")[0], "True"))
    accepted(place.porch.propose(FIRST))
    owner = owners_of(place.revision(FIRST))
    with closing(_as(place, VARIANTS)) as keeper:
        refused(keeper.approve(FIRST), 403, "Forbidden")
    with closing(_as(place, APPROVAL)) as follower:
        refused(follower.resources(FIRST), 403, "Forbidden")
        path = place.path(CONFIG, "packagevariants", "my-pv")
        refused(follower.request("PUT", path, place.variant()), 403, "Forbidden")
        accepted(follower.approve(FIRST))
    assert owners_of(place.revision(FIRST)) == owner


def _equal(found: object, expected: object) -> None:
    assert found == expected


def _rendered(body: Json) -> None:
    assert all(one["status"] == "True" for one in body["status"]["conditions"]), body["status"]


def _some_published(found: list[Json]) -> None:
    assert sum(one["spec"]["workspaceName"] != "main" for one in found) >= 3


def _as(place: Place, user: str) -> PorchClient:
    """Return a client with the rights of a user."""
    client = place.server.client(place.namespace)
    client.headers["Impersonate-User"] = user
    return client
