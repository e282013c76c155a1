"""Core kinds with real kubectl: rows 13 to 18, 22 and 23 of ``kube-api.md`` 7.2."""

import base64
import json
import re
from pathlib import Path

import pytest
from kubectl import Kubectl, needs_kubectl
from manifests import namespace_object
from porch_client import PorchClient

OF_CORE_KINDS = "the protobuf of core kinds is kube-apiserver's business there"


@pytest.mark.standalone(OF_CORE_KINDS)
def test_row_13_a_config_map_arrives_as_protobuf(kubectl: Kubectl) -> None:
    out = kubectl.ok("create", "configmap", "a", "--from-literal=k=v", "-v=8")

    assert kubectl.json("get", "configmap", "a")["data"] == {"k": "v"}
    assert "configmap/a created" in out


@pytest.mark.standalone(OF_CORE_KINDS)
def test_large_config_maps_arrive_as_protobuf_too(kubectl: Kubectl, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("all work and no play\n" * 10_000)
    (tmp_path / "bytes").write_bytes(bytes(range(256)) * 400)
    kubectl.ok("create", "configmap", "large", f"--from-file={tmp_path}")

    stored = kubectl.json("get", "configmap", "large")
    assert stored["data"] == {"text": (tmp_path / "text").read_text()}
    assert base64.b64decode(stored["binaryData"]["bytes"]) == (tmp_path / "bytes").read_bytes()


@pytest.mark.standalone(OF_CORE_KINDS)
def test_row_14_secrets_namespaces_accounts_and_tokens_are_created(kubectl: Kubectl) -> None:
    kubectl.ok("create", "secret", "generic", "s", "--from-literal=password=hunter2")
    kubectl.ok("create", "namespace", f"{kubectl.namespace}-more")
    kubectl.ok("create", "serviceaccount", "robot")
    token = kubectl.ok("create", "token", "robot", "--duration=10m").strip()

    assert kubectl.json("get", "secret", "s")["data"] == {"password": base64.b64encode(b"hunter2").decode()}
    assert kubectl.ok("get", "namespace", f"{kubectl.namespace}-more", "-o=jsonpath={.status.phase}") == "Active"
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["sub"] == f"system:serviceaccount:{kubectl.namespace}:robot"
    kubectl.ok("delete", "namespace", f"{kubectl.namespace}-more")


def test_row_15_a_duplicate_exists_already(kubectl: Kubectl) -> None:
    kubectl.ok("create", "configmap", "a")
    again = kubectl("create", "configmap", "a")

    assert again.returncode == 1
    assert again.stderr == 'error: failed to create configmap: configmaps "a" already exists\n'


def test_row_16_generated_names_differ_in_five_characters(kubectl: Kubectl) -> None:
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "gen-"}}
    names = [kubectl.create(wanted)["metadata"]["name"] for _ in range(2)]

    assert len(set(names)) == 2
    assert all(re.fullmatch("gen-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names)


def test_row_17_nothing_is_created_in_a_namespace_that_is_missing(kubectl: Kubectl) -> None:
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "nowhere"}}
    refused = kubectl.within("nowhere")("create", "-f", "-", stdin=wanted)

    assert refused.returncode == 1
    assert refused.stderr == (
        'Error from server (NotFound): error when creating "STDIN": namespaces "nowhere" not found\n'
    )


def test_row_18_the_namespace_of_a_body_is_that_of_the_request(kubectl: Kubectl, porch: PorchClient) -> None:
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "other"}}
    warned = kubectl("create", "-f", "-", stdin=wanted)
    refused = porch.request("POST", f"/api/v1/namespaces/{kubectl.namespace}/configmaps", wanted)

    assert warned.returncode == 1
    assert "the namespace from the provided object" in warned.stderr, "kubectl itself sees it first"
    assert (refused.code, refused.reason) == (400, "BadRequest")
    assert refused.message == ("the namespace of the provided object does not match the namespace sent on the request")


def test_row_22_replace_with_force_makes_another_object(kubectl: Kubectl) -> None:
    first = kubectl.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "1"}})
    wanted = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "2"}}
    kubectl.ok("replace", "--force", "-f", "-", stdin=wanted)

    second = kubectl.json("get", "configmap", "a")
    assert second["data"] == {"k": "2"}
    assert second["metadata"]["uid"] != first["metadata"]["uid"]


