"""``packages`` with real kubectl: what is shown of a package, how it is selected, and what refuses to be written.

Source: ``porch-api.md`` 1.2, 1.6 and 1.7.
"""

import json
from typing import Any

import pytest
from eventually import eventually
from kubectl import Kubectl
from manifests import Register, init_task, package_revision
from porch_client import PorchClient
from remotes import Remote, refs

Json = dict[str, Any]
NEW = {"apiVersion": "porch.kpt.dev/v1alpha1", "kind": "PorchPackage", "metadata": {"name": "blueprints.basens"}}
REFUSED = ' is not supported on resources of kind "packages.porch.kpt.dev"'


@pytest.fixture
def blueprints(register: Register, test_blueprints_remote: Remote) -> None:
    register(blueprints=test_blueprints_remote)


@pytest.mark.usefixtures("blueprints")
def test_packages_are_listed_with_upstreams_columns_and_their_latest_revision(kubectl: Kubectl) -> None:
    rows = [line.split() for line in kubectl.ok("get", "packages").splitlines()]

    assert rows[0] == ["NAME", "PACKAGE", "REPOSITORY", "LATEST", "REVISION"]
    assert rows[1:] == [
        ["blueprints.basens", "basens", "blueprints", "4"],
        ["blueprints.bucket", "bucket", "blueprints", "1"],
        ["blueprints.empty", "empty", "blueprints", "1"],
        ["blueprints.redis-bucket", "redis-bucket", "blueprints", "1"],
        ["blueprints.unready", "unready", "blueprints", "1"],
        ["blueprints.update", "update", "blueprints", "2"],
    ]


@pytest.mark.usefixtures("blueprints")
def test_a_package_shows_its_path_its_repository_and_a_usable_version(kubectl: Kubectl) -> None:
    package = kubectl.json("get", "package", "blueprints.basens")
    newest = kubectl.json("get", "packagerevisions", "--field-selector=spec.packageName=basens")["items"]

    assert (package["apiVersion"], package["kind"]) == ("porch.kpt.dev/v1alpha1", "PorchPackage")
    assert package["spec"] == {"packageName": "basens", "repository": "blueprints"}
    assert package["status"] == {"latestRevision": 4}
    metadata = package["metadata"]
    assert (metadata["name"], metadata["namespace"]) == ("blueprints.basens", kubectl.namespace)
    assert int(metadata["resourceVersion"]) == max(int(one["metadata"]["resourceVersion"]) for one in newest)
    assert metadata["creationTimestamp"] == min(one["metadata"]["creationTimestamp"] for one in newest)


@pytest.mark.usefixtures("blueprints")
def test_a_package_follows_its_revisions_and_goes_with_the_last_one(
    kubectl: Kubectl, test_blueprints_remote: Remote
) -> None:
    kubectl.create(package_revision("blueprints", "net/edge/cell", "v1", init_task()))

    made = kubectl.json("get", "package", "blueprints.net.edge.cell")
    again = kubectl.json("get", "package", "blueprints.net.edge.cell")
    kubectl.ok("delete", "packagerevision", "blueprints.net.edge.cell.v1")

    assert made["spec"]["packageName"] == "net/edge/cell"
    assert made["status"] == {}
    assert made == again
    gone = kubectl("get", "package", "blueprints.net.edge.cell")
    assert 'packages.porch.kpt.dev "blueprints.net.edge.cell" not found' in gone.stderr
    # The remote is shared: a namespace that goes before the branch does would leave it to the next test.
    eventually(lambda: has_no_draft(test_blueprints_remote))


def has_no_draft(remote: Remote) -> None:
    assert not [ref for ref in refs(remote.path) if ref.startswith("refs/heads/drafts/net/")]


@pytest.mark.usefixtures("blueprints")
@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("metadata.name=blueprints.update", ["blueprints.update"]),
        ("spec.packageName=bucket", ["blueprints.bucket"]),
        ("spec.repository=blueprints,spec.packageName=empty", ["blueprints.empty"]),
        ("spec.repository=other", []),
    ],
)
def test_packages_are_selected_by_name_path_and_repository(kubectl: Kubectl, selector: str, found: list[str]) -> None:
    listed = kubectl.json("get", "packages", f"--field-selector={selector}")

    assert [item["metadata"]["name"] for item in listed["items"]] == found


