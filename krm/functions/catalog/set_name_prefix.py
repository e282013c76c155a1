"""``set-name-prefix``: a package's own name in place of a blueprint's placeholder. Source: ``kpt.md`` 4.16."""

from krm.functions.builtin import Builtin, Option
from krm.functions.catalog.config_values import config_result, text_map
from krm.functions.catalog.renaming import Renames
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList
from krm.package.package_context import is_package_context
from krm.package.resource_identity import identity_of, is_local_config

_FAILURE = "failed to evaluate function: error: function failure"
_PLACEHOLDER = "packagename"
_EXCEPT = "ResourceGroup"


def set_name_prefix(resources: ResourceList) -> FunctionResult:
    """Run the function; names that do not start with the placeholder stay."""
    config = resources.config
    prefix, old = _configure(config)
    if not prefix:
        return FunctionResult.failure(resources, [config_result("`data.prefix` should not be empty", config)], _FAILURE)
    renamed = {}
    for item in resources.items:
        before = identity_of(item.data)
        if is_local_config(item.data) or before.kind == _EXCEPT:
            continue
        if before.name == old or before.name.startswith(f"{old}-"):
            name = prefix + before.name.removeprefix(old)
            item.data["metadata"]["name"] = name
            renamed[before] = name
    Renames(renamed).fix(resources.items)
    return FunctionResult(resources.items)


def _configure(config: FunctionConfig | None) -> tuple[str, str]:
    if config is None:
        return "", ""
    data = text_map(config, "data")
    prefix = data.get("name" if is_package_context(config.data) else "prefix", "")
    return prefix, data.get("oldPrefix") or _PLACEHOLDER


FUNCTION = Builtin(
    name="set-name-prefix",
    run=lambda resources, *_: set_name_prefix(resources),
    summary="Replaces a placeholder at the start of names, and changes the references to what it renames.",
    source="kpt.md 4.16",
    tags=("v0.1.0",),
    config_kinds=("ConfigMap",),
    options=(
        Option("data.prefix", "the new prefix (`data.name` of a package context)", required=True),
        Option("data.oldPrefix", f"what it replaces; `{_PLACEHOLDER}` when absent"),
    ),
)
