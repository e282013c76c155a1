"""``builtins/gen-pkg-context``: the package context of the package that is rendered.

Source: ``kpt.md`` 1.9; what an existing context keeps, ``decisions.md`` 16.
"""

from krm.functions.builtin import Builtin, Option
from krm.functions.catalog.config_values import file_of, text_map
from krm.functions.resource import Resource
from krm.functions.runner import FunctionResult, ResourceList
from krm.package.package_context import CONTEXT_PATH, is_package_context, new_package_context
from krm.package.resource_identity import identity_of
from krm.package.yaml_reader import read_document

_PACKAGE_PATH = "package-path"


def generate_package_context(resources: ResourceList) -> FunctionResult:
    """Run the function; an existing context keeps its other keys, those of subpackages stay as they are."""
    kptfile = _root_kptfile(resources.items)
    if kptfile is None:
        return FunctionResult(resources.items)
    package_path = text_map(resources.config, "data").get(_PACKAGE_PATH) if resources.config else ""
    wanted = {"name": identity_of(kptfile.data).name, **({_PACKAGE_PATH: package_path} if package_path else {})}
    contexts = [item for item in resources.items if item.package == kptfile.package and is_package_context(item.data)]
    contexts.sort(key=lambda item: item.path != CONTEXT_PATH)
    superfluous = set(map(id, contexts[1:]))
    items = [item for item in resources.items if id(item) not in superfluous]
    if contexts:
        context = contexts[0]
        old = context.data.get("data")
        context.data["data"] = {**(old if isinstance(old, dict) else {}), **wanted}
    else:
        data = read_document(new_package_context(wanted))
        context = Resource(data, CONTEXT_PATH, 0, kptfile.package)
        items.append(context)
    told = {"message": "generated package context", "severity": "info", "file": file_of(context.path, context.index)}
    return FunctionResult(items, [told])


def _root_kptfile(items: list[Resource]) -> Resource | None:
    """Return the Kptfile of the package that all others lie in."""
    kptfiles = [item for item in items if item.path == "Kptfile" and item.data.get("kind") == "Kptfile"]
    return min(kptfiles, key=lambda item: len(item.package), default=None)


FUNCTION = Builtin(
    name="gen-pkg-context",
    run=lambda resources, *_: generate_package_context(resources),
    summary="As `builtins/gen-pkg-context`: writes the name of the package, and where it lies, into its package context.",
    source="kpt.md 1.9",
    tags=(),
    config_kinds=("ConfigMap",),
    options=(Option(f"data.{_PACKAGE_PATH}", "where the package lies, one name for each level"),),
)
