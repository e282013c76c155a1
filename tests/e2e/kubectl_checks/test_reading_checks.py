"""Reading with kubectl: rows 26 to 28 and 31 to 36 of ``kube-api.md`` 7.2."""

import json

import pytest
from kubectl import Kubectl, Object
from manifests import Register
from remotes import Remote

PACKAGE_COLUMNS = ["NAME", "PACKAGE", "WORKSPACENAME", "REVISION", "LATEST", "LIFECYCLE", "REPOSITORY"]


def config_map(name: str, **labels: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}}


def names(kubectl: Kubectl, *arguments: str, resource: str = "configmaps") -> list[str]:
    return [line.partition("/")[2] for line in kubectl.ok("get", resource, "-o", "name", *arguments).splitlines()]


@pytest.mark.standalone("a cluster has a ConfigMap of its own everywhere: tests/e2e/revision_checks")
def test_row_26_a_list_as_json_has_kinds_and_a_resource_version(kubectl: Kubectl) -> None:
    kubectl.create(config_map("one"))
    kubectl.create(config_map("two"))

    printed = kubectl.json("get", "configmaps")
    answered = json.loads(kubectl.ok("get", "--raw", f"/api/v1/namespaces/{kubectl.namespace}/configmaps"))

    assert [(item["apiVersion"], item["kind"]) for item in printed["items"]] == [("v1", "ConfigMap")] * 2
    versions = [int(item["metadata"]["resourceVersion"]) for item in printed["items"]]
    assert (answered["apiVersion"], answered["kind"]) == ("v1", "ConfigMapList")
    assert int(answered["metadata"]["resourceVersion"]) >= max(versions) > 0


def test_row_27_what_is_not_found_may_be_ignored(kubectl: Kubectl) -> None:
    kubectl.create(config_map("here"))

    missed = kubectl("get", "configmaps", "here", "absent", "-o", "name")
    ignored = kubectl.ok("get", "configmaps", "here", "absent", "-o", "name", "--ignore-not-found")

    assert missed.returncode == 1
    assert missed.stderr == 'Error from server (NotFound): configmaps "absent" not found\n'
    assert missed.stdout == ignored == "configmap/here\n"


def test_row_28_all_namespaces_are_read_and_an_absent_one_is_empty(kubectl: Kubectl) -> None:
    kubectl.create(config_map("somewhere"))

    everywhere = [line.split() for line in kubectl.ok("get", "configmaps", "--all-namespaces").splitlines()]
    nowhere = kubectl.within("none")("get", "configmaps")

    assert everywhere[0] == ["NAMESPACE", "NAME", "DATA", "AGE"]
    assert [kubectl.namespace, "somewhere"] in [row[:2] for row in everywhere]
    assert (nowhere.returncode, nowhere.stdout) == (0, "")
    assert nowhere.stderr == "No resources found in none namespace.\n"


def test_row_31_label_selectors_choose_by_set_inequality_and_number(kubectl: Kubectl) -> None:
    for name, labels in {
        "both": {"a": "x", "z": "1", "n": "6"},
        "first": {"a": "x", "n": "5"},
        "second": {"a": "y", "n": "50"},
        "third": {"a": "w", "n": "many"},
    }.items():
        kubectl.create(config_map(name, **labels))

    assert names(kubectl, "-l", "a in (x,y),!z") == ["first", "second"]
    assert names(kubectl, "-l", "a!=x,a") == ["second", "third"]
    assert names(kubectl, "-l", "n>5") == ["both", "second"]
    assert names(kubectl, "-l", "n<6") == ["first"]


def test_row_32_a_selector_that_cannot_be_read_is_a_bad_request(kubectl: Kubectl) -> None:
    refused = kubectl("get", "configmaps", "-l", "a in x")

    assert refused.returncode == 1
    assert refused.stderr.startswith("Error from server (BadRequest): ")
    assert "unable to parse requirement: found 'x'" in refused.stderr


def test_row_33_field_selectors_choose_by_name_and_lifecycle_and_refuse_what_they_do_not_know(
    kubectl: Kubectl, register: Register, test_blueprints_remote: Remote
) -> None:
    register(blueprints=test_blueprints_remote)
    kubectl.create(config_map("x"))
    kubectl.create(config_map("y"))

    assert names(kubectl, "--field-selector=metadata.name=x") == ["x"]
    published = names(kubectl, "--field-selector=spec.lifecycle=Published", resource="packagerevisions")
    assert "blueprints.basens.v1" in published
    assert names(kubectl, "--field-selector=spec.lifecycle=Draft", resource="packagerevisions") == []
    for resource in ("configmaps", "packagerevisions"):
        refused = kubectl("get", resource, "--field-selector=spec.unknown=1")
        assert refused.returncode == 1
        assert "(BadRequest)" in refused.stderr
        assert "spec.unknown" in refused.stderr


@pytest.mark.parametrize("arguments", [(), ("-o", "wide")], ids=["default", "wide"])
def test_row_34_package_revisions_have_the_columns_of_upstream(
    kubectl: Kubectl, register: Register, test_blueprints_remote: Remote, arguments: tuple[str, ...]
) -> None:
    register(blueprints=test_blueprints_remote)

    rows = [line.split() for line in kubectl.ok("get", "packagerevisions", *arguments).splitlines()]

    assert rows[0] == PACKAGE_COLUMNS
    assert ["blueprints.basens.v1", "basens", "v1", "1", "false", "Published", "blueprints"] in rows


def test_row_35_package_revisions_are_sorted_by_revision(
    kubectl: Kubectl, register: Register, test_blueprints_remote: Remote
) -> None:
    register(blueprints=test_blueprints_remote)

    rows = [line.split() for line in kubectl.ok("get", "packagerevisions", "--sort-by=.spec.revision").splitlines()]

    revisions = [int(row[3]) for row in rows[1:]]
    assert rows[0] == PACKAGE_COLUMNS
    assert revisions == sorted(revisions)
    assert (revisions[0], revisions[-1]) == (-1, 4)


@pytest.mark.standalone("a cluster has a ConfigMap of its own everywhere: tests/e2e/revision_checks")
def test_row_36_labels_are_shown_as_one_column_or_as_several_and_headers_can_be_left_out(kubectl: Kubectl) -> None:
    kubectl.create(config_map("one", app="web", tier="front"))
    kubectl.create(config_map("two"))

    shown = [line.split() for line in kubectl.ok("get", "configmaps", "--show-labels").splitlines()]
    column = [line.split() for line in kubectl.ok("get", "configmaps", "-L", "app").splitlines()]
    bare = [line.split() for line in kubectl.ok("get", "configmaps", "--no-headers").splitlines()]

    assert shown[0] == ["NAME", "DATA", "AGE", "LABELS"]
    assert [(row[0], row[3]) for row in shown[1:]] == [("one", "app=web,tier=front"), ("two", "<none>")]
    assert column[0] == ["NAME", "DATA", "AGE", "APP"]
    assert [(row[0], *row[3:]) for row in column[1:]] == [("one", "web"), ("two",)]
    assert [row[0] for row in bare] == ["one", "two"]
