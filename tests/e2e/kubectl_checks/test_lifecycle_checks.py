"""Replacing objects, their status and the lifecycle of packages: rows 20, 21, 75 and 76 of ``kube-api.md`` 7.2."""

import subprocess
from pathlib import Path

from kubectl import Kubectl, needs_kubectl
from manifests import Object, Register, init_task, package_revision
from porch_client import PorchClient
from remotes import Remote

WIDGETS = Path(__file__).resolve().parents[2] / "clients" / "widgets.yaml"
WIDGET_PATH = "/apis/clients.porch.test/v1/namespaces/{}/widgets/{}"
DRAFT = "deployments.assets.v1"


def widget(kubectl: Kubectl) -> Object:
    """Make a custom resource of a kind that the server learns of here."""
    kubectl.ok("apply", "-f", str(WIDGETS))
    kubectl.ok("wait", "--for=condition=Established", "crd/widgets.clients.porch.test")
    metadata = {"name": "pump", "namespace": kubectl.namespace}
    return kubectl.create(
        {"apiVersion": "clients.porch.test/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": 1}}
    )


def lifecycle(kubectl: Kubectl, wanted: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    patch = f'{{"spec":{{"lifecycle":"{wanted}"}}}}'
    return kubectl("patch", "packagerevision", DRAFT, "--type=merge", "-p", patch, *arguments)


def test_row_20_what_was_read_can_be_written_back_once(kubectl: Kubectl) -> None:
    kubectl.ok("create", "configmap", "x", "--from-literal=color=red")
    text = kubectl.ok("get", "configmap", "x", "-o", "yaml").replace("color: red", "color: blue")

    replaced = kubectl.ok("replace", "-f", "-", stdin=text)
    stale = kubectl("replace", "-f", "-", stdin=text)

    assert replaced == "configmap/x replaced\n"
    assert kubectl.ok("get", "configmap", "x", "-o", "jsonpath={.data.color}") == "blue"
    assert stale.returncode == 1
    assert stale.stderr == (
        'Error from server (Conflict): error when replacing "STDIN": Operation cannot be fulfilled on configmaps "x": '
        "the object has been modified; please apply your changes to the latest version and try again\n"
    )


def test_row_21_a_custom_resource_is_not_replaced_without_its_resource_version(
    kubectl: Kubectl, porch: PorchClient
) -> None:
    wanted = widget(kubectl)
    del wanted["metadata"]["resourceVersion"]

    refused = porch.request("PUT", WIDGET_PATH.format(kubectl.namespace, "pump"), wanted)

    assert (refused.code, refused.reason) == (422, "Invalid")
    assert refused.message == (
        'widgets.clients.porch.test "pump" is invalid: '
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    )
    assert [cause["field"] for cause in refused.object["details"]["causes"]] == ["metadata.resourceVersion"]


def test_row_75_status_changes_only_through_its_subresource_and_nothing_else_does(kubectl: Kubectl) -> None:
    created = widget(kubectl)
    both = '{"spec":{"size":7},"status":{"ready":true}}'

    kubectl.ok("patch", "widget", "pump", "--type=merge", "--subresource=status", "-p", both)
    reported = kubectl.json("get", "widget", "pump")
    kubectl.ok("patch", "widget", "pump", "--type=merge", "-p", '{"spec":{"size":8},"status":{"ready":false}}')
    changed = kubectl.json("get", "widget", "pump")

    assert (reported["spec"], reported["status"]) == (created["spec"], {"ready": True})
    assert reported["metadata"]["generation"] == created["metadata"]["generation"]
    assert (changed["spec"], changed["status"]) == ({"size": 8}, {"ready": True})
    assert changed["metadata"]["generation"] == created["metadata"]["generation"] + 1


def test_row_76_a_package_is_proposed_by_a_patch_and_published_by_whoever_may_approve(
    kubectl: Kubectl, register: Register, empty_remote: Remote
) -> None:
    needs_kubectl(32, "a subresource of any name")
    register(deployments=empty_remote)
    kubectl.create(package_revision("deployments", "assets", "v1", init_task()))
    allow_patching_without_approval(kubectl, "bob")

    direct = lifecycle(kubectl, "Published")
    proposed = lifecycle(kubectl, "Proposed", "--as=bob")
    unauthorized = lifecycle(kubectl, "Published", "--as=bob", "--subresource=approval")
    approved = lifecycle(kubectl, "Published", "--subresource=approval")

    assert direct.returncode == 1
    assert "is invalid" in direct.stderr
    assert "spec.lifecycle" in direct.stderr
    assert proposed.returncode == 0, proposed.stderr
    assert unauthorized.returncode == 1
    assert unauthorized.stderr == (
        f'Error from server (Forbidden): packagerevisions.porch.kpt.dev "{DRAFT}" is forbidden: User "bob" cannot '
        f'patch resource "packagerevisions/approval" in API group "porch.kpt.dev" in the namespace "{kubectl.namespace}"\n'
    )
    assert approved.returncode == 0, approved.stderr
    assert kubectl.ok("get", "packagerevision", DRAFT, "-o", "jsonpath={.spec.lifecycle}") == "Published"


def allow_patching_without_approval(kubectl: Kubectl, user: str) -> None:
    """Let a user see everything of package revisions, and change all but their approval."""
    rules = [
        {"apiGroups": ["porch.kpt.dev"], "resources": ["packagerevisions"], "verbs": ["get", "patch"]},
        # kubectl reads a subresource before it patches it.
        {"apiGroups": ["porch.kpt.dev"], "resources": ["packagerevisions/approval"], "verbs": ["get"]},
    ]
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "editor"}}
    kubectl.create({**kind, "rules": rules})
    kubectl.ok("create", "rolebinding", "editors", "--role=editor", f"--user={user}")
