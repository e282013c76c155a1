"""The functions that run in this process, by image name and tag. Source: ``kpt.md`` 4.2 and 4.3."""

from krm.functions import apply_setters, set_annotations, set_labels, set_namespace
from krm.functions.builtin import Builtin
from krm.functions.images import DEFAULT_PREFIX, Image, Version, parse_image
from krm.functions.runner import FunctionNotFound, FunctionResult, FunctionRunner, NoMatchingTag, ResourceList

PREFIXES = (DEFAULT_PREFIX, "gcr.io/kpt-fn/")
"""Registries whose images the built-ins stand in for."""

_FUNCTIONS: tuple[Builtin, ...] = (
    apply_setters.FUNCTION,
    set_annotations.FUNCTION,
    set_labels.FUNCTION,
    set_namespace.FUNCTION,
)
BUILTINS = {function.name: function for function in _FUNCTIONS}


class BuiltinRunner:
    """Runs the built-in functions."""

    def run(self, image: str, resources: ResourceList) -> FunctionResult:
        """Run a function; see the port."""
        function, parsed, version = _find(image)
        return function.run(resources, parsed, version)

    def require(self, image: str) -> None:
        """Refuse images that are not built in; see the port."""
        _find(image)

    def resolve(self, image: str, constraint: str) -> str:
        """Choose from the tags that the built-ins declare; see the port."""
        _find(image)
        raise NoMatchingTag(constraint)


def builtin_runner() -> FunctionRunner:
    """Return a runner of the built-in functions."""
    return BuiltinRunner()


def _find(text: str) -> tuple[Builtin, Image, Version]:
    image = parse_image(text)
    function = BUILTINS.get(image.base) if image.prefix in PREFIXES else None
    if function is None:
        names = ", ".join(sorted(BUILTINS))
        raise FunctionNotFound(
            text,
            "it is not built into this server and no function runtime is configured; "
            f"use a built-in function ({names}) under {DEFAULT_PREFIX}, or take it out of the pipeline",
        )
    version = image.version
    if version is None or (image.digest and not image.tag):
        raise FunctionNotFound(
            text,
            f"the built-in {image.base} is chosen by a version tag such as v0.2 or latest; "
            "give the image such a tag, or configure a function runtime",
        )
    return function, image, version
