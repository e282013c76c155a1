"""The gate that a variant holds on drafts while it works on them, and what its condition says.

Source: ``variants.md`` 2.11; S2, part 3.1.
"""

from typing import Any, Final

from krm.variants.vocabulary import OPERATIONS_GATE

Json = dict[str, Any]

MOST_MESSAGE: Final = 1024
"""Characters of an error that a package carries about in its Kptfile."""


def gate() -> Json:
    """Return the readiness gate."""
    return {"conditionType": OPERATIONS_GATE}


def pending(variant: str) -> Json:
    """Return the condition of a draft that the variant of this name has not finished."""
    message = f'waiting for package variant "{variant}" to finish its operations'
    return _condition("False", "PVOperationsPending", message)


def failed(error: str) -> Json:
    """Return the condition of a draft on which an operation failed."""
    message = error if len(error) <= MOST_MESSAGE else f"{error[: MOST_MESSAGE - 1]}…"
    return _condition("False", "PVOperationsFailed", message)


def succeeded() -> Json:
    """Return the condition of a draft on which nothing is left to do."""
    return _condition("True", "PVOperationsSucceeded", "all package variant operations completed successfully")


def with_operations(body: Json, condition: Json) -> Json:
    """Return a package revision with the gate and this condition of it; all else, and ``body`` itself, stay as they are."""
    spec, status = body.get("spec") or {}, body.get("status") or {}
    gates = [*(spec.get("readinessGates") or ())]
    if gate() not in gates:
        gates.append(gate())
    conditions = [condition if one.get("type") == OPERATIONS_GATE else one for one in status.get("conditions") or ()]
    if condition not in conditions:
        conditions.append(condition)
    return {**body, "spec": {**spec, "readinessGates": gates}, "status": {**status, "conditions": conditions}}


def _condition(status: str, reason: str, message: str) -> Json:
    return {"type": OPERATIONS_GATE, "status": status, "reason": reason, "message": message}
