"""The part of Kubernetes' OpenAPI document (v1.21.2) that merging needs: associative lists and what leads to them.

A type lists only such fields; a list without ``keys`` is replaced as a whole, so its elements need no
type. Kustomize's generators are added. Source: ``kpt.md`` 3.7.
"""

from collections.abc import Mapping
from typing import Any

_CORE = "io.k8s.api.core.v1."
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."


def _ref(name: str, **more: str) -> dict[str, Any]:
    return {"$ref": f"#/definitions/{name}", **more}


def _list(*keys: str, of: str = "", strategy: str = "merge") -> dict[str, Any]:
    node: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    if len(keys) == 1:
        node = {"x-kubernetes-patch-merge-key": keys[0], "x-kubernetes-patch-strategy": strategy}
    return {**node, "items": _ref(of)} if of else node


_SET = {"x-kubernetes-list-type": "set"}
_CONDITIONS = {"properties": {"conditions": _list("type")}}
_CONTAINER_LISTS = {
    "env": _list("name"),
    "volumeDevices": _list("devicePath"),
    "volumeMounts": _list("mountPath"),
}
_POD_TEMPLATE = {"template": _ref(_CORE + "PodTemplateSpec")}
_JOB_SPEC = {"properties": _POD_TEMPLATE}
_CRON_JOB_SPEC = {
    "properties": {
        "jobTemplate": {"properties": {"metadata": _ref(_META + "ObjectMeta"), "spec": _JOB_SPEC}},
    }
}
_STATUS = {"status": _CONDITIONS}


def _type(**fields: Any) -> dict[str, Any]:
    return {"properties": fields}


DEFINITIONS: Mapping[str, dict[str, Any]] = {
    _META + "ObjectMeta": _type(ownerReferences=_list("uid"), finalizers=_SET),
    _CORE + "Container": _type(**_CONTAINER_LISTS, ports=_list("containerPort", "protocol")),
    _CORE + "EphemeralContainer": _type(**_CONTAINER_LISTS),
    _CORE + "Volume": {"x-kubernetes-patch-strategy": "retainKeys"},
    _CORE + "PodSpec": _type(
        containers=_list("name", of=_CORE + "Container"),
        initContainers=_list("name", of=_CORE + "Container"),
        ephemeralContainers=_list("name", of=_CORE + "EphemeralContainer"),
        imagePullSecrets=_list("name"),
        volumes=_list("name", of=_CORE + "Volume", strategy="merge,retainKeys"),
        hostAliases=_list("ip"),
        topologySpreadConstraints=_list("topologyKey", "whenUnsatisfiable"),
    ),
    _CORE + "PodTemplateSpec": _type(metadata=_ref(_META + "ObjectMeta"), spec=_ref(_CORE + "PodSpec")),
    _CORE + "ServiceSpec": _type(ports=_list("port", "protocol")),
    _CORE + "NodeSpec": _type(podCIDRs=_SET),
    _CORE + "NodeStatus": _type(addresses=_list("type"), conditions=_list("type")),
    _CORE + "PodStatus": _type(podIPs=_list("ip"), conditions=_list("type")),
}
"""Types by the name that an inline schema's ``$ref`` may use."""

_DEPLOYMENT_SPEC = _type(**_POD_TEMPLATE, strategy={"x-kubernetes-patch-strategy": "retainKeys"})
_WORKLOAD = {"spec": {"properties": _POD_TEMPLATE}, **_STATUS}
_BUDGET = {"spec": _type(selector={"x-kubernetes-patch-strategy": "replace"}), **_STATUS}
_WEBHOOKS = {"webhooks": _list("name")}


def _kind(fields: dict[str, Any]) -> dict[str, Any]:
    return {"properties": {"metadata": _ref(_META + "ObjectMeta"), **fields}}


KINDS: Mapping[tuple[str, str], dict[str, Any]] = {
    ("v1", "Pod"): _kind({"spec": _ref(_CORE + "PodSpec"), "status": _ref(_CORE + "PodStatus")}),
    ("v1", "PodTemplate"): _kind(_POD_TEMPLATE),
    ("v1", "ReplicationController"): _kind(_WORKLOAD),
    ("v1", "Service"): _kind({"spec": _ref(_CORE + "ServiceSpec"), **_STATUS}),
    ("v1", "ServiceAccount"): _kind({"secrets": _list("name")}),
    ("v1", "Node"): _kind({"spec": _ref(_CORE + "NodeSpec"), "status": _ref(_CORE + "NodeStatus")}),
    ("v1", "ComponentStatus"): _kind({"conditions": _list("type")}),
    **{("v1", kind): _kind(_STATUS) for kind in ("Namespace", "PersistentVolumeClaim")},
    ("apps/v1", "Deployment"): _kind({"spec": _DEPLOYMENT_SPEC, **_STATUS}),
    **{("apps/v1", kind): _kind(_WORKLOAD) for kind in ("DaemonSet", "ReplicaSet", "StatefulSet")},
    ("batch/v1", "Job"): _kind({"spec": _JOB_SPEC, **_STATUS}),
    **{(f"batch/{version}", "CronJob"): _kind({"spec": _CRON_JOB_SPEC}) for version in ("v1", "v1beta1")},
    **{(f"policy/{version}", "PodDisruptionBudget"): _kind(_BUDGET) for version in ("v1", "v1beta1")},
    **{(f"apiregistration.k8s.io/{version}", "APIService"): _kind(_STATUS) for version in ("v1", "v1beta1")},
    **{
        (f"storage.k8s.io/{version}", "CSINode"): _kind({"spec": _type(drivers=_list("name"))})
        for version in ("v1", "v1beta1")
    },
    **{
        (f"admissionregistration.k8s.io/{version}", kind): _kind(_WEBHOOKS)
        for version in ("v1", "v1beta1")
        for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    },
    ("kustomize.config.k8s.io/v1beta1", "Kustomization"): _type(
        configMapGenerator=_list("name"), secretGenerator=_list("name")
    ),
}
"""Types of objects, by apiVersion and kind."""

OBJECT = _kind({})
"""Any other object of Kubernetes' own."""