@pytest.mark.usefixtures("blueprints")
def test_a_list_of_packages_is_a_porchpackagelist_in_pages_over_all_namespaces(porch: PorchClient) -> None:
    path = "/apis/porch.kpt.dev/v1alpha1/packages?fieldSelector=metadata.namespace=" + porch.namespace
    whole = porch.request("GET", path).object
    names, token, pages = [], "", 0
    while pages == 0 or token:
        page = porch.request("GET", f"{path}&limit=4&continue={token}").object
        names += [item["metadata"]["name"] for item in page["items"]]
        token, pages = page["metadata"].get("continue", ""), pages + 1

    assert (whole["kind"], whole["apiVersion"]) == ("PorchPackageList", "porch.kpt.dev/v1alpha1")
    assert int(whole["metadata"]["resourceVersion"]) > 0
    assert names == [item["metadata"]["name"] for item in whole["items"]]
    assert (len(names), pages) == (6, 2)


@pytest.mark.usefixtures("blueprints")
def test_what_cannot_be_selected_is_named_and_nothing_is_labelled(kubectl: Kubectl, porch: PorchClient) -> None:
    refused = porch.request("GET", porch.path("packages") + "?fieldSelector=spec.lifecycle%3DDraft")

    assert refused.code == 400
    assert refused.message.startswith('"spec.lifecycle" is not a known field selector: only "metadata.name", ')
    assert kubectl.json("get", "packages", "-l", "a=b")["items"] == []
    assert len(kubectl.json("get", "packages", "-l", "a!=b")["items"]) == 6


@pytest.mark.usefixtures("blueprints")
def test_writing_a_package_is_refused_with_what_to_do_instead(porch: PorchClient) -> None:
    path = porch.path("packages", "blueprints.basens")
    answers = {
        "create": porch.request("POST", porch.path("packages"), NEW),
        "update": porch.request("PUT", path, NEW),
        "patch": porch.request("PATCH", path, NEW, content_type="application/merge-patch+json"),
        "delete": porch.request("DELETE", path),
    }

    assert {verb: (answer.code, answer.reason) for verb, answer in answers.items()} == dict.fromkeys(
        answers, (405, "MethodNotAllowed")
    )
    update = "update a PackageRevision resource to update a package as direct package update"
    create = "create or clone a PackageRevision resource to create a package as direct package creation"
    delete = "delete all PackageRevisions resources of a package to delete a package as direct package deletion"
    assert {verb: answer.message.removesuffix(REFUSED) for verb, answer in answers.items()} == {
        "create": create,
        "update": update,
        "patch": update,
        "delete": delete,
    }


def test_packages_stand_in_discovery_and_explain(kubectl: Kubectl) -> None:
    (found,) = [
        resource
        for resource in json.loads(kubectl.ok("get", "--raw", "/apis/porch.kpt.dev/v1alpha1"))["resources"]
        if resource["name"] == "packages"
    ]

    assert (found["kind"], found["singularName"], found["namespaced"]) == ("PorchPackage", "package", True)
    assert found["verbs"] == ["create", "delete", "get", "list", "patch", "update"]
    assert "latestRevision" in kubectl.ok("explain", "packages.status")


@pytest.mark.usefixtures("blueprints")
def test_packages_have_rights_of_their_own(kubectl: Kubectl, porch: PorchClient) -> None:
    role: Json = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "packages"},
        "rules": [{"apiGroups": ["porch.kpt.dev"], "resources": ["packages"], "verbs": ["get", "list"]}],
    }
    kubectl.create(role)
    kubectl.ok("create", "rolebinding", "packages", "--role=packages", "--user=reader")

    assert kubectl("get", "packages", "--as=reader").returncode == 0
    assert "is forbidden" in kubectl("get", "packagerevisions", "--as=reader").stderr
    assert "is forbidden" in kubectl("get", "packages", "--as=stranger").stderr
    assert "is forbidden" in kubectl("delete", "package", "blueprints.basens", "--as=reader").stderr
