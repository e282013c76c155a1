"""The form of structural schemas: a type for every value, and nothing but value validations below alternatives.

Source: ``kube-api.md`` 2.15; wording and fields are kube-apiserver's.
"""

from collections.abc import Iterator
from typing import Any, Final

from apiserver.machinery.schema_breaches import invalid
from apiserver.machinery.schema_document import alternatives
from krm.meta.errors import Cause, forbidden_value, required_value
from krm.meta.patterns import PatternError, compile_pattern

Json = dict[str, Any]

_EITHER: Final = "x-kubernetes-int-or-string"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_MISSING_TYPE: Final = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_NOT_BELOW_ALTERNATIVES: Final = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (_PRESERVE, "must be false to be structural"),
    (_EMBEDDED, "must be false to be structural"),
    (_EITHER, "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)


def form_causes(schema: Json, path: str) -> Iterator[Cause]:
    """Yield what keeps a schema from being structural."""
    yield from _form_causes(schema, "root", path)
    for piece, child in alternatives(schema):
        yield from _completeness_causes(child, schema, path + piece, path)


def _form_causes(schema: Json, level: str, path: str) -> Iterator[Cause]:
    additional, items = schema.get("additionalProperties"), schema.get("items")
    if schema.get("type") == "array" and items is None:
        yield required_value(f"{path}.items", "must be specified")
    if isinstance(items, dict):
        yield from _form_causes(items, "item", f"{path}.items")
    for name, child in (schema.get("properties") or {}).items():
        yield from _form_causes(child, "field", f"{path}.properties[{name}]")
    if additional is not None and level == "root":
        yield forbidden_value(f"{path}.additionalProperties", "must not be used at the root")
    if isinstance(additional, dict):
        yield from _form_causes(additional, "field", f"{path}.additionalProperties")
    yield from _extension_causes(schema, path)
    yield from _type_causes(schema, level, path)
    yield from _envelope_causes(schema, level, path)
    yield from _value_causes(schema, path)


def _extension_causes(schema: Json, path: str) -> Iterator[Cause]:
    if schema.get(_EITHER):
        for keyword in (_PRESERVE, _EMBEDDED):
            if schema.get(keyword):
                yield invalid(True, f"must be false if {_EITHER} is true")(f"{path}.{keyword}")
    if schema.get(_EMBEDDED) and schema.get("additionalProperties") is not None:
        detail = f"must not be used if {_EMBEDDED} is set"
        yield forbidden_value(f"{path}.additionalProperties", detail)
    if schema.get(_EMBEDDED) and not schema.get(_PRESERVE) and not schema.get("properties"):
        detail = f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}"
        yield required_value(f"{path}.properties", detail)


def _type_causes(schema: Json, level: str, path: str) -> Iterator[Cause]:
    type_ = schema.get("type") or ""
    if schema.get(_EMBEDDED) and type_ != "object":
        detail = f"must be object if {_EMBEDDED} is true"
        yield invalid(type_, detail)(f"{path}.type") if type_ else required_value(f"{path}.type", detail)
    elif not type_ and not schema.get(_EITHER) and not schema.get(_PRESERVE):
        yield required_value(f"{path}.type", _MISSING_TYPE[level])
    if level == "root" and type_ and type_ != "object":
        yield invalid(type_, "must be object at the root")(f"{path}.type")


def _envelope_causes(schema: Json, level: str, path: str) -> Iterator[Cause]:
    properties = schema.get("properties") or {}
    if level != "root" and not schema.get(_EMBEDDED):
        return
    for name, wanted in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
        type_ = properties.get(name, {}).get("type") or ""
        if name in properties and type_ != wanted:
            yield invalid(type_, f"must be {wanted}")(f"{path}.properties[{name}].type")
    if level == "root" and "metadata" in properties and not _restricts_names_only(properties["metadata"]):
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden_value(f"{path}.properties[metadata]", detail)


def _restricts_names_only(metadata: Json) -> bool:
    properties = metadata.get("properties") or {}
    return properties.keys() <= {"name", "generateName"} and not any(
        metadata.get(keyword) for keyword in metadata.keys() - {"type", "properties", "default"}
    )


def _value_causes(schema: Json, path: str) -> Iterator[Cause]:
    """Check the value validations of a schema: patterns, and what stands below alternatives."""
    if pattern := schema.get("pattern"):
        try:
            compile_pattern(pattern)
        except PatternError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            yield invalid(pattern, detail)(f"{path}.pattern")
    exempt = _exempt(schema)
    for piece, child in alternatives(schema):
        yield from _alternative_causes(child, path + piece, exempt=id(child) in exempt)


def _exempt(schema: Json) -> set[int]:
    """Return the alternatives that may state types: the two fixed ways to say int-or-string."""
    if schema.get("anyOf") == _INT_OR_STRING:
        return {id(child) for child in schema["anyOf"]}
    first = (schema.get("allOf") or [{}])[0]
    return {id(first)} if first.get("anyOf") == _INT_OR_STRING else set()


def _alternative_causes(schema: Json, path: str, *, exempt: bool) -> Iterator[Cause]:
    if exempt and schema in _INT_OR_STRING:
        return
    for keyword, detail in _NOT_BELOW_ALTERNATIVES:
        if schema.get(keyword) or (keyword in ("additionalProperties", "default") and schema.get(keyword) is not None):
            yield forbidden_value(f"{path}.{keyword}", detail)
    properties = schema.get("properties") or {}
    if "metadata" in properties and path.count(".properties[") == 0:
        yield forbidden_value(f"{path}.properties[metadata]", "must not be specified in a nested context")
    for name, child in properties.items():
        yield from _alternative_causes(child, f"{path}.properties[{name}]", exempt=False)
    if isinstance(schema.get("items"), dict):
        yield from _alternative_causes(schema["items"], f"{path}.items", exempt=False)
    yield from _value_causes(schema, path) if not exempt else _value_causes({**schema, "anyOf": []}, path)


def _completeness_causes(schema: Json, main: Json | None, path: str, main_path: str) -> Iterator[Cause]:
    """Check that what the root's alternatives speak of is specified outside of them too."""
    known = (main or {}).get("properties") or {}
    for name, child in (schema.get("properties") or {}).items():
        piece = f".properties[{name}]"
        if name not in known:
            yield required_value(main_path + piece, f"because it is defined in {path}{piece}")
        else:
            yield from _completeness_causes(child, known[name], path + piece, main_path + piece)
    items = schema.get("items")
    if isinstance(items, dict):
        if not isinstance((main or {}).get("items"), dict):
            yield required_value(f"{main_path}.items", f"because it is defined in {path}.items")
        else:
            yield from _completeness_causes(items, (main or {})["items"], f"{path}.items", f"{main_path}.items")
    for piece, child in alternatives(schema):
        yield from _completeness_causes(child, main, path + piece, main_path)
