"""The functions that run in this process, by image name and tag. Source: ``kpt.md`` 4.2 and 4.3."""

from collections.abc import Collection, Iterator, Mapping
from functools import cache, lru_cache
from importlib import import_module

from krm.functions.builtin import Builtin
from krm.functions.images import DEFAULT_PREFIX, Image, Version, parse_image
from krm.functions.outside_tools import outside_tool
from krm.functions.runner import (
    FunctionConfig,
    FunctionNotFound,
    FunctionResult,
    NoMatchingTag,
    ResourceList,
)

PREFIXES = (DEFAULT_PREFIX, "gcr.io/kpt-fn/")
"""Registries whose images the built-ins stand in for."""
_OWN_PREFIX = "builtins/"
_OWN = frozenset(("gen-pkg-context",))
"""Functions that come with kpt itself and not from a registry."""

_MODULES = {
    "apply-replacements": "krm.functions.catalog.apply_replacements",
    "apply-setters": "krm.functions.catalog.apply_setters",
    "create-setters": "krm.functions.catalog.create_setters",
    "delete-annotations": "krm.functions.catalog.delete_annotations",
    "drop-comments": "krm.functions.catalog.drop_comments",
    "enable-gcp-services": "krm.functions.catalog.enable_gcp_services",
    "ensure-name-substring": "krm.functions.catalog.ensure_name_substring",
    "fix": "krm.functions.catalog.fix",
    "format": "krm.functions.catalog.format",
    "gen-pkg-context": "krm.functions.catalog.gen_package_context",
    "kubeconform": "krm.functions.catalog.kubeconform",
    "kubeval": "krm.functions.catalog.kubeval",
    "list-setters": "krm.functions.catalog.list_setters",
    "no-op": "krm.functions.catalog.no_op",
    "remove-local-config-resources": "krm.functions.catalog.remove_local_config_resources",
    "search-replace": "krm.functions.catalog.search_replace",
    "set-annotations": "krm.functions.catalog.set_annotations",
    "set-enforcement-action": "krm.functions.catalog.set_enforcement_action",
    "set-image": "krm.functions.catalog.set_image",
    "set-labels": "krm.functions.catalog.set_labels",
    "set-name-prefix": "krm.functions.catalog.set_name_prefix",
    "set-namespace": "krm.functions.catalog.set_namespace",
    "set-project-id": "krm.functions.catalog.set_project_id",
    "starlark": "krm.functions.catalog.starlark.function",
    "upsert-resource": "krm.functions.catalog.upsert_resource",
}
"""Name of each function → the module whose ``FUNCTION`` it is: one line for each, in order."""


class _Builtins(Mapping[str, Builtin]):
    """Imports a function's module when it is first asked for: a package uses a few of them, not all."""

    def __init__(self, replaced: Mapping[str, Builtin]) -> None:
        self._replaced = replaced

    def __getitem__(self, name: str) -> Builtin:
        return self._replaced.get(name) or _load(_MODULES[name])

    def __contains__(self, name: object) -> bool:
        return name in _MODULES

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


@cache
def _load(module: str) -> Builtin:
    function: Builtin = import_module(module).FUNCTION
    return function


BUILTINS: Mapping[str, Builtin] = _Builtins({})
"""All built-in functions by name."""


def builtins_with(replaced: Mapping[str, Builtin]) -> Mapping[str, Builtin]:
    """Return all built-in functions by name, some of them made for this process."""
    return _Builtins(replaced)


def builtin_name(image: str) -> str | None:
    """Return which built-in function a well-formed image is by its name, whatever its tag; None for another function."""
    parsed = parse_image(image)
    prefixes = (_OWN_PREFIX,) if parsed.base in _OWN else PREFIXES
    return parsed.base if parsed.prefix in prefixes and parsed.base in BUILTINS else None


class BuiltinRunner:
    """Runs the built-in functions."""

    def __init__(self, *, prefixes: Collection[str] = PREFIXES, functions: Mapping[str, Builtin] = BUILTINS) -> None:
        """``prefixes`` are the registries whose images they stand in for, each with its closing slash."""
        self._prefixes = frozenset(prefixes)
        self._functions = functions

    def run(self, image: str, resources: ResourceList) -> FunctionResult:
        """Run a function; see the port."""
        function, parsed, version = self._find(image)
        return function.run(resources, parsed, version)

    def require(self, image: str) -> None:
        """Refuse images that are not built in; see the port."""
        self._find(image)

    def resolve(self, image: str, constraint: str) -> str:
        """Choose from the tags that the built-in declares, without any registry; see the port."""
        parsed = parse_image(image)
        tag = _newest_tag(self._named(parsed, image).tags, constraint)
        if tag is None:
            raise NoMatchingTag(constraint)
        return f"{parsed.name}:{tag}"

    def is_deterministic(self, image: str, config: FunctionConfig | None) -> bool:
        """Say what the built-in's description says; see the port."""
        return self._find(image)[0].is_deterministic(config)

    def _find(self, text: str) -> tuple[Builtin, Image, Version]:
        image = parse_image(text)
        function = self._named(image, text)
        version = image.version
        if version is None or (image.digest and not image.tag):
            raise FunctionNotFound(
                text,
                f"the built-in {image.base} is chosen by a version tag such as "
                f"{function.tags[-1] if function.tags else 'v0.1'} or latest: give the image such a tag",
            )
        return function, image, version

    def _named(self, image: Image, text: str) -> Builtin:
        prefixes = (_OWN_PREFIX,) if image.base in _OWN else self._prefixes
        function = self._functions.get(image.base) if image.prefix in prefixes else None
        if function is None:
            if image.prefix in prefixes and (tool := outside_tool(image.base)):
                raise FunctionNotFound(text, tool)
            names = ", ".join(sorted(self._functions))
            raise FunctionNotFound(text, f"it is not a built-in function ({names}) under {DEFAULT_PREFIX}")
        return function


@lru_cache(maxsize=256)
def _newest_tag(tags: tuple[str, ...], constraint: str) -> str | None:
    from krm.functions.version_range import newest_tag  # semver takes 15 ms to import

    return newest_tag(tags, constraint)
