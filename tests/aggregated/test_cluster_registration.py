"""Repositories, Secrets and Events that are the cluster's: what the server does with them.

Source: issue 9 part 1; ``porch-api.md`` 1.9 and 6.8.
"""

import json

from eventually import eventually
from kubectl import Kubectl
from manifests import Register, credentials, repository
from porch_client import PorchClient
from remotes import Remote

PATIENCE = 60.0


def condition(kubectl: Kubectl, name: str) -> tuple[str, str]:
    """Return status and message of a repository's Ready condition."""
    told = kubectl.json("get", "repository", name).get("status", {}).get("conditions") or [{}]
    return told[0].get("status", ""), told[0].get("message", "")


def test_a_secret_that_comes_later_makes_the_repository_ready(kubectl: Kubectl, empty_remote: Remote) -> None:
    kubectl.create(repository("late", empty_remote.url))

    def missing() -> None:
        status, message = condition(kubectl, "late")
        assert status == "False"
        assert f"secret {kubectl.namespace}/git-auth: it does not exist" in message

    eventually(missing, timeout=PATIENCE)
    kubectl.create(credentials())

    def ready() -> None:
        assert condition(kubectl, "late") == ("True", "Repository Ready")

    eventually(ready, timeout=PATIENCE)


def test_the_status_and_only_the_status_is_the_servers(
    kubectl: Kubectl, register: Register, empty_remote: Remote
) -> None:
    register(deployments=empty_remote)

    found = kubectl.json("get", "repository", "deployments", "--show-managed-fields")

    assert found["status"]["observedGeneration"] == found["metadata"]["generation"] == 1
    assert found["status"]["gitCommitHash"]
    managers = {(one["manager"], one.get("subresource", "")) for one in found["metadata"]["managedFields"]}
    assert ("porch-server", "status") in managers


def test_a_wish_for_one_more_sync_is_taken_off_when_it_is_done(
    kubectl: Kubectl, register: Register, empty_remote: Remote
) -> None:
    register(deployments=empty_remote)
    wish = {"spec": {"sync": {"runOnceAt": "2026-01-01T00:00:00Z"}}}
    kubectl.ok("patch", "repository", "deployments", "--type=merge", "-p", json.dumps(wish))

    def done() -> None:
        found = kubectl.json("get", "repository", "deployments")
        assert found["status"].get("observedRunOnceAt") == "2026-01-01T00:00:00Z"
        assert "sync" not in found["spec"]
        assert found["status"]["observedGeneration"] == found["metadata"]["generation"]

    eventually(done, timeout=PATIENCE)


def test_events_about_revisions_are_events_of_the_cluster(
    kubectl: Kubectl, porch: PorchClient, register: Register, empty_remote: Remote
) -> None:
    register(deployments=empty_remote)
    name = porch.create_revision("deployments", "app").object["metadata"]["name"]
    assert porch.propose(name).code == 200

    def told() -> None:
        events = kubectl.json("get", "events", "--field-selector", f"involvedObject.name={name}")["items"]
        assert {"Created", "Proposed"} <= {event["reason"] for event in events}

    eventually(told, timeout=PATIENCE)


def test_a_watch_through_the_aggregator_is_kept_alive_by_bookmarks_and_ends_in_time(porch: PorchClient) -> None:
    query = "?watch=true&allowWatchBookmarks=true&timeoutSeconds=5"

    told = porch.request("GET", porch.path("packagerevisions") + query).body.splitlines()

    assert {json.loads(line)["type"] for line in told} == {"BOOKMARK"}


def test_a_watch_through_the_aggregator_shows_every_step(
    kubectl: Kubectl, porch: PorchClient, register: Register, empty_remote: Remote
) -> None:
    register(deployments=empty_remote)
    assert porch.create_revision("deployments", "seen").code == 201
    with kubectl.watch("get", "packagerevisions", "--output-watch-events", "-w") as watched:
        watched.wait_for(lambda lines: any("seen" in line for line in lines), timeout=PATIENCE)
        name = porch.create_revision("deployments", "app").object["metadata"]["name"]
        assert porch.propose(name).code == 200
        kubectl.ok("delete", "packagerevision", name)

        def all_steps(lines: list[str]) -> bool:
            kinds = [line.split()[0] for line in lines if name in line]
            return kinds[:1] == ["ADDED"] and "MODIFIED" in kinds and kinds[-1] == "DELETED"

        watched.wait_for(all_steps, timeout=PATIENCE)
