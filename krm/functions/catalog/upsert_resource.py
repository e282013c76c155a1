"""``upsert-resource``: put a resource in the place of the one it matches, or add it. Source: ``kpt.md`` 4.15."""

import posixpath
from collections.abc import Iterator
from typing import Any

from krm.functions.builtin import Builtin, Option
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList
from krm.package.resource_identity import Identity, annotations_of, identity_of, krm_problem
from krm.package.yaml_reader import plain_copy

_TARGET_PATH = "config.kubernetes.io/target-path"
_FUNCTION_ANNOTATIONS = ("config.kubernetes.io/function", "config.k8s.io/function")
_PLACE_ANNOTATIONS = tuple(
    f"{prefix}{name}"
    for prefix in ("config.kubernetes.io/", "internal.config.kubernetes.io/")
    for name in ("path", "index")
)


class _UpsertError(Exception):
    """The resource cannot be put anywhere."""


def upsert_resource(resources: ResourceList) -> FunctionResult:
    """Run the function: the configuration is the resource, or a ``List`` of them; doing it again changes nothing."""
    items = list(resources.items)
    matchable: dict[Identity, list[Resource]] = {}
    ends: dict[str, int] = {}
    try:
        for item in items:
            if not any(key in annotations_of(item.data) for key in _FUNCTION_ANNOTATIONS):
                matchable.setdefault(identity_of(item.data), []).append(item)
            ends[item.path] = max(ends.get(item.path, 0), (item.index or 0) + 1)
        for new in _new_resources(resources.config):
            path = _target_path(new)
            matches = matchable.get(identity_of(new), [])
            matches = [item for item in matches if not path or posixpath.normpath(item.path) == path]
            for item in matches:
                item.data = plain_copy(new)
            if not matches:
                added = _added(new, resources.config, path)
                added.index = ends.get(path, 0) if path else None
                ends[path] = ends.get(path, 0) + 1
                matchable.setdefault(identity_of(new), []).append(added)
                items.append(added)
    except _UpsertError as error:
        message = f"failed to upsert resource: {error}"
        return FunctionResult.failure(resources, [{"message": message, "severity": "error"}], f"[error]: {message}")
    return FunctionResult(items)


def _new_resources(config: FunctionConfig | None) -> Iterator[dict[str, Any]]:
    if config is None:
        raise _UpsertError("functionConfig is missing; it must be the resource to upsert, or a List of resources")
    data = config.typed or config.data
    listed = data.get("items") if data.get("kind") == "List" else [data]
    if not isinstance(listed, list):
        raise _UpsertError("the items of a List must be a list")
    for entry in listed:
        if problem := krm_problem(entry, ""):
            raise _UpsertError(problem)
        yield plain_copy(entry)


def _added(new: dict[str, Any], config: FunctionConfig | None, path: str) -> Resource:
    """Return a new resource, with the comments it has in the configuration where that is the resource."""
    if config is None or not config.text or config.data.get("kind") == "List" or path.endswith(".json"):
        return Resource(new, path)
    resource = Resource.of_document(plain_copy(config.typed), config.text, path=path)
    resource.data = new
    return resource


def _target_path(new: dict[str, Any]) -> str:
    """Take out the annotations that are for functions only; return the path among them, cleaned."""
    annotations = annotations_of(new)
    wanted = annotations.get(_TARGET_PATH)
    found = [key for key in (_TARGET_PATH, *_FUNCTION_ANNOTATIONS, *_PLACE_ANNOTATIONS) if key in annotations]
    for key in found:
        del annotations[key]
    if found and not annotations:
        del new["metadata"]["annotations"]
    return posixpath.normpath(wanted) if isinstance(wanted, str) and wanted else ""


FUNCTION = Builtin(
    name="upsert-resource",
    run=lambda resources, *_: upsert_resource(resources),
    summary="Adds the resource that is its configuration, or puts it in the place of the one it matches.",
    source="kpt.md 4.15",
    tags=("v0.1.0", "v0.2.0", "v0.2.1"),
    config_kinds=("any resource", "List"),
    options=(Option(f"metadata.annotations.[{_TARGET_PATH}]", "the file to look in, and to add to"),),
)
