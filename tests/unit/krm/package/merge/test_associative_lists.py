"""Which lists are associative: the table of ``kpt.md`` 3.7, CRDs of the package, schema comments."""

from typing import Any

import pytest

from krm.package.comments import Comment
from krm.package.merge.associative_lists import ListKeys, ListRule, inline_schemas
from krm.package.merge.document_merge import merge_documents
from krm.package.merge.field_merge import merge
from krm.package.yaml_reader import read_document

SET = ()
POD = "spec.template.spec."
WORKLOADS = ("Deployment", "DaemonSet", "ReplicaSet", "StatefulSet")


def rule_at(api_version: str, kind: str, path: str, lists: ListKeys | None = None) -> tuple[str, ...] | None:
    """Walk the schema of a kind; ``[]`` in a path enters a list."""
    lists = lists or ListKeys()
    schema = lists.of_object({"apiVersion": api_version, "kind": kind}) or {}
    for step in path.replace("[]", ".[]").split("."):
        schema = lists.of_items(schema) if step == "[]" else lists.of_field(schema, step)
    rule = lists.rule(schema, ())
    return None if rule is None else rule.keys


@pytest.mark.parametrize(
    ("api_version", "kind", "path", "keys"),
    [
        *[("apps/v1", kind, POD + "containers", ("name",)) for kind in WORKLOADS],
        *[("apps/v1", kind, POD + "containers[].ports", ("containerPort", "protocol")) for kind in WORKLOADS],
        *[("apps/v1", kind, "status.conditions", ("type",)) for kind in WORKLOADS],
        ("v1", "Pod", "spec.containers[].env", ("name",)),
        ("v1", "Pod", "spec.containers[].volumeDevices", ("devicePath",)),
        ("v1", "Pod", "spec.containers[].volumeMounts", ("mountPath",)),
        ("v1", "Pod", "spec.containers[].command", None),
        ("v1", "Pod", "spec.containers[].envFrom", None),
        ("v1", "Pod", "spec.initContainers[].ports", ("containerPort", "protocol")),
        ("v1", "Pod", "spec.ephemeralContainers[].env", ("name",)),
        ("v1", "Pod", "spec.ephemeralContainers[].ports", None),
        ("v1", "Pod", "spec.imagePullSecrets", ("name",)),
        ("v1", "Pod", "spec.volumes", ("name",)),
        ("v1", "Pod", "spec.hostAliases", ("ip",)),
        ("v1", "Pod", "spec.topologySpreadConstraints", ("topologyKey", "whenUnsatisfiable")),
        ("v1", "Pod", "spec.tolerations", None),
        ("v1", "Pod", "status.podIPs", ("ip",)),
        ("v1", "Pod", "status.conditions", ("type",)),
        ("v1", "PodTemplate", "template.spec.containers", ("name",)),
        ("v1", "ReplicationController", POD + "containers", ("name",)),
        ("batch/v1", "Job", POD + "containers", ("name",)),
        ("batch/v1", "Job", "status.conditions", ("type",)),
        ("batch/v1", "CronJob", "spec.jobTemplate." + POD + "containers", ("name",)),
        ("batch/v1beta1", "CronJob", "spec.jobTemplate." + POD + "containers[].env", ("name",)),
        ("v1", "Service", "spec.ports", ("port", "protocol")),
        ("v1", "Service", "status.conditions", ("type",)),
        ("v1", "ServiceAccount", "secrets", ("name",)),
        ("v1", "ServiceAccount", "imagePullSecrets", None),
        ("v1", "Node", "spec.podCIDRs", SET),
        ("v1", "Node", "spec.taints", None),
        ("v1", "Node", "status.addresses", ("type",)),
        ("v1", "Namespace", "status.conditions", ("type",)),
        ("v1", "PersistentVolumeClaim", "status.conditions", ("type",)),
        ("v1", "ComponentStatus", "conditions", ("type",)),
        ("policy/v1", "PodDisruptionBudget", "status.conditions", ("type",)),
        ("apiregistration.k8s.io/v1", "APIService", "status.conditions", ("type",)),
        ("storage.k8s.io/v1", "CSINode", "spec.drivers", ("name",)),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "webhooks", ("name",)),
        ("admissionregistration.k8s.io/v1beta1", "MutatingWebhookConfiguration", "webhooks", ("name",)),
        ("v1", "ConfigMap", "metadata.finalizers", SET),
        ("rbac.authorization.k8s.io/v1", "Role", "metadata.ownerReferences", ("uid",)),
        ("rbac.authorization.k8s.io/v1", "Role", "rules", None),
        ("networking.k8s.io/v1", "NetworkPolicy", "spec.podSelector.matchExpressions", None),
        ("kustomize.config.k8s.io/v1beta1", "Kustomization", "configMapGenerator", ("name",)),
        ("kustomize.config.k8s.io/v1", "Kustomization", "secretGenerator", ("name",)),
        ("kustomize.config.k8s.io/v1beta1", "Kustomization", "resources", None),
        ("example.com/v1", "Deployment", POD + "containers", None),
        ("example.com/v1", "Thing", "metadata.finalizers", None),
        ("apps/v2", "Deployment", POD + "containers", None),
    ],
)
def test_lists_of_kubernetes_own_kinds(api_version: str, kind: str, path: str, keys: tuple[str, ...] | None) -> None:
    assert rule_at(api_version, kind, path) == keys


