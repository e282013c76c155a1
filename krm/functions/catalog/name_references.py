r"""Which fields of Kubernetes' kinds hold names of other objects. Source: ``kpt.md`` 4.14.

Paths are field specs': ``/`` between names, ``\/`` for a slash, lists are passed through.
"""

from dataclasses import dataclass

from krm.functions.catalog.field_specs import FieldSpec

_RBAC = "rbac.authorization.k8s.io"
GROUPS = {
    "ClusterRole": (_RBAC,),
    "ConfigMap": ("",),
    "Deployment": ("apps", "extensions"),
    "IngressClass": ("networking.k8s.io",),
    "PersistentVolume": ("",),
    "PersistentVolumeClaim": ("",),
    "PriorityClass": ("scheduling.k8s.io",),
    "ReplicaSet": ("apps", "extensions"),
    "ReplicationController": ("",),
    "Role": (_RBAC,),
    "Secret": ("",),
    "Service": ("",),
    "ServiceAccount": ("",),
    "StatefulSet": ("apps",),
    "StorageClass": ("storage.k8s.io",),
}
"""The kinds that are referred to, and the groups in which they are Kubernetes' own."""


@dataclass(frozen=True, slots=True)
class NameReference:
    """A field that holds the name of an object of one kind."""

    kind: str
    """Of the object that is named."""
    spec: FieldSpec


_POD_SPECS = {
    "Pod": "spec",
    "PodTemplate": "template/spec",
    "CronJob": "spec/jobTemplate/spec/template/spec",
    **dict.fromkeys(
        ("DaemonSet", "Deployment", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"), "spec/template/spec"
    ),
}
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_IN_POD_SPECS = {
    "ConfigMap": (
        "volumes/configMap/name",
        "volumes/projected/sources/configMap/name",
        *(f"{containers}/env/valueFrom/configMapKeyRef/name" for containers in _CONTAINERS),
        *(f"{containers}/envFrom/configMapRef/name" for containers in _CONTAINERS),
    ),
    "Secret": (
        "volumes/secret/secretName",
        "volumes/projected/sources/secret/name",
        "volumes/azureFile/secretName",
        *(f"volumes/{kind}/secretRef/name" for kind in ("cephfs", "cinder", "flexVolume", "iscsi", "rbd", "scaleIO")),
        "volumes/storageos/secretRef/name",
        "volumes/csi/nodePublishSecretRef/name",
        *(f"{containers}/env/valueFrom/secretKeyRef/name" for containers in _CONTAINERS),
        *(f"{containers}/envFrom/secretRef/name" for containers in _CONTAINERS),
        "imagePullSecrets/name",
    ),
    "ServiceAccount": ("serviceAccountName", "serviceAccount"),
    "PersistentVolumeClaim": ("volumes/persistentVolumeClaim/claimName",),
    "PriorityClass": ("priorityClassName",),
}
_WEBHOOKS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_CSI_SECRETS = ("provisioner", "controller-publish", "controller-expand", "node-stage", "node-publish", "node-expand")
_ELSEWHERE: dict[str, tuple[tuple[str, str], ...]] = {
    "APIService": (("Service", "spec/service/name"),),
    "ClusterRoleBinding": (("ClusterRole", "roleRef/name"), ("ServiceAccount", "subjects/name")),
    "CustomResourceDefinition": (("Service", "spec/conversion/webhook/clientConfig/service/name"),),
    "HorizontalPodAutoscaler": tuple(
        (kind, "spec/scaleTargetRef/name")
        for kind in ("Deployment", "ReplicaSet", "ReplicationController", "StatefulSet")
    ),
    "Ingress": (
        ("Service", "spec/backend/serviceName"),
        ("Service", "spec/defaultBackend/service/name"),
        ("Service", "spec/rules/http/paths/backend/serviceName"),
        ("Service", "spec/rules/http/paths/backend/service/name"),
        ("Secret", "spec/tls/secretName"),
        ("Secret", "metadata/annotations/ingress.kubernetes.io\\/auth-secret"),
        ("Secret", "metadata/annotations/nginx.ingress.kubernetes.io\\/auth-secret"),
        ("Secret", "metadata/annotations/nginx.ingress.kubernetes.io\\/auth-tls-secret"),
        ("IngressClass", "spec/ingressClassName"),
    ),
    "PersistentVolume": (
        ("PersistentVolumeClaim", "spec/claimRef/name"),
        ("StorageClass", "spec/storageClassName"),
        ("Secret", "spec/azureFile/secretName"),
        *(("Secret", f"spec/{kind}/secretRef/name") for kind in ("cephfs", "cinder", "flexVolume", "iscsi", "rbd")),
        *(("Secret", f"spec/{kind}/secretRef/name") for kind in ("scaleIO", "storageos")),
        *(("Secret", f"spec/csi/{use}SecretRef/name") for use in ("controllerPublish", "nodePublish", "nodeStage")),
    ),
    "PersistentVolumeClaim": (("PersistentVolume", "spec/volumeName"), ("StorageClass", "spec/storageClassName")),
    "RoleBinding": (
        ("ClusterRole", "roleRef/name"),
        ("Role", "roleRef/name"),
        ("ServiceAccount", "subjects/name"),
    ),
    "ServiceAccount": (("Secret", "imagePullSecrets/name"), ("Secret", "secrets/name")),
    "StatefulSet": (
        ("Service", "spec/serviceName"),
        ("PersistentVolume", "spec/volumeClaimTemplates/spec/volumeName"),
        ("StorageClass", "spec/volumeClaimTemplates/spec/storageClassName"),
    ),
    "StorageClass": (
        *(("Secret", f"parameters/{key}") for key in ("adminSecretName", "secretName", "userSecretName")),
        *(("Secret", f"parameters/csi.storage.k8s.io\\/{use}-secret-name") for use in _CSI_SECRETS),
    ),
    **dict.fromkeys(_WEBHOOKS, (("Service", "webhooks/clientConfig/service/name"),)),
}


def _references(holder: str) -> tuple[NameReference, ...]:
    places = list(_ELSEWHERE.get(holder, ()))
    if pod_spec := _POD_SPECS.get(holder):
        places += [(kind, f"{pod_spec}/{path}") for kind, paths in _IN_POD_SPECS.items() for path in paths]
    return tuple(NameReference(kind, FieldSpec(path)) for kind, path in places)


NAME_REFERENCES = {holder: _references(holder) for holder in sorted({*_POD_SPECS, *_ELSEWHERE})}
"""By the kind of the object that has the field."""
