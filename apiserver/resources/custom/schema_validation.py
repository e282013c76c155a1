"""Checks of the schemas of a CustomResourceDefinition, version by version. Source: ``kube-api.md`` 2.15."""

from collections.abc import Iterator
from typing import Any

from apiserver.machinery.definition import Json
from apiserver.machinery.structural import structural_causes
from krm.meta.errors import Cause


def schema_causes(new: Json, old: Json | None) -> Iterator[Cause]:
    """Yield what is wrong with the schemas that are new, or not what they were.

    A schema that all versions share stands, as in kube-apiserver, at ``spec.validation``.
    """
    known = [_schema(version) for version in _versions(old or {})]
    schemas = [_schema(version) for version in _versions(new)]
    shared = all(schema == schemas[0] for schema in schemas)
    for index, schema in enumerate(schemas[:1] if shared else schemas):
        if isinstance(schema, dict) and schema not in known:
            path = "spec.validation" if shared else f"spec.versions[{index}].schema"
            yield from structural_causes(schema, f"{path}.openAPIV3Schema")


def _versions(crd: Json) -> list[Json]:
    return (crd.get("spec") or {}).get("versions") or []


def _schema(version: Json) -> Any:
    return (version.get("schema") or {}).get("openAPIV3Schema")
