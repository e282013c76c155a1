"""``list-setters``: the setters of a package, their values and how often they are used. Source: ``kpt.md`` 4.16."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from krm.functions.builtin import Builtin
from krm.functions.catalog.setter_comments import (
    derived_values,
    is_one_setter,
    may_have_setters,
    setter_names,
    setter_pattern,
)
from krm.functions.catalog.source_nodes import SourceList, scalar_texts, source_nodes
from krm.functions.images import parse_image
from krm.functions.resource import Resource
from krm.functions.runner import FunctionResult, ResourceList
from krm.package.yaml_reader import YamlError, read_document, resolve_scalar

_FUNCTION = "apply-setters"
_TYPES = {bool: "bool", int: "int", float: "float", type(None): "null", list: "array", dict: "map"}
_BOOLEANS = ("true", "false")
"""The only words that YAML 1.2, and so the type that users see, knows for booleans."""


@dataclass(slots=True)
class _Setter:
    """One setter: what it is set to and how many comments name it."""

    value: str
    kind: str
    count: int = 0


def list_setters(resources: ResourceList) -> FunctionResult:
    """Run the function; the resources stay as they are."""
    try:
        setters = {name: _setter(value) for name, value in _configured(resources.items).items()}
        for resource in resources.items:
            _count(resource, setters)
    except YamlError as error:
        message = f"failed to list setters: {error}"
        return FunctionResult.failure(resources, [{"message": message, "severity": "error"}], message)
    if not setters:
        return FunctionResult(resources.items, [{"message": "no setters found", "severity": "warning"}])
    return FunctionResult(resources.items, [_result(name, setters[name]) for name in sorted(setters)])


def _configured(items: list[Resource]) -> dict[str, str]:
    """Return the setters that the root Kptfile's apply-setters functions are given; the first mention wins."""
    files = {item.path: item for item in reversed(items) if not item.package}
    kptfile = files.get("Kptfile")
    found: dict[str, str] = {}
    seen = set()
    for function in _functions(kptfile.data if kptfile else {}):
        path = function.get("configPath")
        data = function.get("configMap")
        if isinstance(path, str):
            data = _texts(files[path]) if path in files and path not in seen else {}
            seen.add(path)
        for name, value in data.items() if isinstance(data, dict) else ():
            found.setdefault(name, value if isinstance(value, str) else "" if value is None else str(value))
    return found


def _functions(kptfile: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    pipeline = kptfile.get("pipeline")
    mutators = pipeline.get("mutators") if isinstance(pipeline, dict) else None
    for function in mutators if isinstance(mutators, list) else []:
        if isinstance(function, dict) and isinstance(image := function.get("image"), str):
            try:
                base = parse_image(image).base
            except ValueError:
                continue
            if base == _FUNCTION:
                yield function


def _texts(config: Resource) -> dict[str, str]:
    """Return the values of a configuration file as they are written."""
    written = scalar_texts(config.text())
    return {str(path[1]): text for path, text in written.items() if len(path) == 2 and path[0] == "data"}  # noqa: PLR2004 - data.<name>


def _count(resource: Resource, setters: dict[str, _Setter]) -> None:
    """Count what the comments of one resource name; a setter that is not configured has the value of its field."""
    text = resource.text()
    if not may_have_setters(text):
        return
    for node in source_nodes(text):
        pattern = setter_pattern(node.comment)
        names = setter_names(pattern)
        if isinstance(node, SourceList):
            if is_one_setter(pattern):
                setter = setters.setdefault(names[0], _Setter(_listed(node.texts or ()), "array"))
                setter.count += 1
            continue
        missing = any(name not in setters for name in names)
        values = derived_values(pattern, node.text) if missing else {}
        for name in dict.fromkeys(names):
            setter = setters.setdefault(name, _Setter(values.get(name, ""), _kind(values.get(name, ""))))
            setter.count += 1


def _setter(text: str) -> _Setter:
    """Describe a configured value."""
    try:
        value = read_document(text)
    except YamlError:
        return _Setter(text, "str")
    if isinstance(value, list):
        return _Setter(_listed([item for path, item in scalar_texts(text).items() if len(path) == 1]), "array")
    return _Setter(text, _kind(text))


def _kind(text: str) -> str:
    value = resolve_scalar(text) if text else ""
    if isinstance(value, bool) and text.lower() not in _BOOLEANS:
        return "str"
    return _TYPES.get(type(value), "str")


def _listed(texts: list[str] | tuple[str, ...]) -> str:
    return f"[{', '.join(texts)}]"


def _result(name: str, setter: _Setter) -> dict[str, Any]:
    message = f"Name: {name}, Value: {setter.value}, Type: {setter.kind}, Count: {setter.count}"
    return {"message": message, "severity": "info"}


FUNCTION = Builtin(
    name="list-setters",
    run=lambda resources, *_: list_setters(resources),
    summary="Reports the setters of a package: name, value, type, and how many fields name each.",
    source="kpt.md 4.16",
    tags=("v0.1.0",),
)
