"""Objects inside custom resources (``x-kubernetes-embedded-resource``): what makes them Kubernetes objects.

Their metadata is read like any object's (``schema_types.py``, ``schema_pruning.py``); here are its rules.
Source: ``kube-api.md`` 2.2 and 2.15.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from apiserver.machinery.field_path import CauseAt, Problem, at_index, at_key, at_name
from apiserver.machinery.schema_breaches import invalid
from apiserver.machinery.schema_node import Node
from krm.meta.errors import required_value
from krm.meta.names import dns_1035_problem, label_value_problem, path_segment_problem, qualified_name_problem

_OWNER_FIELDS: Final = (
    ("apiVersion", "version must not be empty"),
    ("kind", "must not be empty"),
    ("name", "must not be empty"),
    ("uid", "must not be empty"),
)
_KIND_PREFIX: Final = "may have mixed case, but should otherwise match: "


def embedded_problems(value: Any, node: Node, *, root: bool = False) -> list[Problem[CauseAt]]:
    """Return what is wrong with every embedded object below (and, but for the root, at) the value."""
    found: list[Problem[CauseAt]] = []
    if not node.resources:
        return found
    if isinstance(value, dict):
        if node.embedded and not root:
            found += _object_problems(value)
        for name, child_value in value.items():
            child = node.properties.get(name, node.additional)
            if child is not None and (below := embedded_problems(child_value, child)):
                piece = at_name(name) if name in node.properties else at_key(name)
                found += [((piece, *path), cause) for path, cause in below]
    elif isinstance(value, list) and node.items is not None:
        for index, item in enumerate(value):
            found += [((at_index(index), *path), cause) for path, cause in embedded_problems(item, node.items)]
    return found


def _object_problems(value: dict[str, Any]) -> Iterator[Problem[CauseAt]]:
    version, kind = value.get("apiVersion") or "", value.get("kind") or ""
    if not version:
        yield (".apiVersion",), required_value
    elif version.count("/") > 1:
        yield (".apiVersion",), invalid(version, f"unexpected GroupVersion string: {version}")
    if not kind:
        yield (".kind",), required_value
    elif problem := dns_1035_problem(kind.lower()):
        yield (".kind",), invalid(kind, _KIND_PREFIX + problem)
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        for name, problem_at in _metadata_problems(metadata):
            yield (".metadata", f".{name}"), problem_at


def _metadata_problems(metadata: dict[str, Any]) -> Iterator[tuple[str, CauseAt]]:
    for field, text, check in _checked_texts(metadata):
        if problem := check(text):
            yield field, invalid(text, problem)
    for owner in metadata.get("ownerReferences") or []:
        for field, detail in _OWNER_FIELDS:
            if not owner.get(field):
                yield f"ownerReferences.{field}", invalid("", detail)


def _checked_texts(metadata: dict[str, Any]) -> Iterator[tuple[str, str, Callable[[str], str]]]:
    for field in ("name", "generateName"):
        yield field, metadata.get(field) or "", path_segment_problem
    for key, value in (metadata.get("labels") or {}).items():
        yield "labels", key, qualified_name_problem
        yield "labels", value, label_value_problem
    for key in metadata.get("annotations") or {}:
        yield "annotations", key, lambda text: qualified_name_problem(text.lower())
    for finalizer in metadata.get("finalizers") or []:
        yield "finalizers", finalizer, qualified_name_problem
