"""The database put back to a backup behind a kube-apiserver, while clients and controllers go on: what the guide tells to type there.

The servers are this module's own: others could not use them meanwhile. There are no Pods here, so the processes are stopped and
started beside the Deployment that is scaled. Source: issue 9 part 6; ADR 0027.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aggregated_process import NAMESPACE, SERVICE, USER
from aggregated_replicas import AggregatedReplicas
from drafts import accepted
from eventually import eventually
from git_server import GitServer
from kubectl import Kubectl
from manifests import deployment
from typed_guide import typed
from variant_place import DOWNSTREAM, Place, new_place, variant, with_blueprint

pytestmark = pytest.mark.timeout(600)  # a dump, two starts of two servers, and waiting for the controllers
Json = dict[str, Any]
PATIENCE = 120.0


@pytest.fixture
def place(porch_server: AggregatedReplicas, git_http: GitServer) -> Iterator[Place]:
    place = with_blueprint(new_place(porch_server, git_http, "put-back"), deployment=False)
    yield place
    place.porch.request("DELETE", f"/api/v1/namespaces/{place.namespace}")
    place.porch.close()


@pytest.fixture
def kubectl(porch_server: AggregatedReplicas, place: Place) -> Kubectl:
    return Kubectl(porch_server.kubeconfig, place.namespace)


def type_from_guide(name: str, servers: AggregatedReplicas, folder: Path) -> str:
    environment = {"PORCH_DATABASE_URL": servers.database, "KUBECONFIG": str(servers.kubeconfig)}
    done = typed("back-up-and-restore", name, folder, environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def made_by_variant(place: Place) -> str:
    """Wait until the controllers have made the variant's package and owned it; return the revision's name."""

    def owned() -> str:
        made = [*place.revisions_of("bar")]
        assert len(made) == 1, (made, place.variant())
        (workspace,) = made
        name = f"{DOWNSTREAM}.bar.{workspace}"
        owners = place.revision(name)["metadata"].get("ownerReferences") or []
        assert [(one["kind"], one["uid"]) for one in owners] == [("PackageVariant", place.variant()["metadata"]["uid"])]
        assert place.condition("Ready")[0] == "True", place.variant()
        return name

    return eventually(owned, timeout=PATIENCE)


def complaints(place: Place, servers: AggregatedReplicas) -> list[str]:
    """Return what ``porch doctor`` tells of this namespace and of the database besides notes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PORCH_", "KUBE"))}
    command = ["-m", "apiserver", "doctor", "--kubeconfig", str(servers.kubeconfig), "--server-account", USER]
    done = subprocess.run(
        [sys.executable, *command, "--namespace", place.namespace],
        env={**kept, "PORCH_DATABASE_URL": servers.database},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    # The certificates of a control plane that lives for minutes end within a day.
    return [line for line in done.stdout.splitlines() if not line.startswith("NOTE") and "expires in" not in line]


def test_clients_and_controllers_go_on_after_a_restore_and_git_tells_what_came_after_the_backup(
    porch_server: AggregatedReplicas, place: Place, kubectl: Kubectl, tmp_path: Path
) -> None:
    Kubectl(porch_server.kubeconfig, "").apply(deployment(SERVICE, NAMESPACE))
    early = place.new_draft("early")
    kubectl.ok("label", "packagerevision", early, "of=before")
    place.pushed("early", "ws-1")
    type_from_guide("cluster-backup", porch_server, tmp_path)

    kubectl.ok("label", "packagerevision", early, "of=after", "--overwrite")
    newer = kubectl.json("get", "packagerevision", early)
    place.approve(place.new_draft("late"))
    late = kubectl.json("get", "packagerevision", f"{DOWNSTREAM}.late.ws-1")
    place.add_variant(variant())
    made = place.revision(made_by_variant(place))
    place.pushed("bar", made["spec"]["workspaceName"])
    seen = place.porch.request("GET", place.porch.path("packagerevisions")).object["metadata"]

    porch_server.stop()
    said = type_from_guide("cluster-restore", porch_server, tmp_path)
    porch_server.start()

    assert "watches begin anew" in said
    wait_until_back(place, porch_server, late, made)
    assert is_refused(place, after=seen["resourceVersion"]) == 410
    names = {one["metadata"]["name"] for one in kubectl.json("get", "packagerevisions")["items"]}
    assert names >= {early, late["metadata"]["name"], made["metadata"]["name"]}

    # Who read before the loss writes nothing over what is there; who writes without having read does.
    assert kubectl.json("get", "packagerevision", early)["metadata"]["labels"]["of"] == "before"
    newer["metadata"]["labels"]["of"] = "stale"
    refused = kubectl("replace", "-f", "-", stdin=newer)
    assert refused.returncode == 1
    assert "Conflict" in refused.stderr or "has been modified" in refused.stderr, refused.stderr
    applied = {name: newer[name] for name in ("apiVersion", "kind")} | {
        "metadata": {"name": early, "labels": {"of": "now"}}
    }
    kubectl.ok("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=applied)
    again = kubectl.json("get", "packagerevision", early)["metadata"]
    assert int(again["resourceVersion"]) > int(seen["resourceVersion"]) + 999_000_000

    # The controllers know of it without having been started again: one revision of the variant, which is its own again.
    assert made_by_variant(place) == made["metadata"]["name"]
    approve(place, made["metadata"]["name"])
    place.new_upstream(2)
    place.patch_variant({"spec": {"upstream": {"revision": 2}}})
    eventually(lambda: upgraded(place), timeout=PATIENCE)
    eventually(lambda: well(place, porch_server), timeout=PATIENCE)


def wait_until_back(place: Place, servers: AggregatedReplicas, late: Json, made: Json) -> None:
    """Wait until each server has read every repository, and what was made after the backup is there as it was."""

    def back() -> None:
        assert servers.metrics().count('porch_repositories{state="starting"} 0.0') == len(servers.members)
        for one in (late, made):
            answer = place.porch.revision(one["metadata"]["name"])
            assert answer.code == 200, answer.body
            now = answer.object
            assert now["metadata"]["uid"] == one["metadata"]["uid"]
            for field in ("lifecycle", "revision", "workspaceName"):
                assert now["spec"].get(field) == one["spec"].get(field)

    eventually(back, timeout=PATIENCE)


def is_refused(place: Place, *, after: str) -> int:
    """Open a watch where a client was; return the code with which it is refused, in its first event or at once."""
    path = f"{place.porch.path('packagerevisions')}?watch=true&timeoutSeconds=10&resourceVersion={after}"
    answer = place.porch.request("GET", path)
    if answer.code != 200:
        return answer.code
    first, *_ = answer.body.splitlines() or [b"{}"]
    return int(json.loads(first).get("object", {}).get("code", 200))


def approve(place: Place, name: str) -> None:
    """Publish a revision at which the controllers may be at work, each step as often as a client would try it."""

    def is_in(lifecycle: str, subresource: str = "") -> None:
        if place.revision(name)["spec"]["lifecycle"] != lifecycle:
            accepted(place.porch.set_lifecycle(name, lifecycle, subresource))

    eventually(lambda: is_in("Proposed"), timeout=PATIENCE)
    eventually(lambda: is_in("Published", "approval"), timeout=PATIENCE)


def upgraded(place: Place) -> None:
    drafts = [name for name, lifecycle in place.revisions_of("bar").items() if lifecycle == "Draft"]
    assert len(drafts) == 1, place.variant()
    assert "size-2" in place.files(f"{DOWNSTREAM}.bar.{drafts[0]}")["settings.yaml"]


def well(place: Place, servers: AggregatedReplicas) -> None:
    told = complaints(place, servers)
    assert [line for line in told if line != "Nothing is wrong."] == [], told
