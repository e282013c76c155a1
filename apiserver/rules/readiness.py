"""Readiness gates: what holds a proposal and an approval, for every client alike.

Source: seed 002 part 1; ``decisions.md`` 14.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from apiserver.rules.lifecycle import GATED, GROUP, KIND, Lifecycle
from krm.meta.errors import Cause, Invalid


def unmet_gates(gates: Iterable[Mapping[str, Any]], conditions: Iterable[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return (gate, message of its condition) for each gate that no condition satisfies, in the package's order.

    A gate is met only by a condition of its type whose status is "True"; a missing condition
    counts as unmet, because a function that never ran has proved nothing.
    """
    by_type = {condition.get("type"): condition for condition in conditions}
    unmet = []
    for gate in gates:
        name = str(gate.get("conditionType", ""))
        condition = by_type.get(name)
        if condition is None:
            unmet.append((name, "no condition of this type has been reported"))
        elif condition.get("status") != "True":
            unmet.append((name, str(condition.get("message") or f"its condition is {condition.get('status')}")))
    return unmet


def require_ready(
    name: str,
    current: Lifecycle,
    desired: Lifecycle,
    gates: Sequence[Mapping[str, Any]],
    conditions: Sequence[Mapping[str, Any]],
) -> None:
    """Refuse a gated transition while a gate is unmet.

    Raises:
        Invalid: one cause per unmet gate on spec.lifecycle. Retrying does not help: something
            has to set the condition first.
    """
    if (current, desired) not in GATED:
        return
    causes = [
        Cause("FieldValueInvalid", f"readiness gate '{gate}' is not met: {message}", "spec.lifecycle")
        for gate, message in unmet_gates(gates, conditions)
    ]
    if causes:
        raise Invalid.of(KIND, GROUP, name, causes)
