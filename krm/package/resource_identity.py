"""Who a resource is: the fields that name it, what counts as one, and the identity it had upstream.

Source: ``kpt.md`` 1.6 and 3.3.
"""

import re
from dataclasses import dataclass
from typing import Any

UPSTREAM_IDENTIFIER = "internal.kpt.dev/upstream-identifier"
LOCAL_CONFIG = "config.kubernetes.io/local-config"
UNSCOPED = "~C"
"""Stands for the namespace of resources that have none."""
_MERGE_COMMENT = re.compile(r"^metadata:[ \t]*#[ \t]*kpt-merge:[ \t]*(\S*?)/(\S+)[ \t]*\r?$", re.MULTILINE)
_KUSTOMIZATION_FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")


@dataclass(frozen=True, slots=True)
class Identity:
    """Group, kind, namespace and name."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.group}|{self.kind}|{self.namespace}|{self.name}"


def identity_of(data: dict[str, Any]) -> Identity:
    """Return the identity a resource has now; absent fields are empty."""
    metadata = data.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    group = _text(data.get("apiVersion")).rpartition("/")[0]
    return Identity(group, _text(data.get("kind")), _text(metadata.get("namespace")), _text(metadata.get("name")))


def merge_comment(text: str) -> tuple[str, str] | None:
    """Return namespace and name of a document's ``kpt-merge`` comment, None when it has none."""
    found = _MERGE_COMMENT.search(text)
    return (found[1], found[2]) if found else None


def upstream_identity(data: dict[str, Any]) -> Identity | None:
    """Return the identity that the resource's annotation records, None when it records none."""
    parts = annotations_of(data).get(UPSTREAM_IDENTIFIER)
    fields = parts.split("|") if isinstance(parts, str) else []
    return Identity(*fields) if len(fields) == 4 else None  # noqa: PLR2004 - the fields of an identity


def annotations_of(data: dict[str, Any]) -> dict[str, Any]:
    """Return the annotations, empty when there are none."""
    metadata = data.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}


def is_local_config(data: dict[str, Any]) -> bool:
    """Say whether the resource is configuration of the package and not meant for a cluster."""
    value = annotations_of(data).get(LOCAL_CONFIG)
    return value is not None and value not in ("", "false", False)


def krm_problem(data: Any, path: str) -> str:
    """Say why a document is not a KRM resource; empty when it is one, or is excused."""
    if path.rpartition("/")[2] in _KUSTOMIZATION_FILES:
        return ""
    if not isinstance(data, dict):
        return "resource must have `metadata`, `apiVersion` and `kind`"
    version, kind = data.get("apiVersion"), data.get("kind")
    if _text(version).startswith("kustomize.config.k8s.io") or (not version and kind == "Kustomization"):
        return ""
    metadata = data.get("metadata")
    if not version:
        return "resource must have `apiVersion`"
    if not kind:
        return "resource must have `kind`"
    if not isinstance(metadata, dict) or not metadata.get("name"):
        return "resource must have `metadata.name`"
    return ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
