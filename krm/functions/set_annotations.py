"""``set-annotations``: annotations on every resource and its pod templates. Source: ``kpt.md`` 4.8."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from krm.functions.builtin import Behaviour, Builtin, Option
from krm.functions.config_values import ConfigKind, file_of, text_map
from krm.functions.images import Version
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList
from krm.package.resource_identity import Identity, identity_of

_WITH_RESULTS: Version = (0, 1, 5)
_KINDS = ("SetAnnotations", "SetAnnotationConfig")
"""The configuration's kind, and what it was called before."""
_SEPARATOR = re.compile(r"(?<!\\)/")


class _ConfigError(Exception):
    """The configuration cannot be used."""


@dataclass(frozen=True, slots=True)
class _FieldSpec:
    """Maps that get the annotations; empty group, version and kind match all."""

    path: str
    create: bool = True
    group: str = ""
    version: str = ""
    kind: str = ""

    def applies_to(self, data: dict[str, Any], now: Identity) -> bool:
        version = str(data.get("apiVersion") or "").rpartition("/")[2]
        return self.group in ("", now.group) and self.kind in ("", now.kind) and self.version in ("", version)

    @property
    def names(self) -> list[str]:
        return [name.replace("\\/", "/") for name in _SEPARATOR.split(self.path) if name]


_DEFAULTS = (
    _FieldSpec("metadata/annotations"),
    _FieldSpec("spec/template/metadata/annotations", version="v1", kind="ReplicationController"),
    *(
        _FieldSpec("spec/template/metadata/annotations", kind=kind)
        for kind in ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet")
    ),
    _FieldSpec("spec/template/metadata/annotations", group="batch", kind="Job"),
    _FieldSpec("spec/jobTemplate/metadata/annotations", group="batch", kind="CronJob"),
    _FieldSpec("spec/jobTemplate/spec/template/metadata/annotations", group="batch", kind="CronJob"),
)


def set_annotations(resources: ResourceList, version: Version) -> FunctionResult:
    """Run the function."""
    try:
        annotations, specs = _configure(resources.config)
        _refuse_twins(resources.items)
        written = [
            (item, spec)
            for item in resources.items
            for spec in specs
            if spec.applies_to(item.data, identity_of(item.data)) and _annotate(item.data, spec, annotations)
        ]
    except _ConfigError as error:
        message = str(error)
        return FunctionResult.failure(resources, [{"message": message, "severity": "error"}], f"[error]: {message}")
    results = _results(written, annotations) if version >= _WITH_RESULTS else []
    return FunctionResult(resources.items, results)


def _configure(config: FunctionConfig | None) -> tuple[dict[str, str], list[_FieldSpec]]:
    kind = ConfigKind.of(config) if config else None
    if config is None or kind is None or not (kind.is_config_map or kind.kind in _KINDS):
        raise _ConfigError("failed to configure function: `functionConfig` must be a `ConfigMap` or `SetAnnotations`")
    annotations = text_map(config, "data" if kind.is_config_map else "annotations")
    if not annotations:
        raise _ConfigError("failed to configure function: input annotation list cannot be empty")
    if config.data.get("fieldSpecs") and config.data.get("additionalAnnotationFields"):
        raise _ConfigError(
            "failed to configure function: `fieldSpecs` has been deprecated, "
            "please rename it to `additionalAnnotationFields`"
        )
    return annotations, [*_user_specs(config), *_DEFAULTS]


def _user_specs(config: FunctionConfig) -> Iterator[_FieldSpec]:
    specs = config.data.get("additionalAnnotationFields") or config.data.get("fieldSpecs") or []
    for spec in specs if isinstance(specs, list) else []:
        if not isinstance(spec, dict) or not isinstance(spec.get("path"), str):
            raise _ConfigError("failed to configure function: every annotation field needs a path")
        where = {key: str(spec.get(key) or "") for key in ("group", "version", "kind")}
        yield _FieldSpec(spec["path"], create=spec.get("create") == "true", **where)


def _refuse_twins(items: list[Resource]) -> None:
    seen = set()
    for item in items:
        key = (str(item.data.get("apiVersion")), identity_of(item.data))
        if key in seen:
            raise _ConfigError(
                f"may not add resource with an already registered id: {key[1].kind} {key[1].namespace}/{key[1].name}"
            )
        seen.add(key)


def _annotate(data: dict[str, Any], spec: _FieldSpec, annotations: dict[str, str]) -> bool:
    """Write the annotations wherever the path leads; say whether it led anywhere."""
    maps = list(_maps(data, spec.names, spec))
    for found in maps:
        for key in sorted(annotations):
            found[key] = annotations[key]
    return bool(maps)


def _maps(value: Any, names: list[str], spec: _FieldSpec) -> Iterator[dict[str, Any]]:
    """Walk along ``names``; lists are traversed without being named."""
    if isinstance(value, list):
        for item in value:
            yield from _maps(item, names, spec)
        return
    if not isinstance(value, dict):
        raise _ConfigError(f"considering field '{spec.path}': expected a map")
    if not names:
        yield value
        return
    if value.get(names[0]) is None:
        if not spec.create:
            return
        value[names[0]] = {}
    yield from _maps(value[names[0]], names[1:], spec)


def _results(written: list[tuple[Resource, _FieldSpec]], annotations: dict[str, str]) -> list[dict[str, Any]]:
    if not written:
        return [{"message": "no annotations applied"}]
    shown = json.dumps(annotations, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for char, escape in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        shown = shown.replace(char, escape)
    places = {(item.path, item.index or 0, ".".join(spec.names)) for item, spec in written}
    return [
        {"message": f"set annotations: {shown}", "field": {"path": field}, "file": file_of(path, index)}
        for path, index, field in sorted(places)
    ]


FUNCTION = Builtin(
    name="set-annotations",
    run=lambda resources, _, version: set_annotations(resources, version),
    summary="Adds annotations to every resource and to the templates in it.",
    source="kpt.md 4.8",
    tags=("v0.1.0", "v0.1.1", "v0.1.2", "v0.1.3", "v0.1.4", "v0.1.5", "v0.1.6"),
    config_kinds=("ConfigMap", "SetAnnotations.fn.kpt.dev", "SetAnnotationConfig"),
    options=(
        Option("data.<key>", "ConfigMap: the value of the annotation", required=True),
        Option("annotations", "SetAnnotations: map of annotations", required=True),
        Option("additionalAnnotationFields", "list of {group, version, kind, path, create}"),
    ),
    behaviours=(
        Behaviour("up to v0.1.4", "no results"),
        Behaviour("v0.1.5 and later, latest", "a result for every map that was written"),
    ),
)
