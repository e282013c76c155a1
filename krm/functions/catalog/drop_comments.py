"""``drop-comments``: resources without their comments. Source: ``kpt.md`` 4.16."""

from krm.functions.builtin import Builtin
from krm.functions.runner import FunctionResult, ResourceList
from krm.package.comments import Comment
from krm.package.yaml_reader import YamlError


def drop_comments(resources: ResourceList) -> FunctionResult:
    """Run the function."""
    try:
        for resource in resources.items:
            if not resource.is_json and (comments := resource.comments()):
                resource.set_comments(dict.fromkeys(comments, Comment()))
    except YamlError as error:
        message = f"failed to drop comments: {error}"
        return FunctionResult.failure(resources, [{"message": message, "severity": "error"}], message)
    return FunctionResult(resources.items)


FUNCTION = Builtin(
    name="drop-comments",
    run=lambda resources, *_: drop_comments(resources),
    summary="Removes every comment from every resource.",
    source="kpt.md 4.16",
    tags=("v0.1.0",),
)
