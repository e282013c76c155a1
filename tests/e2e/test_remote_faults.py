"""Remotes that are down, slow, moved or refuse, while something is saved and approved.

The server looks at its remotes by itself only once an hour here, so that what a request meets is what the test set up.
"""

import time
from collections.abc import Iterator

import pytest
from drafts import Revision, accepted, draft, proposal, published, refused
from eventually import eventually
from git_server import Faults
from kubectl import Kubectl
from manifests import Register, credentials, repository
from porch_client import PorchClient
from porch_process import PorchProcess
from remotes import Remote, commit_files, files_at, is_ancestor, refs

GIT_TIMEOUT = 10
"""Seconds after which the server gives a remote up, which on a busy machine starts one process after the other."""


@pytest.fixture(scope="module")
def porch_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PorchProcess]:
    """A server that syncs on its own once an hour and gives a remote up after a few seconds."""
    server = PorchProcess(
        tmp_path_factory.mktemp("porch") / "data",
        environment={"PORCH_SYNC_INTERVAL": "3600", "PORCH_GIT_TIMEOUT": str(GIT_TIMEOUT)},
    )
    server.start()
    yield server
    server.stop()


@pytest.fixture
def deployments(register: Register, empty_remote: Remote) -> Remote:
    """The remote of a repository named deployments."""
    register(deployments=empty_remote)
    return empty_remote


# --- down --------------------------------------------------------------------------------------


def fail(faults: Faults, how: str) -> None:
    """Make the Git server misbehave in the named way."""
    if how == "unavailable":
        faults.status = 503
    else:
        setattr(faults, how, True)


@pytest.mark.parametrize("how", ["refuse", "unavailable", "hang"])
def test_an_approval_with_the_remote_down_is_refused_and_can_be_repeated(
    how: str, porch: PorchClient, deployments: Remote, faults: Faults
) -> None:
    app = proposal(porch, "deployments", deployments)
    before = app.snapshot()
    fail(faults, how)
    started = time.monotonic()

    answer = porch.approve(app.name)

    refused(answer, 503, "ServiceUnavailable", 'repository "deployments"', "try again")
    assert time.monotonic() - started < GIT_TIMEOUT * 5
    assert app.look() == before
    faults.refuse, faults.status, faults.hang = False, 0, False
    approved = accepted(porch.approve(app.name))
    assert approved["spec"]["revision"] == 1
    assert "refs/tags/app/v1" in refs(deployments.path)


@pytest.mark.parametrize("how", ["refuse", "unavailable"])
def test_a_draft_is_saved_with_the_remote_down_and_reaches_it_later(
    how: str, porch: PorchClient, deployments: Remote, faults: Faults
) -> None:
    app = draft(porch, "deployments", deployments)
    app.wait_until_pushed()
    before = refs(deployments.path)
    fail(faults, how)

    accepted(porch.save(app.name, {"offline.txt": "saved while the remote was down\n"}))

    assert app.files["offline.txt"] == "saved while the remote was down\n"
    assert refs(deployments.path) == before
    faults.refuse, faults.status = False, 0
    eventually(app.wait_until_pushed, timeout=60)


# --- moved -------------------------------------------------------------------------------------


def test_an_approval_merges_on_top_of_what_others_pushed_to_main(
    porch: PorchClient, deployments: Remote, faults: Faults
) -> None:
    app = proposal(porch, "deployments", deployments)
    app.wait_until_pushed()
    commit_files(deployments.path, {"before.txt": "pushed before the approval\n"}, "Foreign")

    def push_meanwhile() -> None:
        commit_files(deployments.path, {"during.txt": "pushed during the approval\n"}, "Foreign")

    faults.before_push.append(push_meanwhile)

    accepted(porch.approve(app.name))

    found = files_at(deployments.path, "refs/heads/main", "")
    assert found["before.txt"] == "pushed before the approval\n"
    assert found["during.txt"] == "pushed during the approval\n"
    assert {f"app/{path}": text for path, text in app.files.items()}.items() <= found.items()
    tag = refs(deployments.path)["refs/tags/app/v1"]
    assert tag == refs(deployments.path)["refs/heads/main"]


