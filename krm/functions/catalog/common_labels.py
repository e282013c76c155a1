"""``set-labels`` v0.1: kustomize's commonLabels, which also adds to selectors it finds. Source: ``kpt.md`` 4.5, end."""

from krm.functions.catalog.config_values import ConfigKind, text_map
from krm.functions.catalog.field_specs import FieldSpec, FieldSpecError, FieldSpecs, read_field_specs
from krm.functions.catalog.unique_resources import TwinError, refuse_twins
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList

_KINDS = ("SetLabels", "SetLabelConfig")
"""The configuration's kind, and what it was called before."""


def _specs(path: str, *kinds: str, create: bool) -> list[FieldSpec]:
    """Return the specs of a path for ``group/version/Kind``s; empty parts match all."""
    parts = (kind.split("/") for kind in kinds)
    return [FieldSpec(path, group, version, kind, create=create) for group, version, kind in parts]


_REPLICATED = ("//Deployment", "//ReplicaSet", "//DaemonSet", "apps//StatefulSet")
_SPREAD = ("apps//Deployment", "apps//StatefulSet")
_SPECS = (
    FieldSpec("metadata/labels", create=True),
    *_specs("spec/selector", "/v1/Service", "/v1/ReplicationController", create=True),
    *_specs("spec/selector/matchLabels", *_REPLICATED, create=True),
    *_specs("spec/selector/matchLabels", "batch//Job", "policy//PodDisruptionBudget", create=False),
    *_specs("spec/podSelector/matchLabels", "networking.k8s.io//NetworkPolicy", create=False),
    *_specs("spec/ingress/from/podSelector/matchLabels", "networking.k8s.io//NetworkPolicy", create=False),
    *_specs("spec/egress/to/podSelector/matchLabels", "networking.k8s.io//NetworkPolicy", create=False),
    *_specs("spec/template/metadata/labels", "/v1/ReplicationController", *_REPLICATED, "batch//Job", create=True),
    *_specs("spec/template/spec/topologySpreadConstraints/labelSelector/matchLabels", *_SPREAD, create=False),
    *(
        spec
        for affinity in ("podAffinity", "podAntiAffinity")
        for selector in (
            "requiredDuringSchedulingIgnoredDuringExecution/labelSelector",
            "preferredDuringSchedulingIgnoredDuringExecution/podAffinityTerm/labelSelector",
        )
        for spec in _specs(f"spec/template/spec/affinity/{affinity}/{selector}/matchLabels", *_SPREAD, create=False)
    ),
    *_specs("spec/jobTemplate/metadata/labels", "batch//CronJob", create=True),
    *_specs("spec/jobTemplate/spec/selector/matchLabels", "batch//CronJob", create=False),
    *_specs("spec/jobTemplate/spec/template/metadata/labels", "batch//CronJob", create=True),
    *_specs("spec/volumeClaimTemplates/metadata/labels", "apps//StatefulSet", create=True),
)


class _ConfigError(Exception):
    """The configuration cannot be used."""


def set_common_labels(resources: ResourceList) -> FunctionResult:
    """Run the function: no results, local configuration included."""
    try:
        labels, specs = _configure(resources.config)
        refuse_twins(resources.items)
        for item in resources.items:
            for spec in specs.of(item.data):
                for found in spec.maps_of(item.data):
                    found.update(labels)
    except (_ConfigError, FieldSpecError, TwinError) as error:
        message = str(error)
        return FunctionResult.failure(resources, [{"message": message, "severity": "error"}], f"[error]: {message}")
    return FunctionResult(resources.items)


def _configure(config: FunctionConfig | None) -> tuple[dict[str, str], FieldSpecs]:
    """Return the labels in order, and the specs."""
    kind = ConfigKind.of(config) if config else None
    if config is None or kind is None or not (kind.is_config_map or kind.kind in _KINDS):
        raise _ConfigError("failed to configure function: `functionConfig` must be a `ConfigMap` or `SetLabels`")
    labels = text_map(config, "data" if kind.is_config_map else "labels")
    if not labels:
        raise _ConfigError("failed to configure function: input label list cannot be empty")
    try:
        specs = read_field_specs(config, "additionalLabelFields", "fieldSpecs")
    except FieldSpecError as error:
        raise _ConfigError(f"failed to configure function: {error}") from None
    return dict(sorted(labels.items())), FieldSpecs([*specs, *_SPECS])
