"""``set-annotations``: annotations on every resource and its pod templates. Source: ``kpt.md`` 4.8."""

from krm.functions.builtin import Behaviour, Builtin, Option
from krm.functions.catalog.config_values import ConfigKind, Json, file_of, text_map
from krm.functions.catalog.field_specs import FieldSpec, FieldSpecError, FieldSpecs, read_field_specs
from krm.functions.catalog.unique_resources import TwinError, refuse_twins
from krm.functions.go_text import json_text
from krm.functions.images import Version
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList

_WITH_RESULTS: Version = (0, 1, 5)
_KINDS = ("SetAnnotations", "SetAnnotationConfig")
"""The configuration's kind, and what it was called before."""
_POD = "spec/template/metadata/annotations"
_DEFAULTS = (
    FieldSpec("metadata/annotations", create=True),
    FieldSpec(_POD, version="v1", kind="ReplicationController", create=True),
    *(FieldSpec(_POD, kind=kind, create=True) for kind in ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet")),
    FieldSpec(_POD, group="batch", kind="Job", create=True),
    FieldSpec("spec/jobTemplate/metadata/annotations", group="batch", kind="CronJob", create=True),
    FieldSpec("spec/jobTemplate/spec/template/metadata/annotations", group="batch", kind="CronJob", create=True),
)


class _ConfigError(Exception):
    """The configuration cannot be used."""


def set_annotations(resources: ResourceList, version: Version) -> FunctionResult:
    """Run the function."""
    try:
        annotations, specs = _configure(resources.config)
        refuse_twins(resources.items)
        written = _annotate_all(resources.items, specs, annotations)
    except (_ConfigError, FieldSpecError, TwinError) as error:
        message = str(error)
        return FunctionResult.failure(resources, [{"message": message, "severity": "error"}], f"[error]: {message}")
    return FunctionResult(resources.items, _results(written, annotations) if version >= _WITH_RESULTS else [])


def _configure(config: FunctionConfig | None) -> tuple[dict[str, str], FieldSpecs]:
    """Return the annotations in order, and where they go."""
    kind = ConfigKind.of(config) if config else None
    if config is None or kind is None or not (kind.is_config_map or kind.kind in _KINDS):
        raise _ConfigError("failed to configure function: `functionConfig` must be a `ConfigMap` or `SetAnnotations`")
    try:
        specs = read_field_specs(config, "additionalAnnotationFields", "fieldSpecs")
    except FieldSpecError as error:
        raise _ConfigError(f"failed to configure function: {error}") from None
    annotations = text_map(config, "data" if kind.is_config_map else "annotations")
    if not annotations:
        raise _ConfigError("failed to configure function: input annotation list cannot be empty")
    return dict(sorted(annotations.items())), FieldSpecs([*specs, *_DEFAULTS])


def _annotate_all(
    items: list[Resource], specs: FieldSpecs, annotations: dict[str, str]
) -> list[tuple[Resource, FieldSpec]]:
    """Write the annotations wherever the specs lead; return where they led to something."""
    written = []
    for item in items:
        for spec in specs.of(item.data):
            maps = list(spec.maps_of(item.data))
            for found in maps:
                found.update(annotations)
            if maps:
                written.append((item, spec))
    return written


def _results(written: list[tuple[Resource, FieldSpec]], annotations: dict[str, str]) -> list[Json]:
    if not written:
        return [{"message": "no annotations applied"}]
    message = f"set annotations: {json_text(annotations)}"
    places = {(item.path, item.index or 0, ".".join(spec.names)) for item, spec in written}
    return [
        {"message": message, "field": {"path": field}, "file": file_of(path, index)}
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
        Option(
            "additionalAnnotationFields",
            "more maps that get the annotations, formerly `fieldSpecs`: list of {group, version, kind, path, create}; "
            "steps of the path are separated by `/` (`\\/` for the character), lists on the way need no mention",
        ),
    ),
    behaviours=(
        Behaviour("up to v0.1.4", "no results"),
        Behaviour("v0.1.5 and later, latest", "a result for every map that was written"),
    ),
)