def crd(schema: Any, *, beta: bool = False) -> dict[str, Any]:
    spec: dict[str, Any] = {"group": "test.group", "names": {"kind": "Store"}}
    if beta:
        spec |= {"version": "v1", "validation": {"openAPIV3Schema": schema}}
    else:
        spec["versions"] = [{"name": "v1", "schema": {"openAPIV3Schema": schema}}, {"name": "v2"}]
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}


def schema_of(**lists: Any) -> dict[str, Any]:
    return {"properties": {"spec": {"type": "object", "properties": lists}}}


MAP = {"type": "array", "x-kubernetes-list-type": "map"}
SCHEMA = schema_of(
    one={**MAP, "x-kubernetes-list-map-keys": ["id"]},
    two={**MAP, "x-kubernetes-list-map-keys": ["a", "b"]},
    patch={"type": "array", "x-kubernetes-patch-merge-key": "id", "x-kubernetes-patch-strategy": "merge"},
    plain={"type": "array"},
    atomic={"type": "array", "x-kubernetes-list-type": "atomic", "x-kubernetes-list-map-keys": ["id"]},
    values={"type": "array", "x-kubernetes-list-type": "set"},
    nested={"type": "array", "items": {"properties": {"one": {**MAP, "x-kubernetes-list-map-keys": ["id"]}}}},
    byname={"additionalProperties": {**MAP, "x-kubernetes-list-map-keys": ["id"]}},
)


@pytest.mark.parametrize("beta", [False, True], ids=["v1", "v1beta1"])
@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("spec.one", ("id",)),
        ("spec.two", ("a", "b")),
        ("spec.patch", ("id",)),
        ("spec.plain", None),
        ("spec.atomic", None),
        ("spec.values", SET),
        ("spec.nested", None),
        ("spec.nested[].one", ("id",)),
        ("spec.byname.any", ("id",)),
        ("spec.unknown", None),
        ("metadata.finalizers", SET),
    ],
)
def test_lists_of_a_crd_in_the_package(path: str, keys: tuple[str, ...] | None, beta: bool) -> None:
    lists = ListKeys.of_resources([{"kind": "ConfigMap"}, crd(SCHEMA, beta=beta)])

    assert rule_at("test.group/v1", "Store", path, lists) == keys
    assert rule_at("test.group/v2", "Store", "spec.one", lists) is None


