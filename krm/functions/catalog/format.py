"""``format``: fields in the order in which people read them, and quotes around texts that look like something else.

Source: ``kpt.md`` 4.16.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from krm.functions.builtin import Builtin
from krm.functions.catalog.field_order import reorder
from krm.functions.catalog.scalar_edits import replace_scalars
from krm.functions.catalog.scope import is_namespaced
from krm.functions.catalog.source_nodes import SourceScalar, source_nodes
from krm.functions.resource import Resource
from krm.functions.runner import FunctionResult, ResourceList
from krm.package.comments import Path
from krm.package.resource_identity import annotations_of, identity_of
from krm.package.yaml_positions import MAPPING, Node
from krm.package.yaml_reader import YamlError, plain_copy, resolve_scalar

_ANNOTATION = "config.kubernetes.io/formatting"
_FIRST = (
    "name",
    "generateName",
    "namespace",
    "clusterName",
    "apiVersion",
    "kind",
    "metadata",
    "type",
    "labels",
    "annotations",
    "spec",
    "status",
    "stringData",
    "data",
)
_PLACES = {name: place for place, name in enumerate(_FIRST)}
_WORKLOAD_GROUPS = ("apps", "batch", "")
_TEXT_MAPS = ("matchLabels", "nodeSelector")
_TEXT_LISTS = ("args", "command")


def format_resources(resources: ResourceList) -> FunctionResult:
    """Run the function; doing it again changes nothing."""
    try:
        for resource in resources.items:
            if annotations_of(resource.data).get(_ANNOTATION) != "none" and not resource.is_json:
                _quote_texts(resource)
                _order(resource)
    except YamlError as error:
        message = f"failed to format: {error}"
        return FunctionResult.failure(resources, [{"message": message, "severity": "error"}], message)
    return FunctionResult(resources.items)


def _order(resource: Resource) -> None:
    """Bring the fields into order, unless the text is laid out so that lines cannot be moved."""
    sorts_containers = _is_workload(resource.data)
    names = _names_of_containers(resource.data) if sorts_containers else {}

    def order(path: Path, entries: Sequence[Node]) -> Sequence[Node]:
        if entries[0].parent is not None and entries[0].parent.kind == MAPPING:
            return sorted(entries, key=lambda entry: _place(str(entry.step)))
        if path in names:
            return [entries[place] for place in names[path]]
        return entries

    wanted = plain_copy(resource.data)
    for path, places in names.items():
        owner = wanted
        for part in path[:-1]:
            owner = owner[part]
        owner[path[-1]] = [owner[path[-1]][place] for place in places]
    reorder(resource, order, wanted)


def _place(name: str) -> tuple[int, str]:
    return _PLACES.get(name, len(_FIRST)), name


def _is_workload(data: dict[str, Any]) -> bool:
    now = identity_of(data)
    return now.group in _WORKLOAD_GROUPS and is_namespaced(now.group, now.kind) is True


def _names_of_containers(data: dict[str, Any]) -> dict[Path, list[int]]:
    """Return the order by name of each list of containers."""
    found: dict[Path, list[int]] = {}
    for base in ((), ("spec", "template"), ("spec", "jobTemplate", "spec", "template"), ("template",)):
        containers: Any = data
        path = (*base, "spec", "containers")
        for part in path:
            containers = containers.get(part) if isinstance(containers, dict) else None
        names: list[Any] = [item.get("name") if isinstance(item, dict) else None for item in containers or ()]
        if isinstance(containers, list) and all(isinstance(name, str) for name in names):
            found[path] = sorted(range(len(names)), key=names.__getitem__)
    return found


def _quote_texts(resource: Resource) -> None:
    """Quote plain scalars of fields that hold texts, where a reader would take them for something else."""
    now = identity_of(resource.data)
    is_known = is_namespaced(now.group, now.kind) is not None
    edits = [
        (replace(node, style='"'), node.text)
        for node in source_nodes(resource.text())
        if isinstance(node, SourceScalar)
        and node.style is None
        and node.text
        and resolve_scalar(node.text) is not None
        and not isinstance(resolve_scalar(node.text), str)
        and _holds_text(node.path, now.kind, is_known=is_known)
    ]
    if edits:
        replace_scalars(resource, edits)


def _holds_text(path: Path, kind: str, *, is_known: bool) -> bool:
    match path:
        case ("metadata", "labels" | "annotations", _):
            return True
        case ("data" | "binaryData" | "stringData", _):
            return kind in ("ConfigMap", "Secret") and is_known
        case (*_, "metadata", "labels" | "annotations", _):
            return is_known
        case (*_, name, str()):
            return is_known and (name in _TEXT_MAPS or (path[-1] == "value" and path[-3:-2] == ("env",)))
        case (*_, name, int()):
            return is_known and name in _TEXT_LISTS
    return False


FUNCTION = Builtin(
    name="format",
    run=lambda resources, *_: format_resources(resources),
    summary="Orders the fields of every resource and the containers of workloads, and quotes texts that look like "
    "numbers or booleans; `config.kubernetes.io/formatting: none` keeps a resource as it is.",
    source="kpt.md 4.16",
    tags=("v0.1.0", "v0.1.1"),
)
