"""Events about package revisions, as kubectl shows them: what happened, to whom, by whom. Source: issue 6 part 1."""

from typing import Any

import pytest
from eventually import eventually
from kubectl import Kubectl
from lifecycles import move
from manifests import Register, init_task, package_revision
from porch_process import PorchProcess
from remotes import Remote

Json = dict[str, Any]
NAME = "blueprints.app.v1"


@pytest.fixture
def draft(kubectl: Kubectl, register: Register, empty_remote: Remote) -> str:
    register(blueprints=empty_remote)
    kubectl.create(package_revision("blueprints", "app", "v1", init_task()))
    return NAME


def events(kubectl: Kubectl, name: str = NAME) -> list[Json]:
    selector = f"--field-selector=involvedObject.kind=PackageRevision,involvedObject.name={name}"
    items: list[Json] = kubectl.json("get", "events", selector)["items"]
    return sorted(items, key=lambda event: int(event["metadata"]["resourceVersion"]))


def reasons(kubectl: Kubectl, name: str = NAME) -> list[str]:
    return [event["reason"] for event in events(kubectl, name)]


def test_the_life_of_a_revision_is_told_by_describe_and_events(kubectl: Kubectl, draft: str) -> None:
    move(kubectl, draft, "Proposed", "Draft", "Proposed", "Published", "DeletionProposed", "Published")
    steps = {"Created", "Proposed", "Rejected", "Approved", "DeletionProposed", "DeletionRejected"}
    eventually(lambda: told(kubectl, steps))

    described = kubectl.ok("describe", "packagerevision", draft)
    printed = kubectl.ok("events", "--for", f"packagerevision/{draft}")

    assert "approved by admin and published as revision 1" in described
    for reason in steps:
        assert reason in described
        assert reason in printed
    (proposed,) = [event for event in events(kubectl) if event["reason"] == "Proposed"]
    assert (proposed["type"], proposed["source"]) == ("Normal", {"component": "porch-server"})


def told(kubectl: Kubectl, wanted: set[str], name: str = NAME) -> None:
    assert wanted <= set(reasons(kubectl, name))


def test_what_happens_again_is_counted_and_not_told_twice(kubectl: Kubectl, draft: str) -> None:
    for _ in range(3):
        move(kubectl, draft, "Proposed", "Draft")

    def counted() -> None:
        counts = {event["reason"]: event["count"] for event in events(kubectl)}
        assert counts == {"Created": 1, "Proposed": 3, "Rejected": 3}

    eventually(counted)


def test_a_deletion_is_told_after_the_revision_is_gone(kubectl: Kubectl, draft: str) -> None:
    uid = kubectl.json("get", "packagerevision", draft)["metadata"]["uid"]
    kubectl.ok("delete", "packagerevision", draft)
    eventually(lambda: told(kubectl, {"Created", "Deleted"}))

    (deleted,) = [event for event in events(kubectl) if event["reason"] == "Deleted"]
    assert deleted["involvedObject"]["uid"] == uid
    assert deleted["message"] == "deleted by admin"


def test_a_dry_run_a_refusal_and_a_change_of_labels_are_not_told(kubectl: Kubectl, draft: str) -> None:
    kubectl.ok("label", "packagerevision", draft, "team=a")
    kubectl.ok("delete", "packagerevision", draft, "--dry-run=server")
    move(kubectl, draft, "Proposed")
    refused = kubectl("patch", "packagerevision", draft, "--type=merge", "-p", '{"spec":{"lifecycle":"Published"}}')
    eventually(lambda: told(kubectl, {"Proposed"}))

    assert refused.returncode != 0
    assert reasons(kubectl) == ["Created", "Proposed"]


def test_a_deletion_that_a_finalizer_holds_is_told_when_it_is_done(kubectl: Kubectl, draft: str) -> None:
    hold = '{"metadata":{"finalizers":["example.com/hold"]}}'
    kubectl.ok("patch", "packagerevision", draft, "--type=merge", "-p", hold)
    kubectl.ok("delete", "packagerevision", draft, "--wait=false")
    eventually(lambda: told(kubectl, {"Created"}))
    assert reasons(kubectl) == ["Created"]

    kubectl.ok("patch", "packagerevision", draft, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')

    eventually(lambda: told(kubectl, {"Deleted"}))


def test_the_events_of_a_killed_server_are_missed_and_nothing_else(
    kubectl: Kubectl, draft: str, porch_server: PorchProcess
) -> None:
    eventually(lambda: told(kubectl, {"Created"}))
    move(kubectl, draft, "Proposed")

    porch_server.restart()

    assert kubectl.ok("get", "packagerevision", draft, "-o", "jsonpath={.spec.lifecycle}") == "Proposed"
    move(kubectl, draft, "Published")
    eventually(lambda: told(kubectl, {"Created", "Approved"}))
