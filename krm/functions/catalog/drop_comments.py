"""``drop-comments``: upstream's test that comments survive functions which lose them. Source: ``kpt.md`` 4.16 and 2.8.

The function strips comments from what it is given, and rendering copies back every comment that its output lacks.
Between the two nothing is left to be done.
"""

from krm.functions.builtin import Builtin
from krm.functions.runner import FunctionResult, ResourceList


def drop_comments(resources: ResourceList) -> FunctionResult:
    """Run the function, and restore the comments."""
    return FunctionResult(resources.items)


FUNCTION = Builtin(
    name="drop-comments",
    run=lambda resources, *_: drop_comments(resources),
    summary="Strips comments, which are restored after every function: nothing changes. For tests.",
    source="kpt.md 4.16",
    tags=("v0.1.0",),
)
