"""``set-labels``: labels on every resource, and on the selectors and templates that go with them.

Source: ``kpt.md`` 4.5.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from krm.functions.builtin import Behaviour, Builtin, Option
from krm.functions.config_values import FN_GROUP, ConfigKind, text_map
from krm.functions.field_paths import FieldTypeError, maps_at
from krm.functions.images import Version
from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList
from krm.package.resource_identity import identity_of, is_local_config

_FAILURE = "failed to evaluate function: error: function failure"
_CURRENT: Version = (0, 2, 0)
"""Older tags follow kustomize's commonLabels."""


@dataclass(frozen=True, slots=True)
class _Field:
    """A map that gets the labels: of which kinds, where, and whether it is created."""

    kinds: frozenset[tuple[str | None, str]]
    """Group (None for any) and kind."""
    path: tuple[str, ...]
    create: bool

    def applies_to(self, group: str, kind: str) -> bool:
        return not self.kinds or (group, kind) in self.kinds or (None, kind) in self.kinds


def _kinds(*names: str) -> frozenset[tuple[str | None, str]]:
    """Read ``group/Kind``, with ``*`` for any group and nothing for the core group."""
    pairs = (name.rpartition("/") for name in names)
    return frozenset((None if group == "*" else group, kind) for group, _, kind in pairs)


_REPLICATED = ("*/Deployment", "*/ReplicaSet", "*/DaemonSet", "apps/StatefulSet")
_TEMPLATED = _kinds("ReplicationController", *_REPLICATED, "batch/Job")
_NETWORK_POLICY = _kinds("networking.k8s.io/NetworkPolicy")
_CRON_JOB = _kinds("batch/CronJob")
_POD = ("spec", "template", "metadata", "labels")
_SPREAD = ("spec", "template", "spec", "topologySpreadConstraints", "[]", "labelSelector", "matchLabels")


def _field(kinds: frozenset[tuple[str | None, str]], path: str, *, create: bool) -> _Field:
    return _Field(kinds, tuple(path.split("/")), create)


_FIELDS = (
    _field(_kinds(), "metadata/labels", create=True),
    _field(_kinds("Service", "ReplicationController"), "spec/selector", create=True),
    _field(_kinds(*_REPLICATED), "spec/selector/matchLabels", create=True),
    _field(_kinds("batch/Job", "policy/PodDisruptionBudget"), "spec/selector/matchLabels", create=False),
    _field(_NETWORK_POLICY, "spec/podSelector/matchLabels", create=False),
    _field(_NETWORK_POLICY, "spec/ingress/[]/from/[]/podSelector/matchLabels", create=False),
    _field(_NETWORK_POLICY, "spec/egress/[]/to/[]/podSelector/matchLabels", create=False),
    _Field(_TEMPLATED, _POD, create=True),
    _Field(_TEMPLATED, _SPREAD, create=False),
    _field(_CRON_JOB, "spec/jobTemplate/metadata/labels", create=True),
    _field(_CRON_JOB, "spec/jobTemplate/spec/selector/matchLabels", create=False),
    _Field(_CRON_JOB, ("spec", "jobTemplate", *_POD), create=True),
    _Field(_CRON_JOB, ("spec", "jobTemplate", *_SPREAD), create=False),
    _field(_kinds("apps/StatefulSet"), "spec/volumeClaimTemplates/[]/metadata/labels", create=True),
)
_AFFINITY_KINDS = _kinds("apps/Deployment", "apps/StatefulSet")
_AFFINITY_FIELDS = tuple(
    _field(_AFFINITY_KINDS, f"spec/template/spec/affinity/{affinity}/{selector}/matchLabels", create=False)
    for affinity in ("podAffinity", "podAntiAffinity")
    for selector in (
        "requiredDuringSchedulingIgnoredDuringExecution/[]/labelSelector",
        "preferredDuringSchedulingIgnoredDuringExecution/[]/podAffinityTerm/labelSelector",
    )
)
"""Reached by v0.1 only: later versions look in the wrong place, and their results are what users have."""


def set_labels(resources: ResourceList, version: Version) -> FunctionResult:
    """Run the function."""
    if version < _CURRENT:
        return _set_common_labels(resources)
    targets = [item for item in resources.items if not is_local_config(item.data)]
    if not targets:
        return _info(resources, "no input resources")
    config = resources.config
    if config is None or not (config.data.get("kind") or config.data.get("metadata")):
        given = {"message": "`FunctionConfig` is not given", "severity": "info"}
        return FunctionResult.failure(resources, [given], _FAILURE)
    kind = ConfigKind.of(config)
    if not (kind.is_config_map or (kind.kind, kind.group) == ("SetLabels", FN_GROUP)):
        shown = f"{kind.kind}.{kind.group or kind.version}"
        message = f"unknown FunctionConfig `{shown}`, expect `SetLabels.{FN_GROUP}` or `ConfigMap.v1`"
        return FunctionResult.failure(resources, [{"message": message, "severity": "error"}], _FAILURE)
    labels = text_map(config, "data" if kind.is_config_map else "labels")
    if not labels:
        message = "no `labels` arguments are given in FunctionConfig"
        return FunctionResult(resources.items, [{"message": message, "severity": "warning"}])
    return _label_all(resources, targets, labels)


