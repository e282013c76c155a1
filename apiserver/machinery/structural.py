"""What the schema of a CustomResourceDefinition may say: Kubernetes' structural schemas.

First the keywords, one schema at a time (here and in ``structural_collections.py``), and the form of the whole
(``structural_form.py``); if nothing is wrong with those, the CEL rules (``structural_rules.py``) and then the defaults
(``structural_defaults.py``). Wording and fields are kube-apiserver's. Source: ``kube-api.md`` 2.15.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Final

from apiserver.machinery.schema_breaches import invalid, not_among
from apiserver.machinery.schema_document import alternatives, tidy_schema
from apiserver.machinery.schema_node import SchemaError, compile_node
from apiserver.machinery.structural_collections import collection_causes
from apiserver.machinery.structural_defaults import default_causes
from apiserver.machinery.structural_form import form_causes
from apiserver.machinery.structural_rules import compile_causes, rule_causes
from krm.meta.errors import Cause, forbidden_value

Json = dict[str, Any]

MAX_CAUSES: Final = 100
"""Causes reported for one schema; a hostile definition must not make a huge answer."""
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
_UNSUPPORTED_ENDS: Final = tuple(f".{keyword}" for keyword in _UNSUPPORTED)
_ENVELOPE: Final = frozenset({"apiVersion", "kind", "metadata"})


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a schema stands, as far as it decides what the schema may say."""

    path: str
    root: bool = False
    no_defaults: str | None = None
    """Why there can be no defaults here."""
    in_envelope: bool = False
    """Below apiVersion, kind or metadata of a Kubernetes object."""

    def below(self, piece: str) -> "_Place":
        return replace(self, path=self.path + piece, root=False)


def structural_causes(schema: Json, path: str) -> list[Cause]:
    """Return what is wrong with a schema, at most ``MAX_CAUSES`` causes; unknown keywords are dropped, in place.

    ``path`` is where the schema stands in its definition: ``spec.validation.openAPIV3Schema`` if all versions share
    one schema, else ``spec.versions[i].schema.openAPIV3Schema``.
    """
    if problems := tidy_schema(schema):
        return [Cause("FieldValueTypeInvalid", f"Invalid value: {text}", path) for text in problems[:MAX_CAUSES]]
    keywords = _first(_keyword_causes(schema, _Place(path, root=True)))
    foreign = any(cause.field.endswith(_UNSUPPORTED_ENDS) for cause in keywords)
    if causes := keywords if foreign else _first(chain(keywords, form_causes(schema, path))):
        return causes
    try:
        root = compile_node({**schema, "x-kubernetes-embedded-resource": True}, custom=True)
    except SchemaError as error:
        return [invalid("", str(error))(path)]
    return _first(compile_causes(root, path)) or _first(default_causes(root, path))


def _first(causes: Iterable[Cause]) -> list[Cause]:
    return list(islice(causes, MAX_CAUSES))


def _keyword_causes(schema: Json, place: _Place) -> Iterator[Cause]:
    yield from _own_causes(schema, place)
    additional = schema.get("additionalProperties")
    if isinstance(additional, dict):
        reason = "inside additionalProperties applying to object metadata" if place.in_envelope else place.no_defaults
        yield from _keyword_causes(additional, replace(place.below(".additionalProperties"), no_defaults=reason))
    for name, child in (schema.get("properties") or {}).items():
        yield from _keyword_causes(child, _property_place(schema, name, place))
    for piece, child in alternatives(schema):
        yield from _keyword_causes(child, place.below(piece))
    if isinstance(schema.get("items"), dict):
        yield from _keyword_causes(schema["items"], place.below(".items"))


def _property_place(schema: Json, name: str, place: _Place) -> _Place:
    below = place.below(f".properties[{name}]")
    if name in _ENVELOPE and (place.root or schema.get("x-kubernetes-embedded-resource")):
        reason = f"in top-level {name}" if place.root else below.no_defaults
        below = replace(below, in_envelope=True, no_defaults=reason)
    return below


def _own_causes(schema: Json, place: _Place) -> Iterator[Cause]:
    path, type_ = place.path, schema.get("type") or ""
    if place.root and schema.get("nullable"):
        yield forbidden_value(f"{path}.nullable", "nullable cannot be true at the root")
    if type_ and type_ not in _TYPES:
        yield not_among(type_, _TYPES)(f"{path}.type")
    if type_ == "null":
        yield forbidden_value(f"{path}.type", "type cannot be set to null, use nullable as an alternative")
    if schema.get("default") is not None and place.no_defaults is not None:
        yield forbidden_value(f"{path}.default", f"must not be set {place.no_defaults}")
    for keyword in _UNSUPPORTED:
        if schema.get(keyword) not in (None, "", {}, []):
            yield forbidden_value(f"{path}.{keyword}", f"{keyword} is not supported")
    if isinstance(schema.get("items"), list):
        yield forbidden_value(f"{path}.items", "items must be a schema object and not an array")
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden_value(f"{path}.uniqueItems", detail)
    if schema.get("properties") and schema.get("additionalProperties") not in (None, True):
        detail = "additionalProperties and properties are mutual exclusive"
        yield forbidden_value(f"{path}.additionalProperties", detail)
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield invalid(False, "must be true or undefined")(f"{path}.x-kubernetes-preserve-unknown-fields")
    yield from collection_causes(schema, path)
    yield from rule_causes(schema, path)