@pytest.mark.parametrize(
    "resource",
    [
        None,
        [],
        {"kind": "CustomResourceDefinition"},
        {"kind": "CustomResourceDefinition", "spec": {"names": []}},
        {"kind": "CustomResourceDefinition", "spec": {"names": {"kind": "A"}, "versions": [1, {"schema": 2}]}},
        crd([]),
        crd({"properties": 5}),
        crd({"properties": {"spec": {"properties": {"l": {"x-kubernetes-list-type": "map"}}}}}),
        crd({"properties": {"spec": {"$ref": "#/definitions/nowhere"}}}),
        crd({"properties": {"spec": {"properties": {"l": {**MAP, "x-kubernetes-list-map-keys": [1, {}]}}}}}),
    ],
)
def test_a_broken_crd_says_nothing(resource: Any) -> None:
    lists = ListKeys.of_resources([resource])

    assert rule_at("test.group/v1", "Store", "spec.l", lists) is None


def test_an_object_inside_another_has_the_schema_of_its_own_kind() -> None:
    def holder(image: str, *more: str) -> dict[str, Any]:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "spec": {"containers": [{"name": "a", "image": image}, *({"name": name} for name in more)]},
        }
        return {"apiVersion": "example.com/v1", "kind": "Holder", "spec": {"manifest": pod}}

    assert merge(holder("a:1"), holder("a:2"), holder("a:1", "b"), lists=ListKeys()) == holder("a:2", "b")


CONTAINERS = '{"type":"array","x-kubernetes-patch-merge-key":"id","x-kubernetes-patch-strategy":"merge"}'
ORIGIN = "apiVersion: a.b/v1\nkind: K\nspec:\n  l:\n  - id: a\n    x: 1\n"
UPDATED = "apiVersion: a.b/v1\nkind: K\nspec:\n  l:\n  - id: a\n    x: 2\n"
LOCAL = "apiVersion: a.b/v1\nkind: K\nspec:\n  l:{comment}\n  - id: a\n    x: 1\n    y: 1\n"


@pytest.mark.parametrize(
    ("comment", "merged"),
    [
        pytest.param(f" # {CONTAINERS}", True, id="schema"),
        pytest.param(" # " + CONTAINERS.replace("merge-key", "no-key"), False, id="without-key"),
        pytest.param(" # " + CONTAINERS[:-1], False, id="not-json"),
        pytest.param(' # {"$openapi":"name"}', False, id="setter"),
        pytest.param(' # {"$ref":"#/definitions/nowhere"}', False, id="unknown-type"),
        pytest.param(" # " + "{" * 3000 + "x-kubernetes-", False, id="nested-without-end"),
        pytest.param(' # {"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["id"]}', True, id="map-keys"),
        pytest.param("", False, id="none"),
    ],
)
def test_a_comment_can_carry_the_schema_of_a_field(comment: str, merged: bool) -> None:
    result = read_document(merge_documents(ORIGIN, UPDATED, LOCAL.replace("{comment}", comment)).text or "")

    assert result["spec"]["l"] == [{"id": "a", "x": 2, "y": 1} if merged else {"id": "a", "x": 2}]


def test_the_comment_counts_wherever_it_stands_local_first() -> None:
    comment = f" # {CONTAINERS}"
    updated = UPDATED.replace("l:", "l:" + comment)

    result = read_document(merge_documents(ORIGIN, updated, LOCAL.replace("{comment}", "")).text or "")

    assert result["spec"]["l"] == [{"id": "a", "x": 2, "y": 1}]


def test_a_comment_in_one_element_counts_for_all() -> None:
    found = inline_schemas({("spec", "l", 3, "m"): Comment(line=f"# {CONTAINERS}")})
    lists = ListKeys().with_inline(found)
    schema = lists.of_comment(("spec", "l", 0, "m"))

    assert schema is not None
    assert lists.rule(schema, ()) == ListRule(("id",))
