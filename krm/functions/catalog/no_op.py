"""``no-op``: gives back what it gets. Source: ``kpt.md`` 4.16."""

from krm.functions.builtin import Builtin
from krm.functions.runner import FunctionResult, ResourceList


def no_op(resources: ResourceList) -> FunctionResult:
    """Run the function."""
    return FunctionResult(resources.items)


FUNCTION = Builtin(
    name="no-op",
    run=lambda resources, *_: no_op(resources),
    summary="Gives the resources back as they are.",
    source="kpt.md 4.16",
    tags=("v0.1.0", "v0.2.0"),
)
