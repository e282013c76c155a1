"""``remove-local-config-resources``: drop what is meant for the package and not for a cluster.

Source: ``kpt.md`` 4.16.
"""

from typing import Any

from krm.functions.builtin import Builtin
from krm.functions.catalog.config_values import file_of
from krm.functions.resource import Resource
from krm.functions.runner import FunctionResult, ResourceList
from krm.package.resource_identity import LOCAL_CONFIG, annotations_of, identity_of


def remove_local_config_resources(resources: ResourceList) -> FunctionResult:
    """Run the function; a Kptfile that is annotated so goes too."""
    pruned = [item for item in resources.items if _is_local(item.data)]
    if not pruned:
        message = "Found no resources to prune with the local config annotation"
        return FunctionResult(resources.items, [{"message": message, "severity": "warning"}])
    gone = set(map(id, pruned))
    results = [{"message": f"Number of resources pruned: {len(pruned)}", "severity": "info"}]
    return FunctionResult(
        [item for item in resources.items if id(item) not in gone], results + list(map(_told, pruned))
    )


def _is_local(data: dict[str, Any]) -> bool:
    """Say whether the annotation is ``true`` in any case: stricter than what functions take for set."""
    return str(annotations_of(data).get(LOCAL_CONFIG)).lower() == "true"


def _told(item: Resource) -> dict[str, Any]:
    return {
        "message": f"Resource name: [{identity_of(item.data).name}]",
        "severity": "info",
        "file": file_of(item.path, None),
    }


FUNCTION = Builtin(
    name="remove-local-config-resources",
    run=lambda resources, *_: remove_local_config_resources(resources),
    summary="Drops the resources with the annotation `config.kubernetes.io/local-config: true`.",
    source="kpt.md 4.16",
    tags=("v0.1.0",),
)
