"""``set-labels``: labels on every resource, and on the selectors and templates that go with them.

Source: ``kpt.md`` 4.5.
"""

from typing import Any

from krm.functions.builtin import Behaviour, Builtin, Option
from krm.functions.catalog.common_labels import set_common_labels
from krm.functions.catalog.config_values import (
    ConfigKind,
    config_result,
    file_of,
    is_given,
    reference_of,
    text_map,
    unknown_kind,
)
from krm.functions.catalog.label_places import FieldTypeError, Labels, label_plan, write_labels
from krm.functions.images import Version
from krm.functions.resource import Resource
from krm.functions.runner import FunctionResult, ResourceList
from krm.package.resource_identity import is_local_config

_FAILURE = "failed to evaluate function: error: function failure"
_CURRENT: Version = (0, 2, 0)
"""Older tags follow kustomize's commonLabels."""


def set_labels(resources: ResourceList, version: Version) -> FunctionResult:
    """Run the function."""
    if version < _CURRENT:
        return set_common_labels(resources)
    config = resources.config
    results = []
    if not is_given(config):
        config = None
        results.append(_info("`FunctionConfig` is not given"))
    elif problem := unknown_kind(config, "SetLabels"):
        return FunctionResult.failure(resources, [config_result(problem, config)], _FAILURE)
    targets = [item for item in resources.items if not is_local_config(item.data)]
    if not targets:
        return FunctionResult(resources.items, [*results, _info("no input resources")])
    if config is None:
        return FunctionResult.failure(resources, results, _FAILURE)
    labels = text_map(config, "data" if ConfigKind.of(config).is_config_map else "labels")
    if not labels:
        message = "no `labels` arguments are given in FunctionConfig"
        return FunctionResult(resources.items, [{"message": message, "severity": "warning"}])
    return _label_all(resources, targets, sorted(labels.items()))


def _label_all(resources: ResourceList, targets: list[Resource], labels: Labels) -> FunctionResult:
    count = 0
    errors = []
    for item in targets:
        data = item.data
        try:
            count += write_labels(data, label_plan(str(data.get("apiVersion")), str(data.get("kind"))), labels)
        except FieldTypeError as error:
            errors.append(
                {
                    "message": str(error),
                    "severity": "error",
                    "resourceRef": reference_of(data),
                    "file": file_of(item.path, item.index),
                }
            )
    if errors:
        return FunctionResult.failure(resources, errors, _FAILURE)
    return FunctionResult(resources.items, [_info(f"set {count} labels in total")])


def _info(message: str) -> dict[str, Any]:
    return {"message": message, "severity": "info"}


FUNCTION = Builtin(
    name="set-labels",
    run=lambda resources, _, version: set_labels(resources, version),
    summary="Adds labels to every resource, and to the selectors and templates that go with them.",
    source="kpt.md 4.5",
    tags=("v0.1.3", "v0.1.4", "v0.1.5", "v0.2.0", "v0.2.1", "v0.2.2", "v0.2.3", "v0.2.4"),
    config_kinds=("ConfigMap", "SetLabels.fn.kpt.dev", "SetLabelConfig (v0.1)"),
    options=(
        Option("data.<key>", "ConfigMap: the value of the label", required=True),
        Option("labels", "SetLabels: map of labels", required=True),
        Option(
            "additionalLabelFields",
            "v0.1 only, formerly `fieldSpecs`: list of {group, version, kind, path, create}; steps of the path are "
            "separated by `/`, lists on the way need no mention",
        ),
    ),
    behaviours=(
        Behaviour("v0.1.x", "follows kustomize's commonLabels: affinities and local configuration too, no results"),
        Behaviour("v0.2.0 and later, latest", "leaves local configuration alone and counts what it visited"),
    ),
)
