"""Custom resources as kubectl sees them: rows 37, 55 and 84 of ``kube-api.md`` 7.2."""

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from custom_kinds import definition, version, widget
from kubectl import Kubectl, needs_kubectl
from manifests import Register
from porch_client import PorchClient
from remotes import Remote

Json = dict[str, Any]
COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
    {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"},
    {"name": "Wanted", "type": "integer", "jsonPath": ".spec.replicas", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


def of_group(group: str) -> Json:
    """Return a definition that no other test has."""
    return definition(version(additionalPrinterColumns=COLUMNS), group=group)


def object_of(group: str, name: str, **spec: Any) -> Json:
    return {**widget(name, **spec), "apiVersion": f"{group}/v1"}


@pytest.fixture
def group(kubectl: Kubectl, namespace: str) -> Iterator[str]:
    """A group with widgets, established; gone after the test, if the test has not removed it."""
    name = f"{namespace}.example.com"
    kubectl.create(of_group(name))
    kubectl.ok("wait", "--for=condition=Established", f"crd/widgets.{name}", "--timeout=60s")
    yield name
    kubectl("delete", "crd", f"widgets.{name}", "--ignore-not-found")


def test_row_37_columns_of_a_definition_are_printed_and_some_only_when_wide(kubectl: Kubectl, group: str) -> None:
    kubectl.create(object_of(group, "one", size=3, replicas=2))

    narrow = kubectl.ok("get", f"widgets.{group}").splitlines()
    wide = kubectl.ok("get", f"widgets.{group}", "-o", "wide").splitlines()

    assert narrow[0].split() == ["NAME", "SIZE", "COLOR", "READY", "AGE"]
    assert narrow[1].split()[:3] == ["one", "3", "red"]
    assert wide[0].split() == ["NAME", "SIZE", "COLOR", "READY", "WANTED", "AGE"]
    assert wide[1].split()[:4] == ["one", "3", "red", "2"]
    # A value that is missing is null in the Table (compared with a real kube-apiserver), which kubectl leaves empty.
    at = wide[0].index("READY")
    assert wide[1][at : at + len("READY")].strip() == ""


def test_row_55_wait_sees_conditions_values_creation_and_deletion(
    kubectl: Kubectl, porch: PorchClient, register: Register, empty_remote: Remote, namespace: str
) -> None:
    needs_kubectl(31, "wait --for=create")
    group = f"{namespace}.example.com"
    register(packages=empty_remote)
    revision = porch.create_revision("packages", "app").object["metadata"]["name"]
    porch.propose(revision)

    kubectl.create(of_group(group))
    kubectl.ok("wait", "--for=condition=Established", f"crd/widgets.{group}", "--timeout=60s")
    create = waiting(kubectl, "--for=create", f"widgets.{group}/late")
    kubectl.create(object_of(group, "late"))
    ended(create)
    delete = waiting(kubectl, "--for=delete", f"widgets.{group}/late")
    kubectl.ok("delete", f"widgets.{group}", "late")
    ended(delete)
    publish = waiting(kubectl, "--for=jsonpath={.spec.lifecycle}=Published", f"packagerevision/{revision}")
    assert porch.approve(revision).code == 200
    ended(publish)
    kubectl.ok("delete", "crd", f"widgets.{group}")


def waiting(kubectl: Kubectl, *arguments: str) -> "subprocess.Popen[str]":
    command = kubectl.command("wait", "--timeout=60s", *arguments)
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def ended(process: "subprocess.Popen[str]") -> None:
    printed, _ = process.communicate(timeout=90)
    assert process.returncode == 0, printed


def test_row_84_a_deleted_definition_takes_its_objects_along_and_can_come_back(kubectl: Kubectl, group: str) -> None:
    kubectl.create(object_of(group, "one"))
    kubectl.create(object_of(group, "two"))

    kubectl.ok("delete", "crd", f"widgets.{group}", "--timeout=60s")
    listed = kubectl("get", f"widgets.{group}")
    resources = kubectl.ok("api-resources", f"--api-group={group}", "-o", "name")
    kubectl.create(of_group(group))
    kubectl.ok("wait", "--for=condition=Established", f"crd/widgets.{group}", "--timeout=60s")
    again = kubectl.json("get", f"widgets.{group}")
    kubectl.create(object_of(group, "one"))

    assert listed.returncode == 1
    assert resources == ""
    assert again["items"] == []
