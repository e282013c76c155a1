"""Field tables of the protobuf messages we decode: number → (JSON name, type).

Types: a scalar (``string bytes int bool time microtime fieldsV1``; ``*int``, ``*bool`` keep zero and false),
another message's name, ``list:<type>`` or ``map:<scalar>``. Source: ``kube-api.md`` 1.9.
"""

from collections.abc import Mapping
from typing import Final

Table = Mapping[int, tuple[str, str]]

_METADATA: Final = ("metadata", "ObjectMeta")

MESSAGES: Final[Mapping[str, Table]] = {
    "Unknown": {1: ("typeMeta", "TypeMeta"), 2: ("raw", "bytes"), 3: ("contentEncoding", "string")},
    "TypeMeta": {1: ("apiVersion", "string"), 2: ("kind", "string")},
    "Time": {1: ("seconds", "int"), 2: ("nanos", "int")},
    "FieldsV1": {1: ("raw", "bytes")},
    "ObjectMeta": {
        1: ("name", "string"),
        2: ("generateName", "string"),
        3: ("namespace", "string"),
        5: ("uid", "string"),
        6: ("resourceVersion", "string"),
        7: ("generation", "int"),
        8: ("creationTimestamp", "time"),
        9: ("deletionTimestamp", "time"),
        10: ("deletionGracePeriodSeconds", "*int"),
        11: ("labels", "map:string"),
        12: ("annotations", "map:string"),
        13: ("ownerReferences", "list:OwnerReference"),
        14: ("finalizers", "list:string"),
        17: ("managedFields", "list:ManagedFieldsEntry"),
    },
    "OwnerReference": {
        1: ("kind", "string"),
        3: ("name", "string"),
        4: ("uid", "string"),
        5: ("apiVersion", "string"),
        6: ("controller", "*bool"),
        7: ("blockOwnerDeletion", "*bool"),
    },
    "ManagedFieldsEntry": {
        1: ("manager", "string"),
        2: ("operation", "string"),
        3: ("apiVersion", "string"),
        4: ("time", "time"),
        6: ("fieldsType", "string"),
        7: ("fieldsV1", "fieldsV1"),
        8: ("subresource", "string"),
    },
    "ObjectReference": {
        1: ("kind", "string"),
        2: ("namespace", "string"),
        3: ("name", "string"),
        4: ("uid", "string"),
        5: ("apiVersion", "string"),
        6: ("resourceVersion", "string"),
        7: ("fieldPath", "string"),
    },
    "LocalObjectReference": {1: ("name", "string")},
    "ConfigMap": {
        1: _METADATA,
        2: ("data", "map:string"),
        3: ("binaryData", "map:bytes"),
        4: ("immutable", "*bool"),
    },
    "Secret": {
        1: _METADATA,
        2: ("data", "map:bytes"),
        3: ("type", "string"),
        4: ("stringData", "map:string"),
        5: ("immutable", "*bool"),
    },
    "Namespace": {1: _METADATA, 2: ("spec", "NamespaceSpec"), 3: ("status", "NamespaceStatus")},
    "NamespaceSpec": {1: ("finalizers", "list:string")},
    "NamespaceStatus": {1: ("phase", "string"), 2: ("conditions", "list:NamespaceCondition")},
    "NamespaceCondition": {
        1: ("type", "string"),
        2: ("status", "string"),
        4: ("lastTransitionTime", "time"),
        5: ("reason", "string"),
        6: ("message", "string"),
    },
    "ServiceAccount": {
        1: _METADATA,
        2: ("secrets", "list:ObjectReference"),
        3: ("imagePullSecrets", "list:LocalObjectReference"),
        4: ("automountServiceAccountToken", "*bool"),
    },
    "Event": {
        1: _METADATA,
        2: ("involvedObject", "ObjectReference"),
        3: ("reason", "string"),
        4: ("message", "string"),
        5: ("source", "EventSource"),
        6: ("firstTimestamp", "time"),
        7: ("lastTimestamp", "time"),
        8: ("count", "int"),
        9: ("type", "string"),
        10: ("eventTime", "microtime"),
        11: ("series", "EventSeries"),
        12: ("action", "string"),
        13: ("related", "ObjectReference"),
        14: ("reportingComponent", "string"),
        15: ("reportingInstance", "string"),
    },
    "EventSource": {1: ("component", "string"), 2: ("host", "string")},
    "EventSeries": {1: ("count", "int"), 2: ("lastObservedTime", "microtime")},
    "Lease": {1: _METADATA, 2: ("spec", "LeaseSpec")},
    "LeaseSpec": {
        1: ("holderIdentity", "string"),
        2: ("leaseDurationSeconds", "*int"),
        3: ("acquireTime", "microtime"),
        4: ("renewTime", "microtime"),
        5: ("leaseTransitions", "*int"),
        6: ("strategy", "string"),
        7: ("preferredHolder", "string"),
    },
    "DeleteOptions": {
        1: ("gracePeriodSeconds", "*int"),
        2: ("preconditions", "Preconditions"),
        3: ("orphanDependents", "*bool"),
        4: ("propagationPolicy", "string"),
        5: ("dryRun", "list:string"),
    },
    "Preconditions": {1: ("uid", "string"), 2: ("resourceVersion", "string")},
}

KINDS: Final[Mapping[tuple[str, str], str]] = {
    ("v1", "ConfigMap"): "ConfigMap",
    ("v1", "Secret"): "Secret",
    ("v1", "Namespace"): "Namespace",
    ("v1", "ServiceAccount"): "ServiceAccount",
    ("v1", "Event"): "Event",
    ("coordination.k8s.io/v1", "Lease"): "Lease",
}
"""(apiVersion, kind) → message."""
