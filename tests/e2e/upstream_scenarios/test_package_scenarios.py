"""Upstream's API scenarios of whole packages: namespaces, identity, re-registration, metadata in the Kptfile (2 to 8)."""

from typing import Any

import pytest
import yaml
from manifests import namespace_object
from porch_client import PORCH
from porch_process import PorchProcess
from remotes import Remote
from upstream_client import Refused, UpstreamClient, name_of, names, revision_of

Object = dict[str, Any]


def clone_of(name: str) -> Object:
    return {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": name}}}}


def test_scenario_02_one_remote_is_registered_in_three_namespaces_under_different_names(
    suite: UpstreamClient, porch_server: PorchProcess, test_blueprints_remote: Remote
) -> None:
    clients = [suite]
    for number in (2, 3):
        name = f"{suite.namespace}-{number}"
        suite.http.request("POST", "/api/v1/namespaces", namespace_object(name))
        clients.append(suite.another(name))
    repositories = ["test-blueprints", "test-2-blueprints", "test-3-blueprints"]
    for client, repository in zip(clients, repositories, strict=True):
        client.register(repository, test_blueprints_remote)

    found = [client.revisions() for client in clients]

    assert [len(revisions) for revisions in found] == [10 + 6] * 3
    for client, repository, revisions in zip(clients, repositories, found, strict=True):
        assert all(name.startswith(f"{repository}.") for name in names(revisions))
        assert {one["metadata"]["namespace"] for one in revisions} == {client.namespace}
        assert {one["spec"]["repository"] for one in revisions} == {repository}
    everywhere = suite.http.request("GET", f"{PORCH}/packagerevisionresources").object["items"]
    assert len([one for one in everywhere if one["spec"]["repository"] in repositories]) == 3 * (10 + 6)
    for client in clients[1:]:
        client.http.request("DELETE", f"/api/v1/namespaces/{client.namespace}")
        client.close()


def test_scenario_03_no_two_revisions_have_the_same_uid(
    suite: UpstreamClient, porch_test: Remote, test_blueprints_remote: Remote
) -> None:
    suite.register("test-blueprints", test_blueprints_remote)
    suite.register("git", porch_test)
    suite.make_published("git", "basens", "v1")

    uids = [one["metadata"]["uid"] for one in suite.revisions()]

    assert len(uids) == 10 + 6 + 2
    assert len(set(uids)) == len(uids)


@pytest.mark.parametrize("named", [False, True], ids=["without a name", "with a name of the client's"])
def test_scenario_04_nothing_is_left_of_a_clone_that_failed(
    suite: UpstreamClient, porch_test: Remote, test_blueprints_remote: Remote, named: bool
) -> None:
    suite.register("git", porch_test)
    git = {"repo": test_blueprints_remote.url, "ref": "v1", "directory": "nonexistent"}
    task = {"type": "clone", "clone": {"upstreamRef": {"type": "git", "git": git}}}
    wanted = revision_of("git", "test-create-rollback", "v1", task, suite.namespace)
    composed = "git.test-create-rollback.v1"
    if named:
        wanted["metadata"]["name"] = composed

    with pytest.raises(Refused, match="cannot find package nonexistent@v1"):
        suite.create(wanted)

    assert not suite.exists(composed)
    assert suite.revisions() == []
    assert name_of(suite.make("git", "test-create-rollback", "v1")) == composed


def test_scenario_05_an_approved_package_is_found_again_when_its_repository_is_registered_again(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    repository, package = "test-meta-after-approve", "test-package"
    suite.register(repository, porch_test)
    approved = suite.make_published(repository, package, "v1")
    wanted = {name_of(approved): 1, f"{repository}.{package}.main": -1}
    assert _revisions(suite) == wanted
    before = {one["metadata"]["name"]: one["metadata"]["uid"] for one in suite.revisions()}

    suite.unregister(repository)
    suite.register(repository, porch_test)

    assert _revisions(suite) == wanted
    again = suite.revisions()
    assert {one["spec"]["workspaceName"] for one in again} == {"v1", "main"}
    assert {one["metadata"]["name"]: one["metadata"]["uid"] for one in again} == before
    assert [task["type"] for task in suite.revision(name_of(approved))["spec"]["tasks"]] == ["init"]


def test_scenario_06_a_deleted_revision_stays_deleted_when_its_repository_is_registered_again(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    repository, package = "test-meta-after-delete", "test-package"
    suite.register(repository, porch_test)
    approved = name_of(suite.make_published(repository, package, "v1"))

    suite.delete_published(approved)
    assert _revisions(suite) == {f"{repository}.{package}.main": -1}
    suite.unregister(repository)
    suite.register(repository, porch_test)

    assert _revisions(suite) == {f"{repository}.{package}.main": -1}


def _revisions(suite: UpstreamClient) -> dict[str, int]:
    return {name_of(one): one["spec"].get("revision", 0) for one in suite.revisions()}


def test_scenario_07_metadata_of_a_package_is_the_same_in_the_revision_and_in_its_kptfile(
    suite: UpstreamClient, porch_test: Remote, test_blueprints_remote: Remote
) -> None:
    suite.register("test-blueprints", test_blueprints_remote)
    suite.register("git", porch_test)
    wanted = revision_of("git", "new-package", "v1", clone_of("test-blueprints.basens.v4"), suite.namespace)
    wanted["spec"]["packageMetadata"] = {"labels": {"clone": "label"}, "annotations": {"clone-note": "annotation"}}

    created = suite.create(wanted)
    labels = {"test-label": "test-value", "clone": "label"}
    _check_metadata(suite, name_of(created), labels, {"test-annotation": "true", "clone-note": "annotation"})

    files = suite.resources(name_of(created))
    kptfile = yaml.safe_load(files["spec"]["resources"]["Kptfile"])
    kptfile["metadata"]["labels"]["in-the-kptfile"] = "edited"
    files["spec"]["resources"]["Kptfile"] = yaml.safe_dump(kptfile, sort_keys=False)
    suite.update(files)
    labels["in-the-kptfile"] = "edited"
    _check_metadata(suite, name_of(created), labels, {"test-annotation": "true", "clone-note": "annotation"})

    revision = suite.revision(name_of(created))
    revision["spec"]["packageMetadata"]["labels"] = {"replaced": "label"}
    suite.update(revision)
    _check_metadata(suite, name_of(created), {"replaced": "label"}, {"test-annotation": "true"})


def _check_metadata(suite: UpstreamClient, name: str, labels: Object, annotations: Object) -> None:
    """Check that labels are these, and that annotations are there beside those that porch adds."""
    kptfile = yaml.safe_load(suite.resources(name)["spec"]["resources"]["Kptfile"])
    for shown in (suite.revision(name)["spec"]["packageMetadata"], kptfile["metadata"]):
        assert shown["labels"] == labels
        assert annotations.items() <= shown["annotations"].items()


def test_scenario_08_revisions_are_found_by_the_labels_of_their_packages(
    suite: UpstreamClient, test_blueprints_remote: Remote
) -> None:
    suite.register("test-blueprints", test_blueprints_remote)

    found = suite.revisions(fields="spec.packageMetadata.labels[test-label]=test-value")

    assert sorted(names(found)) == ["test-blueprints.basens.main", "test-blueprints.basens.v4"]
    assert suite.revisions(fields="spec.packageMetadata.labels[test-label]=other") == []
    assert suite.revisions(fields="spec.packageMetadata.labels[unknown]=test-value") == []
