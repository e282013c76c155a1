"""Git tells everything about packages: reading it again changes nothing, and without the database it brings them back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from drafts import accepted
from eventually import eventually
from kubectl import Kubectl
from manifests import Object, clone_git_task, clone_task, credentials, edit_task, init_task, repository
from porch_client import CONFIG, PorchClient
from porch_process import PorchProcess
from remotes import Remote, refs

GATED = """apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: gated
  labels:
    tier: front
  annotations:
    note: kept
info:
  description: with a gate
  readinessGates:
  - conditionType: example.com/checked
status:
  conditions:
  - type: example.com/checked
    status: "False"
    reason: NotYet
    message: nobody looked
"""
FAILING = """apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: failing
pipeline:
  mutators:
  - image: ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.1
    configMap: {}
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PorchProcess]:
    server = PorchProcess(tmp_path / "data", environment={"PORCH_SYNC_INTERVAL": "2"})
    server.start()
    yield server
    server.stop()


def register(server: PorchProcess, blueprints: Remote, remote: Remote) -> None:
    kubectl = Kubectl(server.kubeconfig)
    kubectl.apply(
        credentials(),
        repository("blueprints", blueprints.url, login=""),
        repository("deployments", remote.url, deployment=True),
    )
    kubectl.ok("wait", "--for=condition=Ready", "repositories", "--all", "--timeout=60s")


def upgrade_task(local: str) -> Object:
    """Build a task that moves a clone of basens v1 to v2."""
    upstreams = {"oldUpstreamRef": "blueprints.basens.v1", "newUpstreamRef": "blueprints.basens.v2"}
    named = {**upstreams, "localPackageRevisionRef": local}
    return {"type": "upgrade", "upgrade": {field: {"name": revision} for field, revision in named.items()}}


def fill(porch: PorchClient, remote: Remote) -> None:
    """Make revisions of every kind and lifecycle, and wait until Git has them."""
    create = porch.create_revision

    def name(package: str, workspace: str = "v1") -> str:
        return f"deployments.{package}.{workspace}"

    def publish(package: str, workspace: str = "v1") -> None:
        accepted(porch.propose(name(package, workspace)))
        accepted(porch.approve(name(package, workspace)))

    metadata = {"labels": {"team": "core"}, "annotations": {"why": "test"}}
    accepted(create("deployments", "made", tasks=[init_task()], packageMetadata=metadata))
    publish("made")
    for workspace in ("second", "third"):
        accepted(create("deployments", "made", workspace, tasks=[edit_task(name("made"))]))
        publish("made", workspace)
    accepted(porch.set_lifecycle(name("made", "second"), "DeletionProposed"))
    accepted(create("deployments", "cloned", tasks=[clone_task("blueprints.basens.v1")]))
    publish("cloned")
    accepted(create("deployments", "cloned", "upgraded", tasks=[upgrade_task(name("cloned"))]))
    accepted(create("deployments", "moved-on", tasks=[clone_task("blueprints.basens.v1")]))
    moving = porch.revision(name("moved-on")).object
    moving["spec"]["tasks"].append(upgrade_task(name("moved-on")))
    accepted(porch.request("PUT", porch.path("packagerevisions", name("moved-on")), moving))
    accepted(create("deployments", "from-git", tasks=[clone_git_task(remote.url, "made/v1", "made")]))
    accepted(create("deployments", "a/nested/path", tasks=[init_task()]))
    accepted(porch.propose(name("a.nested.path")))
    accepted(create("deployments", "gated", tasks=[init_task()]))
    accepted(porch.save(name("gated"), {"Kptfile": GATED}))
    accepted(create("deployments", "failing", tasks=[init_task()]))
    annotated = porch.revision(name("failing")).object
    annotated["metadata"].setdefault("annotations", {})["porch.kpt.dev/push-on-render-failure"] = "true"
    accepted(porch.request("PUT", porch.path("packagerevisions", name("failing")), annotated))
    assert porch.save(name("failing"), {"Kptfile": FAILING}).code == 422
    accepted(create("deployments", "gone", tasks=[init_task()]))
    publish("gone")
    accepted(porch.set_lifecycle(name("gone"), "DeletionProposed"))
    accepted(porch.delete_revision(name("gone")))

    def pushed() -> None:
        assert {ref for ref in refs(remote.path) if "/tags/" not in ref} == {
            "refs/heads/main",
            "refs/heads/deletionProposed/made/v2",
            "refs/heads/drafts/cloned/upgraded",
            "refs/heads/drafts/from-git/v1",
            "refs/heads/drafts/moved-on/v1",
            "refs/heads/drafts/gated/v1",
            "refs/heads/drafts/failing/v1",
            "refs/heads/proposed/a/nested/path/v1",
        }
        commits = set(refs(remote.path).values())
        drafts = [one for one in porch.revisions() if one["spec"]["lifecycle"] in {"Draft", "Proposed"}]
        assert {one["status"]["selfLock"]["git"]["commit"] for one in drafts} <= commits

    eventually(pushed)


def files(porch: PorchClient) -> dict[str, Object]:
    return {
        item["metadata"]["name"]: porch.resources(item["metadata"]["name"]).object["spec"] for item in porch.revisions()
    }


def sync_everything(porch: PorchClient, name: str) -> None:
    """Have a repository read in full, and wait until that is done."""
    path = f"{CONFIG}/namespaces/{porch.namespace}/repositories/{name}"
    patch = {"metadata": {"annotations": {"porch.kpt.dev/sync": "now"}}}
    accepted(porch.request("PATCH", path, patch, content_type="application/merge-patch+json"))

    def done() -> None:
        found = porch.request("GET", path).object
        assert "porch.kpt.dev/sync" not in (found["metadata"].get("annotations") or {})
        assert found["status"]["conditions"][0]["status"] == "True"

    eventually(done)


def test_reading_everything_again_changes_no_object(
    server: PorchProcess, test_blueprints_remote: Remote, empty_remote: Remote
) -> None:
    register(server, test_blueprints_remote, empty_remote)
    porch = server.client()
    fill(porch, empty_remote)
    before = porch.revisions()

    sync_everything(porch, "blueprints")
    sync_everything(porch, "deployments")

    assert porch.revisions() == before
    porch.close()


WHAT_GIT_CANNOT_TELL = ("resourceVersion", "creationTimestamp", "managedFields")
"""Of ObjectMeta; also labels, annotations, owners and finalizers of users."""


def essence(item: Object) -> Object:
    metadata = {key: value for key, value in item["metadata"].items() if key not in WHAT_GIT_CANNOT_TELL}
    metadata.pop("annotations", None)
    return {**item, "metadata": metadata}


def test_without_the_database_every_revision_is_back_field_by_field(
    server: PorchProcess, test_blueprints_remote: Remote, empty_remote: Remote
) -> None:
    register(server, test_blueprints_remote, empty_remote)
    porch = server.client()
    fill(porch, empty_remote)
    before, contents = {item["metadata"]["name"]: essence(item) for item in porch.revisions()}, files(porch)
    porch.close()
    server.stop()
    for file in server.data.glob("porch.db*"):
        file.unlink()

    server.start()
    register(server, test_blueprints_remote, empty_remote)

    porch = server.client()

    def back() -> None:
        after = {item["metadata"]["name"]: essence(item) for item in porch.revisions()}
        assert after.keys() == before.keys()
        for name, item in after.items():
            assert item == before[name], name

    eventually(back)
    assert files(porch) == contents
    porch.close()
