"""Selectors through kubectl: lists in one and in all namespaces, of files too, and watches that objects enter and leave.

Source: ``porch-api.md`` 1.8 and 8.1.
"""

from typing import Any

import pytest
from eventually import eventually
from kubectl import Kubectl
from lifecycles import move
from manifests import Register, init_task, package_revision
from open_watch import has_open_watches
from porch_client import PORCH, PorchClient
from porch_process import PorchProcess
from remotes import Remote

Json = dict[str, Any]


@pytest.fixture
def app(kubectl: Kubectl, register: Register, empty_remote: Remote) -> str:
    """One published revision and one draft of a package, in a repository of the test's own."""
    register(repo=empty_remote)
    kubectl.create(package_revision("repo", "net/app", "v1", init_task()))
    move(kubectl, "repo.net.app.v1", "Proposed", "Published")
    edit = {"type": "edit", "edit": {"sourceRef": {"name": "repo.net.app.v1"}}}
    kubectl.create(package_revision("repo", "net/app", "v2", edit))
    return "net/app"


def names(kubectl: Kubectl, resource: str, *selectors: str) -> list[str]:
    items = kubectl.json("get", resource, *selectors)["items"]
    return [item["metadata"]["name"] for item in items]


@pytest.mark.parametrize("resource", ["packagerevisions", "packagerevisionresources"])
@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("spec.revision=0", ["repo.net.app.v2"]),
        ("spec.packageName=app,spec.revision=v1", ["repo.net.app.v1"]),
        ("spec.packageName=net/app,spec.lifecycle=Published", ["repo.net.app.main", "repo.net.app.v1"]),
        ("spec.lifecycle=Draft,spec.lifecycle=Published,spec.workspaceName=v1", ["repo.net.app.v1"]),
        ("metadata.name=repo.net.app.v2", ["repo.net.app.v2"]),
    ],
)
def test_revisions_and_their_files_are_selected_by_the_same_fields(
    kubectl: Kubectl, app: str, resource: str, selector: str, found: list[str]
) -> None:
    assert names(kubectl, resource, f"--field-selector={selector}") == found
    everywhere = f"--field-selector={selector},metadata.namespace={kubectl.namespace}"
    assert names(kubectl, resource, "--all-namespaces", everywhere) == found


def test_labels_select_the_latest_revision_and_its_files(kubectl: Kubectl, app: str) -> None:
    kubectl.ok("label", "packagerevision", "repo.net.app.v2", "team=edge")

    for resource in ("packagerevisions", "packagerevisionresources"):
        assert names(kubectl, resource, "-l", "kpt.dev/latest-revision=true") == ["repo.net.app.v1"]
        assert names(kubectl, resource, "-l", "team in (edge, core)") == ["repo.net.app.v2"]
        assert names(kubectl, resource, "-l", "team=none") == []


def test_labels_of_the_package_select_its_revision(kubectl: Kubectl, app: str) -> None:
    patch = '{"spec":{"packageMetadata":{"labels":{"tier":"edge"}}}}'
    kubectl.ok("patch", "packagerevision", "repo.net.app.v2", "--type=merge", "-p", patch)

    selector = "--field-selector=spec.packageMetadata.labels[tier]"
    assert names(kubectl, "packagerevisions", f"{selector}=edge") == ["repo.net.app.v2"]
    assert names(kubectl, "packagerevisionresources", f"{selector}=edge") == ["repo.net.app.v2"]
    assert names(kubectl, "packagerevisions", f"{selector}=core") == []


def test_a_watch_tells_of_what_enters_and_leaves_its_field_selector(
    kubectl: Kubectl, app: str, porch_server: PorchProcess
) -> None:
    eventually(lambda: has_open_watches(porch_server, 0))
    watched = ["get", "packagerevisions", "-w", "--watch-only", "--output-watch-events"]
    name = "repo.net.app.v2"
    proposals = kubectl.watch(*watched, "--field-selector=spec.lifecycle=Proposed")
    with proposals, kubectl.watch(*watched, "-l", "kpt.dev/latest-revision=true") as latest:
        eventually(lambda: has_open_watches(porch_server, 2))
        move(kubectl, name, "Proposed", "Draft", "Proposed", "Published")

        seen = [line.split()[:2] for line in proposals.wait_for(lambda lines: len(lines) >= 5)[1:]]
        assert seen == [["ADDED", name], ["DELETED", name], ["ADDED", name], ["DELETED", name]]
        moved = [line.split()[:2] for line in latest.wait_for(lambda lines: len(lines) >= 3)[1:]]
        assert sorted(moved) == [["ADDED", name], ["DELETED", "repo.net.app.v1"]]


@pytest.mark.parametrize("resource", ["packagerevisions", "packagerevisionresources"])
def test_what_cannot_be_selected_is_a_bad_request(porch: PorchClient, resource: str) -> None:
    for selector, message in (
        ("spec.unknown%3Dx", '"spec.unknown" is not a known field selector'),
        ("spec.revision%21%3D1", 'unsupported fieldSelector operator "!=" for field "spec.revision"'),
        ("spec.repository%3D", 'unsupported fieldSelector value "" for field "spec.repository" with operator "="'),
        ("spec.lifecycle%3DX", 'unsupported fieldSelector value "X" for field "spec.lifecycle"'),
        ("metadata.namespace%3Dother", f'conflicting namespaces specified: "{porch.namespace}" and "other"'),
    ):
        answer = porch.request("GET", f"{porch.path(resource)}?fieldSelector={selector}")
        assert (answer.code, answer.reason, answer.message) == (400, "BadRequest", message)


@pytest.mark.parametrize("resource", ["packagerevisions", "packagerevisionresources", "packages"])
@pytest.mark.parametrize("name", ["foo", "a..b", "UPPER.case.v1", "repo.app.v1.0.", "%C3%A9"])
def test_a_name_that_nothing_can_have_is_not_found(porch: PorchClient, resource: str, name: str) -> None:
    answer = porch.request("GET", f"{PORCH}/namespaces/{porch.namespace}/{resource}/{name}")

    assert (answer.code, answer.reason) == (404, "NotFound")
