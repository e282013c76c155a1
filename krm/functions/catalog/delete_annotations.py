"""``delete-annotations``: take annotations away from every resource. Source: ``kpt.md`` 4.16."""

from krm.functions.builtin import Builtin, Option
from krm.functions.catalog.config_values import config_result
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList
from krm.package.resource_identity import annotations_of

_FAILURE = "failed to evaluate function: error: function failure"
_KEY = "annotationKeys"


def delete_annotations(resources: ResourceList) -> FunctionResult:
    """Run the function; a map of annotations that it empties goes with them."""
    keys = _keys(resources.config)
    if not keys:
        return FunctionResult.failure(
            resources, [config_result(f"`{_KEY}` should not be empty", resources.config)], _FAILURE
        )
    for item in resources.items:
        annotations = annotations_of(item.data)
        found = keys & annotations.keys()
        for key in found:
            del annotations[key]
        if found and not annotations:
            del item.data["metadata"]["annotations"]
    return FunctionResult(resources.items)


def _keys(config: FunctionConfig | None) -> set[str]:
    data = config.data.get("data") if config else None
    text = data.get(_KEY) if isinstance(data, dict) else None
    return {key.strip() for key in text.split(",") if key.strip()} if isinstance(text, str) else set()


FUNCTION = Builtin(
    name="delete-annotations",
    run=lambda resources, *_: delete_annotations(resources),
    summary="Removes annotations from every resource.",
    source="kpt.md 4.16",
    tags=("v0.1.0",),
    config_kinds=("ConfigMap",),
    options=(Option(f"data.{_KEY}", "the keys, separated by commas", required=True),),
)
