"""OpenAPI documents of Kubernetes, v2 and v3, and CustomResourceDefinitions: which schema belongs to which kind.

Source: ``kpt.md`` 4.18.
"""

import json
import lzma
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

Schema = dict[str, Any]
Kind = tuple[str, str]
"""apiVersion and kind."""

REFERENCE_PREFIXES = ("#/definitions/", "#/components/schemas/")
_GVK = "x-kubernetes-group-version-kind"
_CRD = ("apiextensions.k8s.io", "CustomResourceDefinition")


class SchemaError(ValueError):
    """A document that schemas shall come from is none; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True, eq=False)
class SchemaDocument:
    """The schemas of one source, by kind."""

    kinds: Mapping[Kind, Schema]
    definitions: Mapping[str, Schema] = field(default_factory=dict)
    """What ``$ref`` in the schemas names."""
    optional_may_be_null: bool = True
    """Whether ``null`` stands for a property that may be absent: true for Kubernetes' own, which do not say it."""
    compiled: dict[Any, Any] = field(default_factory=dict)
    """What was made of the schemas so far, for whoever uses them."""


def openapi_document(text: str | bytes) -> SchemaDocument:
    """Read an OpenAPI document, v2 or v3, in JSON.

    Raises:
        SchemaError: it is not JSON, or has no definitions.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise SchemaError("not an OpenAPI document: it must be an object")
    components = document.get("components")
    is_v3 = isinstance(components, dict)
    definitions = components.get("schemas") if isinstance(components, dict) else document.get("definitions")
    if not isinstance(definitions, dict) or not all(isinstance(schema, dict) for schema in definitions.values()):
        raise SchemaError("not an OpenAPI document: it has neither definitions (v2) nor components.schemas (v3)")
    kinds = {kind: schema for schema in definitions.values() for kind in _kinds_of(schema)}
    return SchemaDocument(kinds, definitions, optional_may_be_null=not is_v3)


def custom_definitions(objects: Iterable[Mapping[str, Any]]) -> SchemaDocument:
    """Return the schemas of the CustomResourceDefinitions among ``objects``; malformed ones define nothing."""
    kinds: dict[Kind, Schema] = {}
    for data in objects:
        if (str(data.get("apiVersion")).partition("/")[0], data.get("kind")) != _CRD:
            continue
        spec = _mapping(data.get("spec"))
        kind, group = _mapping(spec.get("names")).get("kind"), spec.get("group")
        shared = _mapping(_mapping(spec.get("validation")).get("openAPIV3Schema"))
        versions = spec.get("versions")
        for version in versions if isinstance(versions, list) else [{"name": spec.get("version")}]:
            schema = _mapping(_mapping(_mapping(version).get("schema")).get("openAPIV3Schema")) or shared
            if isinstance(kind, str) and schema:
                kinds[f"{group}/{_mapping(version).get('name')}", kind] = dict(schema)
    return SchemaDocument(kinds, optional_may_be_null=False)


def kubernetes_text() -> str:
    """Return Kubernetes' definitions, which the project carries, as JSON; 270 KB."""
    return lzma.decompress(files(__package__).joinpath("kubernetes.json.xz").read_bytes()).decode()


@cache
def kubernetes_document() -> SchemaDocument:
    """Return the schemas of Kubernetes' own kinds; read when first asked for, in about 10 ms."""
    return openapi_document(kubernetes_text())


def _kinds_of(schema: Schema) -> Iterable[Kind]:
    kinds = schema.get(_GVK)
    for entry in kinds if isinstance(kinds, list) else ():
        if isinstance(entry, dict):
            group, version = entry.get("group"), str(entry.get("version"))
            yield f"{group}/{version}" if group else version, str(entry.get("kind"))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