def test_an_approval_of_a_proposal_that_somebody_changed_is_a_conflict(
    porch: PorchClient, deployments: Remote, faults: Faults
) -> None:
    """What the approver saw is not what would be published."""
    app = proposal(porch, "deployments", deployments)
    before = app.snapshot()

    def change_meanwhile() -> None:
        commit_files(deployments.path, {"app/sneaked-in.txt": "x\n"}, "Foreign", branch="proposed/app/v1")

    faults.before_push.append(change_meanwhile)

    answer = porch.approve(app.name)

    refused(answer, 409, "Conflict", app.name)
    assert app.lifecycle == "Proposed"
    found = refs(deployments.path)
    assert "refs/tags/app/v1" not in found
    assert found["refs/heads/main"] == before.refs["refs/heads/main"]
    assert found[app.proposed_ref] != before.refs[app.proposed_ref], "the foreign commit is kept"

    def shown() -> None:
        assert "sneaked-in.txt" in app.files

    eventually(shown)
    accepted(porch.approve(app.name))
    assert "sneaked-in.txt" in files_at(deployments.path, "refs/tags/app/v1", "app")


def test_a_save_over_a_draft_that_somebody_changed_loses_neither(
    porch: PorchClient, deployments: Remote, kubectl: Kubectl
) -> None:
    """What the API acknowledged is the content, and the foreign commit stays in the branch's history."""
    app = draft(porch, "deployments", deployments)
    app.wait_until_pushed()
    foreign = commit_files(deployments.path, {"app/foreign.txt": "x\n"}, "Foreign", branch="drafts/app/v1")

    saved = porch.save(app.name, {"ours.txt": "y\n"})

    def settled() -> str:
        head = refs(deployments.path)[app.draft_ref]
        assert files_at(deployments.path, head, "app") == app.files
        return head

    head = eventually(settled)
    assert is_ancestor(deployments.path, foreign, head)
    assert saved.code == 409 or "ours.txt" in app.files


def test_a_lost_answer_to_a_push_is_found_out(porch: PorchClient, deployments: Remote, faults: Faults) -> None:
    """The remote did what was asked and the connection broke: nothing may stay half-done."""
    app = proposal(porch, "deployments", deployments)
    app.wait_until_pushed()
    faults.drop_after_push = True

    answer = porch.approve(app.name)

    faults.drop_after_push = False
    if answer.code != 200:
        refused(answer, 503, "ServiceUnavailable", "try again")
        again = porch.approve(app.name)
        assert again.code in {200, 409, 422}, again.body

    def agreed() -> None:
        assert app.lifecycle == "Published"
        assert "refs/tags/app/v1" in refs(deployments.path)
        assert "refs/tags/app/v2" not in refs(deployments.path)
        assert porch.revision(app.name).object["spec"]["revision"] == 1

    eventually(agreed)


def test_a_push_whose_answer_is_lost_with_the_remote_is_said_to_be_unknown_and_found_out_when_it_is_back(
    porch: PorchClient, deployments: Remote, faults: Faults
) -> None:
    app = proposal(porch, "deployments", deployments)
    app.wait_until_pushed()
    faults.drop_after_push = True
    faults.before_push.append(lambda: setattr(faults, "refuse", True))

    answer = porch.approve(app.name)

    refused(answer, 503, "ServiceUnavailable", "the next sync shows whether it arrived")
    assert "refs/tags/app/v1" in refs(deployments.path)
    assert app.lifecycle == "Proposed"
    faults.refuse = faults.drop_after_push = False

    def found_out() -> None:
        assert app.lifecycle == "Published"

    eventually(found_out)


# --- refusing ----------------------------------------------------------------------------------


