"""What others do to the remote with plain git shows up as watch events within the sync interval."""

import shutil
from pathlib import Path

import pytest
import remotes
from drafts import accepted, draft, proposal, published
from eventually import eventually
from git_server import Faults, GitServer
from kubectl import Kubectl
from manifests import Register, credentials, init_task, repository
from porch_client import PorchClient
from porch_process import PorchProcess
from remotes import Remote, commit_files, git, refs

KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: theirs\ninfo:\n  description: pushed with git\n"


@pytest.fixture
def deployments(register: Register, empty_remote: Remote) -> Remote:
    """The remote of a repository named deployments."""
    register(deployments=empty_remote)
    return empty_remote


def test_drafts_tags_and_branches_that_others_push_move_and_delete_are_watch_events(
    kubectl: Kubectl, deployments: Remote
) -> None:
    path = deployments.path
    with kubectl.watch("get", "packagerevisions", "-w", "--output-watch-events") as window:

        def saw(kind: str, name: str) -> None:
            window.wait_for(lambda lines: any(line.split()[:2] == [kind, name] for line in lines))

        commit_files(path, {"theirs/Kptfile": KPTFILE}, "Theirs", branch="drafts/theirs/v1")
        saw("ADDED", "deployments.theirs.v1")
        commit_files(path, {"theirs/new.txt": "x\n"}, "Theirs again", branch="drafts/theirs/v1")
        saw("MODIFIED", "deployments.theirs.v1")
        eventually(lambda: _has_file(kubectl, "deployments.theirs.v1", "new.txt"))
        git("update-ref", "-d", "refs/heads/drafts/theirs/v1", cwd=path)
        saw("DELETED", "deployments.theirs.v1")
        commit_files(path, {"released/Kptfile": KPTFILE}, "Released", tag="released/v1")
        saw("ADDED", "deployments.released.v1")
        saw("ADDED", "deployments.released.main")
        commit_files(path, {"released/Kptfile": KPTFILE + "  site: moved\n"}, "Moved", tag="released/v1")
        saw("MODIFIED", "deployments.released.v1")
        git("update-ref", "-d", "refs/tags/released/v1", cwd=path)
        saw("DELETED", "deployments.released.v1")


def _has_file(kubectl: Kubectl, name: str, file: str) -> None:
    assert file in kubectl.json("get", "packagerevisionresources", name)["spec"]["resources"]


def test_a_remote_that_is_deleted_and_made_anew_is_followed(
    kubectl: Kubectl, porch: PorchClient, deployments: Remote
) -> None:
    """Old drafts that had been pushed go; upstream's server keeps them."""
    pushed = draft(porch, "deployments", deployments, "pushed")
    pushed.wait_until_pushed()
    published(porch, "deployments", deployments, "released")
    gone = deployments.path.rename(deployments.path.with_suffix(".gone"))  # git may still write there
    shutil.rmtree(gone, ignore_errors=True)
    remotes.empty_remote(deployments.path)

    def followed() -> None:
        assert porch.revisions() == []

    eventually(followed)
    again = proposal(porch, "deployments", deployments, "released")
    accepted(porch.approve(again.name))
    assert set(refs(deployments.path)) == {"refs/heads/main", "refs/tags/released/v1"}


def test_everything_that_reached_git_is_rebuilt_without_the_database(
    tmp_path: Path, git_http: GitServer, empty_remote: Remote
) -> None:
    """Drafts, proposals, approvals and their tasks come back once the repository is registered again."""
    server = PorchProcess(tmp_path / "data")
    server.start()
    try:
        before = _fill(server, empty_remote)
        server.stop()
        for file in server.data.glob("porch.db*"):
            file.unlink()
        server.start()
        _register(server, empty_remote)
        porch = server.client()
        assert _essence(porch) == before
        porch.close()
    finally:
        server.stop()


def _register(server: PorchProcess, remote: Remote) -> None:
    kubectl = Kubectl(server.kubeconfig)
    kubectl.apply(credentials(), repository("deployments", remote.url))
    kubectl.ok("wait", "--for=condition=Ready", "repository/deployments", "--timeout=60s")


def _fill(server: PorchProcess, remote: Remote) -> object:
    _register(server, remote)
    porch = server.client()
    draft(porch, "deployments", remote, "drafted").wait_until_pushed()
    proposal(porch, "deployments", remote, "proposed").wait_until_pushed()
    first = published(porch, "deployments", remote, "released")
    edit = {"type": "edit", "edit": {"sourceRef": {"name": first.name}}}
    second = accepted(porch.create_revision("deployments", "released", "second", tasks=[edit]))["metadata"]["name"]
    accepted(porch.propose(second))
    accepted(porch.approve(second))
    accepted(porch.set_lifecycle(first.name, "DeletionProposed"))
    eventually(lambda: _has(remote, "refs/heads/deletionProposed/released/v1"))
    found = _essence(porch)
    porch.close()
    return found


def _has(remote: Remote, ref: str) -> None:
    assert ref in refs(remote.path)


def _essence(porch: PorchClient) -> object:
    """Return what Git must be able to tell about every revision, files included."""
    kept = ("packageName", "workspaceName", "revision", "lifecycle", "tasks")
    return {
        item["metadata"]["name"]: (
            item["metadata"]["uid"],
            item["metadata"].get("labels"),
            {field: item["spec"].get(field) for field in kept},
            item["status"].get("publishedBy"),
            porch.resources(item["metadata"]["name"]).object["spec"]["resources"],
        )
        for item in porch.revisions()
    }


def test_a_draft_that_never_reached_the_remote_is_kept_and_pushed(
    kubectl: Kubectl, porch: PorchClient, deployments: Remote, faults: Faults
) -> None:
    """Its branch is missing in the remote, and was never seen there: that is no deletion."""
    faults.refuse = True
    body = accepted(porch.create_revision("deployments", "offline", tasks=[init_task()]))
    name = body["metadata"]["name"]
    faults.refuse = False

    def pushed() -> None:
        assert "refs/heads/drafts/offline/v1" in refs(deployments.path)

    eventually(pushed, timeout=60)
    assert porch.revision(name).code == 200