@pytest.mark.standalone("of what a server in a cluster serves: tests/e2e/revision_checks")
def test_row_23_a_put_for_another_object_of_the_name_is_a_conflict(kubectl: Kubectl, porch: PorchClient) -> None:
    stored = kubectl.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}})
    uid = stored["metadata"]["uid"]
    stored["metadata"]["uid"] = "00000000-0000-0000-0000-000000000000"
    refused = porch.request("PUT", f"/api/v1/namespaces/{kubectl.namespace}/configmaps/a", stored)

    assert (refused.code, refused.reason) == (409, "Conflict")
    assert refused.message == (
        'Operation cannot be fulfilled on configmaps "a": Precondition failed: UID in precondition: '
        f"00000000-0000-0000-0000-000000000000, UID in object meta: {uid}"
    )


def test_core_kinds_are_printed_as_kubernetes_prints_them(kubectl: Kubectl) -> None:
    kubectl.ok("create", "configmap", "a", "--from-literal=k=v")
    kubectl.ok("create", "secret", "generic", "s", "--from-literal=k=v")
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "leader"},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15},
    }
    kubectl.create(lease)

    def header(*arguments: str) -> list[str]:
        return kubectl.ok("get", *arguments).splitlines()[0].split()

    assert header("configmaps") == ["NAME", "DATA", "AGE"]
    assert header("secrets") == ["NAME", "TYPE", "DATA", "AGE"]
    assert header("serviceaccounts") == ["NAME", "SECRETS", "AGE"]
    assert header("leases") == ["NAME", "HOLDER", "AGE"]
    assert header("namespaces") == ["NAME", "STATUS", "AGE"]
    assert kubectl.ok("get", "lease", "leader", "--no-headers").split()[:2] == ["leader", "me"]
    assert kubectl.ok("get", "serviceaccounts", "--no-headers").split()[:2] == ["default", "0"]


def test_a_namespace_has_its_default_account_and_gets_it_back(kubectl: Kubectl) -> None:
    needs_kubectl(31, "wait --for=create")
    uid = kubectl.ok("get", "serviceaccount", "default", "-o=jsonpath={.metadata.uid}")
    kubectl.ok("delete", "serviceaccount", "default")
    kubectl.ok("wait", "--for=create", "serviceaccount/default", "--timeout=60s")

    assert kubectl.ok("get", "serviceaccount", "default", "-o=jsonpath={.metadata.uid}") != uid


def test_an_event_is_one_object_in_both_groups(kubectl: Kubectl, porch: PorchClient) -> None:
    event = {
        "metadata": {"name": "e", "namespace": kubectl.namespace},
        "eventTime": "2026-01-02T03:04:05.000006Z",
        "reportingController": "example.com/syncer",
        "reportingInstance": "syncer-1",
        "action": "Sync",
        "reason": "Synced",
        "type": "Normal",
        "note": "all is well",
        "regarding": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": kubectl.namespace},
    }
    answer = porch.request("POST", f"/apis/events.k8s.io/v1/namespaces/{kubectl.namespace}/events", event)

    assert answer.code == 201, answer.body
    lines = kubectl.ok("get", "events", "-o", "wide").splitlines()
    assert re.split(r" {2,}", lines[0].strip()) == [
        "LAST SEEN",
        "TYPE",
        "REASON",
        "OBJECT",
        "SUBOBJECT",
        "SOURCE",
        "MESSAGE",
        "FIRST SEEN",
        "COUNT",
        "NAME",
    ]
    assert "example.com/syncer, syncer-1" in lines[1]
    assert "all is well" in kubectl.ok("events", "--for", "configmap/a")
    core = kubectl.json("get", "events", "e")
    assert (core["message"], core["involvedObject"]["name"]) == ("all is well", "a")
    namespace = namespace_object(kubectl.namespace)["metadata"]["name"]
    assert kubectl.json("get", "events.v1.events.k8s.io", "e")["regarding"]["namespace"] == namespace