def test_wrong_credentials_are_named_and_nothing_is_published(
    kubectl: Kubectl, porch: PorchClient, empty_remote: Remote
) -> None:
    kubectl.apply(credentials(), repository("deployments", empty_remote.url))
    kubectl.ok("wait", "--for=condition=Ready", "repository/deployments", "--timeout=60s")
    app = proposal(porch, "deployments", empty_remote)
    before = app.snapshot()
    kubectl.apply(credentials(password="wrong"))

    answer = porch.approve(app.name)

    assert answer.code in {403, 503}, answer.body
    refused(answer, answer.code, answer.reason, 'repository "deployments"', "credentials")
    assert "wrong" not in answer.message
    assert app.look() == before
    kubectl.apply(credentials())
    accepted(porch.approve(app.name))


def test_a_missing_secret_keeps_a_repository_unready_and_is_named(kubectl: Kubectl, empty_remote: Remote) -> None:
    kubectl.apply(repository("deployments", empty_remote.url, login="no-such-secret"))

    def explained() -> None:
        status = kubectl.json("get", "repository", "deployments").get("status") or {}
        ready = next(c for c in status.get("conditions", [{"type": "", "status": ""}]) if c["type"] in {"Ready", ""})
        assert ready["status"] == "False"
        assert ready["reason"] == "Error"
        assert "no-such-secret" in ready["message"]

    eventually(explained)


def test_a_hook_that_refuses_a_push_is_quoted(porch: PorchClient, deployments: Remote) -> None:
    app = proposal(porch, "deployments", deployments)
    before = app.snapshot()
    hook = deployments.path / "hooks" / "update"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text('#!/bin/sh\ncase "$1" in refs/heads/main) echo no releases today >&2; exit 1;; esac\n')
    hook.chmod(0o755)

    answer = porch.approve(app.name)

    refused(answer, 403, "Forbidden", "refused", "branch main", "no releases today")
    assert app.look() == before
    hook.unlink()
    accepted(porch.approve(app.name))


def test_a_deletion_with_the_remote_down_is_refused_and_can_be_repeated(
    porch: PorchClient, deployments: Remote, faults: Faults
) -> None:
    app = published(porch, "deployments", deployments)
    accepted(porch.set_lifecycle(app.name, "DeletionProposed"))
    before = app.snapshot()
    faults.refuse = True

    refused(porch.delete_revision(app.name), 503, "ServiceUnavailable", "try again")

    assert app.look() == before
    faults.refuse = False
    accepted(porch.delete_revision(app.name))
    assert "refs/tags/app/v1" not in refs(deployments.path)


# --- drafts pushed before the answer -----------------------------------------------------------


@pytest.fixture(scope="module")
def strict_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PorchProcess]:
    """A server with ``--push-drafts sync``."""
    server = PorchProcess(tmp_path_factory.mktemp("strict") / "data", arguments=["--push-drafts", "sync"])
    server.start()
    yield server
    server.stop()


def test_in_sync_mode_a_draft_is_in_the_remote_before_the_answer_or_not_saved(
    strict_server: PorchProcess, empty_remote: Remote, faults: Faults
) -> None:
    kubectl = Kubectl(strict_server.kubeconfig)
    kubectl.apply(credentials(), repository("deployments", empty_remote.url))
    kubectl.ok("wait", "--for=condition=Ready", "repository/deployments", "--timeout=60s")
    porch = strict_server.client()
    name = accepted(porch.create_revision("deployments", "app"))["metadata"]["name"]
    app = Revision(porch, empty_remote, name, "app")
    assert files_at(empty_remote.path, app.draft_ref, "app") == app.files
    before = app.look()
    faults.refuse = True

    refused(porch.save(name, {"lost.txt": "x\n"}), 503, "ServiceUnavailable", "try again")

    assert app.look() == before
    faults.refuse = False
    accepted(porch.save(name, {"kept.txt": "x\n"}))
    assert files_at(empty_remote.path, app.draft_ref, "app") == app.files
    porch.close()
