"""The one way past unmet readiness gates: an annotation on the request, from a user who holds a verb for it.

Neither alone changes anything. The annotation is never stored, so that it cannot open a gate later. Source:
``decisions.md`` 14.
"""

from typing import Any, Final

from krm.meta.errors import Cause, required_value

Json = dict[str, Any]

BYPASS: Final = "porch.kpt.dev/bypass-gates"
"""The annotation; its value is the reason, which is recorded in an Event."""
VERB: Final = "bypass-gates"
"""The RBAC verb on packagerevisions."""
FIELD: Final = f"metadata.annotations[{BYPASS}]"
MOST_REASON: Final = 512
"""Characters of a reason."""


def take_bypass(wanted: Json) -> str | None:
    """Remove the annotation from a decoded object, in place, and return its value; None where there is none."""
    metadata = wanted.get("metadata") or {}
    annotations = metadata.get("annotations")
    if not annotations or BYPASS not in annotations:
        return None
    rest = dict(annotations)
    reason = rest.pop(BYPASS)
    if rest:
        metadata["annotations"] = rest
    else:
        del metadata["annotations"]
    return str(reason)


def check_reason(reason: str) -> list[Cause]:
    """Return what is wrong with the reason of a bypass."""
    if not reason.strip():
        return [required_value(FIELD, "say why the gates are bypassed; the reason is recorded in an Event")]
    if len(reason) > MOST_REASON:
        return [Cause("FieldValueTooLong", f"Too long: may not be more than {MOST_REASON} characters", FIELD)]
    return []
