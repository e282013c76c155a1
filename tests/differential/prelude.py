"""What every server is given before the first case: the custom kinds that cases share, and what nobody may do."""

import http.client
from typing import Any

from conversation import Server, SetupFailed, repeat
from sends import CRDS, get, post

Object = dict[str, Any]

_PORT = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string"},
        "port": {"type": "integer", "minimum": 1, "maximum": 65535},
        "protocol": {"type": "string", "default": "TCP"},
    },
}
_SPEC = {
    "type": "object",
    "description": "What the widget is to be.",
    "properties": {
        "size": {"type": "integer", "minimum": 0, "maximum": 100, "description": "How large."},
        "ratio": {"type": "number", "exclusiveMinimum": True, "minimum": 0, "multipleOf": 0.5},
        "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
        "code": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 4},
        "when": {"type": "string", "format": "date-time"},
        "address": {"type": "string", "format": "ipv4"},
        "nothing": {"type": "string", "nullable": True},
        "either": {"x-kubernetes-int-or-string": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "template": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "selector": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": {"type": "string"}},
        "labels": {"type": "object", "maxProperties": 2, "additionalProperties": {"type": "string"}},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "numbers": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "integer"}},
        "ports": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": _PORT,
        },
        "one": {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        "low": {"type": "integer"},
        "high": {"type": "integer"},
        "fixed": {
            "type": "string",
            "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is immutable"}],
        },
        "replicas": {"type": "integer", "default": 1},
    },
    "x-kubernetes-validations": [
        {
            "rule": "!has(self.low) || !has(self.high) || self.low <= self.high",
            "messageExpression": "self.low == 2 ? 'two is too low' : 'low is more than high'",
            "reason": "FieldValueForbidden",
            "fieldPath": ".low",
        }
    ],
}
_STATUS = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "selector": {"type": "string"},
        "conditions": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object",
                "required": ["type"],
                "properties": {"type": {"type": "string"}, "status": {"type": "string"}},
            },
        },
    },
}
SCHEMA = {"type": "object", "description": "A thing to test with.", "properties": {"spec": _SPEC, "status": _STATUS}}
_COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Color", "type": "string", "jsonPath": ".spec.color", "description": "Which colour."},
    {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"},
    {"name": "Tags", "type": "string", "jsonPath": ".spec.tags", "priority": 1},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


def crd(plural: str, kind: str, group: str = "diff.example.com", **spec: Any) -> Object:
    """Return a CustomResourceDefinition of one free-form version, with parts of its spec replaced."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version], **spec},
    }


def _widgets() -> Object:
    subresources = {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.replicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
    version = {
        "served": True,
        "schema": {"openAPIV3Schema": SCHEMA},
        "subresources": subresources,
        "additionalPrinterColumns": _COLUMNS,
        "selectableFields": [{"jsonPath": ".spec.color"}],
    }
    names = {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
        "shortNames": ["wg"],
        "categories": ["all"],
    }
    old = {**version, "name": "v1beta1", "storage": False, "deprecated": True, "additionalPrinterColumns": None}
    return crd("widgets", "Widget", names=names, versions=[{**version, "name": "v1", "storage": True}, old])


PRELUDE = (
    post(CRDS, _widgets()),
    post(CRDS, crd("planets", "Planet", scope="Cluster")),
    get("/apis/diff.example.com/v1/widgets", until=200),
    get("/apis/diff.example.com/v1beta1/widgets", until=200),
    get("/apis/diff.example.com/v1/planets", until=200),
)


def give(server: Server) -> None:
    """Give a new server the prelude, and wait until the custom kinds are served.

    Raises:
        SetupFailed: a step was refused.
    """
    for step in PRELUDE:
        answer = repeat(step, "", (), server)
        if not step.until and answer.code != http.client.CREATED:
            raise SetupFailed(f"{step.method} {step.path}: {answer.code} {answer.body!r}")
