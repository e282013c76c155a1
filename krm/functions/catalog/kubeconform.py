"""The functions ``kubeconform`` and ``kubeval``: every resource is checked against its schema.

Schemas are those of Kubernetes that this project carries, CustomResourceDefinitions among the resources, and
OpenAPI documents in a folder that whoever runs the function names. Nothing is fetched. Source: ``kpt.md`` 4.18.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from krm.functions.builtin import Builtin, Option
from krm.functions.catalog.config_values import ConfigKind, config_result, file_of, text_map
from krm.functions.catalog.schemas.json_schema import json_schema
from krm.functions.catalog.schemas.openapi import (
    SchemaDocument,
    SchemaError,
    custom_definitions,
    kubernetes_document,
    openapi_document,
)
from krm.functions.catalog.schemas.violations import Checker
from krm.functions.images import Image, Version
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList

MAX_DOCUMENT = 32 << 20
"""Bytes of an OpenAPI document; that of a large cluster is a quarter of it."""
_FAILED = "failed to evaluate function: error: function failure"
_DEFAULT = "default"
"""How a schema location names the schemas of Kubernetes."""
_TRUE = {"1", "t", "T", "TRUE", "true", "True"}


@dataclass(frozen=True, slots=True)
class _Options:
    documents: tuple[SchemaDocument, ...]
    strict: bool
    ignore_missing: bool
    skipped: frozenset[str]


class _BadConfig(ValueError):
    """The configuration asks for what cannot be done."""


def check(resources: ResourceList, schema_directory: Path | None = None) -> FunctionResult:
    """Check all resources; the result fails with one error per violation, and changes nothing.

    ``schema_directory`` holds the OpenAPI documents that schema locations may name.
    """
    try:
        options = _options(resources, schema_directory)
    except _BadConfig as error:
        return FunctionResult.failure(resources, [config_result(str(error), resources.config)], _FAILED)
    results = [result for resource in resources.items for result in _checked(resource, options)]
    if results:
        return FunctionResult.failure(resources, results, _FAILED)
    return FunctionResult(resources.items)


def kubeconform(schema_directory: Path | None = None, *, name: str = "kubeconform") -> Builtin:
    """Return the function; ``schema_directory`` holds the OpenAPI documents that schema locations may name."""

    def run(resources: ResourceList, _image: Image, _version: Version) -> FunctionResult:
        return check(resources, schema_directory)

    return Builtin(
        name=name,
        run=run,
        summary="Checks every resource against the schema of its kind; changes nothing.",
        source="kpt.md 4.18",
        tags=("v0.1.0", "v0.1.1") if name == "kubeconform" else ("v0.1.0", "v0.1.1", "v0.2.0", "v0.3.0"),
        config_kinds=("ConfigMap",),
        options=_OPTIONS,
        is_deterministic=lambda _: schema_directory is None,  # its files may change
    )


_OPTIONS = (
    Option("schema_location", "instead of Kubernetes' schemas (`default`): an OpenAPI document of the schema folder"),
    Option("additional_schema_locations", "further such documents, separated by commas"),
    Option("ignore_missing_schemas", "`true`: kinds without a schema pass"),
    Option("skip_kinds", "kinds that are not checked, separated by commas: `Kind` or `group/version/Kind`"),
    Option("strict", "`true`: properties that the schema does not name are errors"),
)
FUNCTION = kubeconform()


def _options(resources: ResourceList, directory: Path | None) -> _Options:
    config = resources.config
    values = _values(config)
    locations = _listed(values.get("schema_location", _DEFAULT)) or [_DEFAULT]
    locations += _listed(values.get("additional_schema_locations", ""))
    documents = [_document(location, directory) for location in locations]
    documents.append(custom_definitions(item.data for item in resources.items))
    return _Options(
        tuple(documents),
        strict=values.get("strict") in _TRUE,
        ignore_missing=values.get("ignore_missing_schemas") in _TRUE,
        skipped=frozenset(_listed(values.get("skip_kinds", ""))),
    )


def _values(config: FunctionConfig | None) -> dict[str, str]:
    if config is None:
        return {}
    kind = ConfigKind.of(config)
    if not kind.is_config_map:
        raise _BadConfig(f"unknown FunctionConfig `{kind.kind}.{kind.group}`, expect `ConfigMap.v1`")
    return text_map(config, "data")


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _document(location: str, directory: Path | None) -> SchemaDocument:
    if location == _DEFAULT:
        return kubernetes_document()
    if "://" in location:
        raise _BadConfig(
            f"schema location {location} is not read: functions have no network; put the OpenAPI document into the "
            "schema folder and name it, or use `default`"
        )
    if directory is None:
        raise _BadConfig(f"schema location {location} is not known: no schema folder is configured; use `default`")
    path = PurePosixPath(location)
    file = (directory / path).resolve()
    if path.is_absolute() or not file.is_relative_to(directory.resolve()):
        raise _BadConfig(f"schema location {location} must be a path inside the schema folder")
    try:
        about = file.stat()
        if about.st_size > MAX_DOCUMENT:
            raise _BadConfig(f"schema location {location} is larger than {MAX_DOCUMENT >> 20} MiB")
        return _read(file, about.st_mtime_ns)
    except OSError as error:
        raise _BadConfig(f"schema location {location} cannot be read: {error.strerror}") from None
    except SchemaError as error:
        raise _BadConfig(f"schema location {location}: {error}") from None


@lru_cache(maxsize=8)
def _read(file: Path, _changed: int) -> SchemaDocument:
    return openapi_document(file.read_bytes())


def _checked(resource: Resource, options: _Options) -> Sequence[dict[str, Any]]:
    data = resource.data
    api_version, kind = str(data.get("apiVersion") or ""), str(data.get("kind") or "")
    if kind in options.skipped or f"{api_version}/{kind}" in options.skipped:
        return []
    document = next((each for each in options.documents if (api_version, kind) in each.kinds), None)
    if document is None:
        if options.ignore_missing:
            return []
        message = (
            f"could not find schema for {kind} ({api_version}); set `ignore_missing_schemas`, name the kind in "
            "`skip_kinds`, or add its CustomResourceDefinition to the package"
        )
        return [_result(resource, message)]
    try:
        violations = _checker(document, api_version, kind, options).violations(data)
    except SchemaError as error:
        return [_result(resource, f"schema of {kind} ({api_version}): {error}")]
    except RecursionError:
        return [_result(resource, f"schema of {kind} ({api_version}): it nests too deeply")]
    return [_result(resource, violation.message, violation.path) for violation in violations]


def _checker(document: SchemaDocument, api_version: str, kind: str, options: _Options) -> Checker:
    """Return the compiled schema; kept with its document, so that each is compiled once."""
    key = (api_version, kind, options.strict)
    checker = document.compiled.get(key)
    if checker is None:
        schema = json_schema(document, document.kinds[api_version, kind], strict=options.strict)
        checker = document.compiled[key] = Checker(schema)
    return checker


def _result(resource: Resource, message: str, path: str = "") -> dict[str, Any]:
    metadata = resource.data.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    reference = {
        "apiVersion": resource.data.get("apiVersion"),
        "kind": resource.data.get("kind"),
        "name": metadata.get("name"),
        "namespace": metadata.get("namespace"),
    }
    result: dict[str, Any] = {"message": message, "severity": "error"}
    result["resourceRef"] = {key: value for key, value in reference.items() if value}
    if path:
        result["field"] = {"path": path}
    if resource.path:
        result["file"] = file_of(resource.path, resource.index)
    return result
