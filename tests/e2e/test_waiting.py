"""``kubectl wait`` on revisions and Repositories: fields, conditions, creation and deletion; and what status tools read.

Source: issue 6 part 1; ``decisions.md`` 14.
"""

import subprocess
from typing import Any

import pytest
from kubectl import Kubectl, needs_kubectl
from lifecycles import move
from manifests import Register, init_task, package_revision
from remotes import Remote

Json = dict[str, Any]
NAME = "repo.app.v1"
REVISION = f"packagerevision/{NAME}"
GATE = "PackagePipelinePassed"


@pytest.fixture
def draft(kubectl: Kubectl, register: Register, empty_remote: Remote) -> Json:
    register(repo=empty_remote)
    return kubectl.create(package_revision("repo", "app", "v1", init_task()))


def waiting(kubectl: Kubectl, *arguments: str) -> "subprocess.Popen[str]":
    """Begin to wait in another process, as a script would."""
    command = kubectl.command("wait", "--timeout=60s", *arguments)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_who_waits_for_a_lifecycle_is_told_when_it_is_reached(kubectl: Kubectl, draft: Json) -> None:
    with waiting(kubectl, "--for=jsonpath={.spec.lifecycle}=Published", REVISION) as process:
        move(kubectl, NAME, "Proposed")
        assert process.poll() is None
        move(kubectl, NAME, "Published")
        printed, _ = process.communicate(timeout=90)

    assert (process.returncode, printed.strip()) == (0, f"packagerevision.porch.kpt.dev/{NAME} condition met")


def test_who_waits_for_the_pipeline_is_told_that_it_passed(kubectl: Kubectl, draft: Json) -> None:
    assert "condition met" in kubectl.ok("wait", f"--for=condition={GATE}", "--timeout=60s", REVISION)
    never = kubectl("wait", f"--for=condition={GATE}=False", "--timeout=1s", REVISION)
    assert "timed out waiting" in never.stderr


def test_who_waits_for_a_condition_of_the_package_is_told_when_somebody_sets_it(kubectl: Kubectl, draft: Json) -> None:
    with waiting(kubectl, "--for=condition=Reviewed", REVISION) as process:
        now = kubectl.json("get", "packagerevision", NAME)
        reviewed = {"type": "Reviewed", "status": "True", "reason": "LooksGood", "message": "checked by hand"}
        now["status"]["conditions"] = [*now["status"]["conditions"], reviewed]
        kubectl.replace(now)
        process.communicate(timeout=90)

    assert process.returncode == 0


def test_who_waits_for_a_deletion_is_told_when_the_last_finalizer_goes(kubectl: Kubectl, draft: Json) -> None:
    hold = '{"metadata":{"finalizers":["example.com/hold"]}}'
    kubectl.ok("patch", "packagerevision", NAME, "--type=merge", "-p", hold)
    with waiting(kubectl, "--for=delete", REVISION) as process:
        kubectl.ok("delete", "--wait=false", "packagerevision", NAME)
        assert process.poll() is None
        kubectl.ok("patch", "packagerevision", NAME, "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        process.communicate(timeout=90)

    assert process.returncode == 0


def test_who_waits_for_a_revision_to_come_is_told_when_it_is_made(
    kubectl: Kubectl, register: Register, empty_remote: Remote
) -> None:
    needs_kubectl(31, "waiting for a creation")
    register(repo=empty_remote)
    with waiting(kubectl, "--for=create", REVISION) as process:
        kubectl.create(package_revision("repo", "app", "v1", init_task()))
        process.communicate(timeout=90)

    assert process.returncode == 0


def test_who_waits_for_all_revisions_of_a_selector_waits_for_each(kubectl: Kubectl, draft: Json) -> None:
    kubectl.create(package_revision("repo", "other", "v1", init_task()))
    kubectl.ok("label", "packagerevisions", "--all", "team=edge")

    printed = kubectl.ok("wait", f"--for=condition={GATE}", "--timeout=60s", "packagerevisions", "-l", "team=edge")

    assert printed.count("condition met") == 2


def test_a_repository_is_waited_for_by_its_ready_condition(kubectl: Kubectl, draft: Json) -> None:
    assert "condition met" in kubectl.ok("wait", "--for=condition=Ready", "--timeout=60s", "repository/repo")


def test_status_tools_find_only_what_they_read_right(kubectl: Kubectl, draft: Json) -> None:
    """kstatus takes Ready, Reconciling and Stalled for its own, and a generation for one that is observed."""
    move(kubectl, NAME, "Proposed", "Published", "DeletionProposed")
    revision = kubectl.json("get", "packagerevision", NAME)

    conditions = revision["status"]["conditions"]
    assert conditions[0]["type"] == GATE
    assert not {"Ready", "Reconciling", "Stalled"} & {condition["type"] for condition in conditions}
    assert all(set(condition) <= {"type", "status", "reason", "message"} for condition in conditions)
    assert "generation" not in revision["metadata"]
    assert "observedGeneration" not in revision["status"]
    repository = kubectl.json("get", "repository", "repo")
    assert repository["status"]["observedGeneration"] == repository["metadata"]["generation"]
    assert [condition["type"] for condition in repository["status"]["conditions"]] == ["Ready"]