def _label_all(resources: ResourceList, targets: list[Resource], labels: Mapping[str, str]) -> FunctionResult:
    count = 0
    errors = []
    for item in targets:
        try:
            for found, label_field in _label_maps(item.data, _FIELDS):
                # Where nothing is created, a selector's own labels change but none is added.
                present = labels if label_field.create else labels.keys() & found.keys()
                _write(found, {key: labels[key] for key in present})
                count += len(labels)
        except FieldTypeError as error:
            errors.append({"message": str(error), "severity": "error", "file": {"path": item.path}})
    if errors:
        return FunctionResult.failure(resources, errors, _FAILURE)
    return _info(resources, f"set {count} labels in total")


def _set_common_labels(resources: ResourceList) -> FunctionResult:
    """Behave as v0.1 did: no results, local configuration included, affinities too."""
    config = resources.config
    labels = _common_labels(config) if config else {}
    if config is None or not labels:
        message = "failed to configure function: input label list cannot be empty"
        return FunctionResult.failure(resources, [{"message": message, "severity": "error"}], f"[error]: {message}")
    try:
        for item in resources.items:
            for found, _ in _label_maps(item.data, (*_FIELDS, *_AFFINITY_FIELDS, *_additional_fields(config))):
                _write(found, labels)
    except FieldTypeError as error:
        return FunctionResult.failure(resources, [{"message": str(error), "severity": "error"}], f"[error]: {error}")
    return FunctionResult(resources.items)


def _common_labels(config: FunctionConfig) -> dict[str, str]:
    return text_map(config, "data" if ConfigKind.of(config).is_config_map else "labels")


def _additional_fields(config: FunctionConfig) -> Iterator[_Field]:
    fields = config.data.get("additionalLabelFields") or config.data.get("fieldSpecs") or []
    for spec in fields if isinstance(fields, list) else []:
        if isinstance(spec, dict) and isinstance(spec.get("path"), str):
            kind = spec.get("kind")
            kinds: frozenset[tuple[str | None, str]] = frozenset([(spec.get("group"), kind)]) if kind else frozenset()
            yield _Field(kinds, tuple(spec["path"].split("/")), create=spec.get("create") == "true")


def _label_maps(data: dict[str, Any], fields: tuple[_Field, ...]) -> Iterator[tuple[dict[str, Any], _Field]]:
    """Yield every map of a resource that gets the labels, and why; templates are never created."""
    now = identity_of(data)
    for label_field in fields:
        if label_field.applies_to(now.group, now.kind) and _has_template(data, label_field.path):
            for found in maps_at(data, label_field.path, create=label_field.create):
                yield found, label_field


def _has_template(data: dict[str, Any], path: tuple[str, ...]) -> bool:
    for name in path[:-1]:
        if name not in ("spec", "template", "jobTemplate"):
            return True
        value = data.get(name)
        if not isinstance(value, dict):
            return False
        data = value
    return True


def _write(found: dict[str, Any], labels: Mapping[str, str]) -> None:
    for key in sorted(labels):
        found[key] = labels[key]


def _info(resources: ResourceList, message: str) -> FunctionResult:
    return FunctionResult(resources.items, [{"message": message, "severity": "info"}])


FUNCTION = Builtin(
    name="set-labels",
    run=lambda resources, _, version: set_labels(resources, version),
    summary="Adds labels to every resource, and to the selectors and templates that go with them.",
    source="kpt.md 4.5",
    tags=("v0.1.3", "v0.1.4", "v0.1.5", "v0.2.0", "v0.2.1", "v0.2.2", "v0.2.3", "v0.2.4"),
    config_kinds=("ConfigMap", "SetLabels.fn.kpt.dev"),
    options=(
        Option("data.<key>", "ConfigMap: the value of the label", required=True),
        Option("labels", "SetLabels: map of labels", required=True),
        Option("additionalLabelFields", "v0.1 only: list of {group, version, kind, path, create}"),
    ),
    behaviours=(
        Behaviour("v0.1.x", "follows kustomize's commonLabels: affinities and local configuration too, no results"),
        Behaviour("v0.2.0 and later, latest", "leaves local configuration alone and counts what it visited"),
    ),
)
