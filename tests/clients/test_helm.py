"""Helm, unmodified, with the chart of ``tests/data/chart``: a release's life on a server that has no Pods.

``make test-clients`` builds Helm. Its releases are Secrets, its ``crds`` folder makes a kind that is used at once.
"""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from client_programs import built
from kubectl import Kubectl

CHART = Path(__file__).resolve().parents[1] / "data" / "chart"
SECONDS = 120
Helm = Callable[..., "subprocess.CompletedProcess[str]"]
Json = Any


@pytest.fixture(params=["helm", "helm-4"])
def helm(request: pytest.FixtureRequest, client_kubectl: Kubectl, tmp_path: Path) -> Helm:
    """Run Helm in a namespace of the test's own."""
    program = built(request.param)
    environment = {"HOME": str(tmp_path)}

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        where = ["--kubeconfig", str(client_kubectl.kubeconfig), "--namespace", client_kubectl.namespace]
        command = [str(program), *where, *arguments]
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)

    return run


def ok(done: "subprocess.CompletedProcess[str]") -> str:
    assert done.returncode == 0, f"{done.args}\n{done.stdout}{done.stderr}"
    return done.stdout


def release(helm: Helm) -> Json:
    """Return what ``helm list`` says of the only release."""
    (found,) = json.loads(ok(helm("list", "--output", "json")))
    return found


def test_a_release_is_installed_upgraded_rolled_back_and_uninstalled(helm: Helm, client_kubectl: Kubectl) -> None:
    notes = ok(helm("install", "campus", str(CHART), "--wait", "--timeout", "60s"))
    assert "campus has 2 floors, in a namespace that is there." in notes
    check_installed(client_kubectl)
    assert (release(helm)["revision"], release(helm)["status"]) == ("1", "deployed")

    ok(helm("upgrade", "campus", str(CHART), "--wait", "--set", "color=blue,floors=3,annex=false"))
    assert objects(client_kubectl) == ["building.charts.porch.test/campus", "configmap/campus", "secret/campus"]
    assert state(client_kubectl) == ("blue", "2", 3, ["white", "blue"])

    ok(helm("rollback", "campus", "1", "--wait"))
    assert "configmap/campus-annex" in objects(client_kubectl)
    assert state(client_kubectl) == ("red", "1", 2, ["white", "red"])

    history = json.loads(ok(helm("history", "campus", "--output", "json")))
    assert [(each["revision"], each["status"]) for each in history] == [
        (1, "superseded"),
        (2, "superseded"),
        (3, "deployed"),
    ]
    ok(helm("uninstall", "campus", "--wait"))
    assert objects(client_kubectl) == []
    assert client_kubectl.ok("get", "secrets", "-l", "owner=helm", "-o", "name") == ""
    assert client_kubectl.ok("get", "crd/buildings.charts.porch.test", "-o", "name")


def check_installed(kubectl: Kubectl) -> None:
    assert objects(kubectl) == [
        "building.charts.porch.test/campus",
        "configmap/campus",
        "configmap/campus-annex",
        "secret/campus",
    ]
    assert state(kubectl) == ("red", "1", 2, ["white", "red"])
    assert kubectl.ok("get", "secret", "campus", "-o", "go-template={{.data.password | base64decode}}") == "pass-red"


def objects(kubectl: Kubectl) -> list[str]:
    """Name what the chart made, without Helm's own records."""
    printed = kubectl.ok("get", "buildings,configmaps,secrets", "-o", "name").split()
    return [name for name in printed if "sh.helm.release" not in name and "kube-root-ca" not in name]


def state(kubectl: Kubectl) -> tuple[str, str, int, list[str]]:
    data = kubectl.json("get", "configmap", "campus")["data"]
    building = kubectl.json("get", "building", "campus")["spec"]
    return data["color"], data["revision"], building["floors"], [room["color"] for room in building["rooms"]]


def test_a_name_is_taken_once_and_unknown_releases_are_not_found(helm: Helm) -> None:
    ok(helm("install", "campus", str(CHART)))

    again = helm("install", "campus", str(CHART))
    absent = helm("status", "nowhere")

    assert again.returncode == 1
    assert "use a name that is still in use" in again.stderr
    assert absent.returncode == 1
    assert "release: not found" in absent.stderr


def test_what_the_server_refuses_fails_the_upgrade_and_the_release_can_be_mended(
    helm: Helm, client_kubectl: Kubectl
) -> None:
    ok(helm("install", "campus", str(CHART)))

    refused = helm("upgrade", "campus", str(CHART), "--set", "floors=1000")

    assert refused.returncode == 1
    assert "spec.floors" in refused.stderr
    assert "should be less than or equal to 100" in refused.stderr
    assert release(helm)["status"] == "failed"
    ok(helm("upgrade", "campus", str(CHART), "--set", "floors=9"))
    assert (release(helm)["status"], state(client_kubectl)[2]) == ("deployed", 9)


def test_what_others_changed_meanwhile_is_put_right_by_an_upgrade(helm: Helm, client_kubectl: Kubectl) -> None:
    ok(helm("install", "campus", str(CHART)))
    client_kubectl.ok("patch", "configmap", "campus", "--type=merge", "-p", '{"data":{"other":"kept","color":"pink"}}')

    ok(helm("upgrade", "campus", str(CHART), *force_conflicts(helm), "--set", "color=green"))

    data = client_kubectl.json("get", "configmap", "campus")["data"]
    assert (data["color"], data["other"]) == ("green", "kept")


def force_conflicts(helm: Helm) -> list[str]:
    """Return the option that Helm 4, which applies on the server, takes fields from others with."""
    return ["--force-conflicts"] if "--force-conflicts" in ok(helm("upgrade", "--help")) else []
