"""The functions that run in this process, by image name and tag. Source: ``kpt.md`` 4.2 and 4.3."""

from collections.abc import Collection
from functools import lru_cache

from krm.functions import (
    apply_replacements,
    apply_setters,
    create_setters,
    delete_annotations,
    drop_comments,
    enable_gcp_services,
    no_op,
    remove_local_config_resources,
    search_replace,
    set_annotations,
    set_enforcement_action,
    set_image,
    set_labels,
    set_namespace,
    set_project_id,
    upsert_resource,
)
from krm.functions.builtin import Builtin
from krm.functions.images import DEFAULT_PREFIX, Image, Version, parse_image
from krm.functions.runner import (
    FunctionConfig,
    FunctionNotFound,
    FunctionResult,
    FunctionRunner,
    NoMatchingTag,
    ResourceList,
)
from krm.functions.starlark import function as starlark

PREFIXES = (DEFAULT_PREFIX, "gcr.io/kpt-fn/")
"""Registries whose images the built-ins stand in for."""

_FUNCTIONS: tuple[Builtin, ...] = (
    apply_replacements.FUNCTION,
    apply_setters.FUNCTION,
    create_setters.FUNCTION,
    delete_annotations.FUNCTION,
    drop_comments.FUNCTION,
    enable_gcp_services.FUNCTION,
    no_op.FUNCTION,
    remove_local_config_resources.FUNCTION,
    search_replace.FUNCTION,
    set_annotations.FUNCTION,
    set_enforcement_action.FUNCTION,
    set_image.FUNCTION,
    set_labels.FUNCTION,
    set_namespace.FUNCTION,
    set_project_id.FUNCTION,
    starlark.FUNCTION,
    upsert_resource.FUNCTION,
)
BUILTINS = {function.name: function for function in _FUNCTIONS}


class BuiltinRunner:
    """Runs the built-in functions."""

    def __init__(self, *, prefixes: Collection[str] = PREFIXES) -> None:
        """``prefixes`` are the registries whose images they stand in for, each with its closing slash."""
        self._prefixes = frozenset(prefixes)

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

    def is_deterministic(self, image: str, config: FunctionConfig | None) -> bool:  # noqa: ARG002 - the port has it
        """Say what the built-in's description says; see the port."""
        return self._find(image)[0].deterministic

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
        function = BUILTINS.get(image.base) if image.prefix in self._prefixes else None
        if function is None:
            names = ", ".join(sorted(BUILTINS))
            raise FunctionNotFound(text, f"it is not a built-in function ({names}) under {DEFAULT_PREFIX}")
        return function


def builtin_runner() -> FunctionRunner:
    """Return a runner of the built-in functions."""
    return BuiltinRunner()


@lru_cache(maxsize=256)
def _newest_tag(tags: tuple[str, ...], constraint: str) -> str | None:
    from krm.functions.version_range import newest_tag  # semver takes 15 ms to import

    return newest_tag(tags, constraint)
