"""``apply-setters``: put configured values where ``# kpt-set:`` comments ask for them. Source: ``kpt.md`` 4.10."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from krm.functions.builtin import Behaviour, Builtin, Option
from krm.functions.catalog.config_values import file_of, reference_of, text_map
from krm.functions.catalog.field_paths import shown_path
from krm.functions.catalog.line_comments import set_line_comments
from krm.functions.catalog.list_style import write_as_block
from krm.functions.catalog.redaction import redacted
from krm.functions.catalog.scalar_edits import replace_scalars, respell, set_value
from krm.functions.catalog.setter_comments import (
    SetterError,
    filled,
    is_one_setter,
    may_have_setters,
    setter_names,
    setter_pattern,
)
from krm.functions.catalog.source_nodes import SourceList, SourceScalar, scalar_texts, source_nodes
from krm.functions.go_text import quoted
from krm.functions.images import Version
from krm.functions.resource import Resource
from krm.functions.runner import FunctionResult, ResourceList
from krm.package.comments import Path
from krm.package.yaml_reader import YamlError, read_document

_DETAILED: Version = (0, 2, 1)
"""From here on results carry severity, resource and values, and secrets are hidden."""
_BUNDLED = "v0.2"
"""This tag is what upstream's Porch bundles, v0.2.0, and not the newest v0.2: porchctl prints its results (4.2)."""


@dataclass(slots=True)
class _Change:
    """One field that was set."""

    resource: Resource
    path: Path
    visit: int
    old: str
    new: str
    names: list[str] = field(default_factory=list)


def apply_setters(resources: ResourceList, version: Version) -> FunctionResult:
    """Run the function."""
    setters = text_map(resources.config, "data") if resources.config else {}
    changes: list[_Change] = []
    try:
        for resource in resources.items:
            changes += _apply(resource, setters)
    except (SetterError, YamlError) as error:
        message = f"failed to apply setters: {error}"
        return FunctionResult.failure(resources, [{"message": message, "severity": "error"}], message)
    detailed = version >= _DETAILED
    results = [_detailed_result(change) if detailed else _result(change) for change in changes]
    if not results:
        results = [{"message": "no matches for input setter(s)", **({"severity": "info"} if detailed else {})}]
    return FunctionResult(resources.items, results)


def _apply(resource: Resource, setters: Mapping[str, str]) -> list[_Change]:
    """Set the fields of one resource."""
    text = resource.text()
    if not may_have_setters(text):
        return []
    changes: list[_Change] = []
    scalars: list[tuple[SourceScalar, str]] = []
    lists: list[tuple[SourceList, str]] = []
    for node in source_nodes(text):
        pattern = setter_pattern(node.comment)
        names = setter_names(pattern)
        if not any(name in setters for name in names):
            continue
        if isinstance(node, SourceScalar):
            value = filled(pattern, setters, node.text)
            if not value or value != node.text:
                scalars.append((node, value))
            changes.append(_Change(resource, node.path, node.visit, node.text, value, names))
        elif not is_one_setter(pattern):
            raise SetterError(f"invalid setter pattern for array node: {quoted(pattern)}")
        else:
            lists.append((node, setters[names[0]]))
            changes.append(_Change(resource, node.path, node.visit, _shown_list(node), setters[names[0]], names))
    if scalars:
        replace_scalars(resource, scalars)
    if lists:
        _set_lists(resource, lists)
    return sorted(changes, key=lambda change: change.visit)


def _set_lists(resource: Resource, lists: list[tuple[SourceList, str]]) -> None:
    """Replace lists' elements: in block style with the comment behind the key, or ``[]`` with it behind."""
    spelled: dict[Path, str] = {}
    for node, text in lists:
        values = _list_values(text)
        set_value(resource.data, node.path, values)
        for path, written in scalar_texts(text).items() if values else ():
            # Numbers and booleans have more than one spelling.
            if not isinstance(_value_at(values, path), str):
                spelled[(*node.path, *path)] = written
    if spelled:
        respell(resource, spelled)
    write_as_block(resource, {node.path for node, _ in lists})
    set_line_comments(resource, {node.path: node.comment for node, _ in lists})


def _list_values(text: str) -> list[Any]:
    if not text:
        return []
    try:
        values = read_document(text)
    except YamlError:
        values = None
    if not isinstance(values, list):
        raise SetterError(f"input to array setter must be an array of values, but found {quoted(text)}")
    return values


def _value_at(values: Any, path: Path) -> Any:
    for part in path:
        values = values[part]
    return values


def _shown_list(node: SourceList) -> str:
    return f"[{', '.join(node.texts)}]" if node.texts is not None else ""


def _result(change: _Change) -> dict[str, Any]:
    return {
        "message": f"set field value to {quoted(change.new)}",
        "field": {"path": shown_path(change.path)},
        "file": file_of(change.resource.path, None),
    }


def _detailed_result(change: _Change) -> dict[str, Any]:
    path = shown_path(change.path)
    old, new = (redacted(value, path, change.names) for value in (change.old, change.new))
    return {
        "message": f"set field value to {quoted(new)}",
        "severity": "info",
        "resourceRef": reference_of(change.resource.data),
        "field": {"path": path, "currentValue": old, "proposedValue": new},
        "file": file_of(change.resource.path, change.resource.index),
    }


FUNCTION = Builtin(
    name="apply-setters",
    run=lambda resources, image, version: apply_setters(resources, (0, 2, 0) if image.tag == _BUNDLED else version),
    summary="Puts configured values where `# kpt-set:` comments ask for them.",
    source="kpt.md 4.10",
    tags=("v0.1.0", "v0.1.1", "v0.2.0", "v0.2.1", "v0.2.2"),
    config_kinds=("ConfigMap", "any other object with a map `data`"),
    options=(
        Option(
            "data.<setter>",
            "the value of the setter: text for scalars, a YAML list for lists. A setter that a comment names beside a "
            "given one keeps the value that the field has now",
            required=True,
        ),
    ),
    behaviours=(
        Behaviour("up to v0.2.0, and v0.2", "results carry message, field and file"),
        Behaviour("v0.2.1 and later, latest", "results carry severity, resource and both values; secrets are redacted"),
    ),
)
