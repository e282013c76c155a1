"""Readiness gates: what holds a proposal and an approval, for every client alike.

Source: seed 002 part 1; ``decisions.md`` 14; ``variants.md`` C-15.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from apiserver.rules.lifecycle import GATED, GROUP, KIND, Lifecycle
from apiserver.rules.pipeline_gate import PIPELINE_GATE, WAITING, shortened, with_gate
from krm.meta.errors import Cause, Invalid

PV_GATE: Final = "PVOperationsComplete"
"""The gate of revisions that a PackageVariant works on. Source: ``variants.md`` 2.11."""
INJECTION: Final = "config.injection."
"""How the types of gates begin that hold only where packages are deployed."""
MOST_MESSAGE: Final = 1024
"""Characters of a condition's message that a refusal repeats."""

Gates = Iterable[Mapping[str, Any]]
Conditions = Iterable[Mapping[str, Any]]


def unmet_gates(gates: Gates, conditions: Conditions, *, deployment: bool) -> list[tuple[str, str]]:
    """Return (gate, message of its condition) for each gate that holds and is not met, the server's own first.

    A gate is met only by a condition of its type whose status is "True"; a missing condition counts as unmet, because a
    function that never ran has proved nothing. Of several conditions of one type each has to be True. ``deployment`` tells
    that the repository is a deployment repository: gates of config injection hold only there.
    """
    by_type: dict[str, Mapping[str, Any]] = {}
    for condition in conditions:
        name = str(condition.get("type"))
        if name not in by_type or condition.get("status") != "True":
            by_type[name] = condition
    unmet = {}
    for gate in with_gate(gates):
        name = str(gate.get("conditionType") or "")
        found = by_type.get(name)
        if (found is None or found.get("status") != "True") and (deployment or not name.startswith(INJECTION)):
            unmet[name] = _why_unmet(found)
    return list(unmet.items())


def _why_unmet(condition: Mapping[str, Any] | None) -> str:
    if condition is None:
        return "no condition of this type has been reported"
    message = str(condition.get("message") or f"its condition is {condition.get('status') or 'Unknown'}")
    return shortened(message, MOST_MESSAGE)


def gates_holding(
    current: Lifecycle, desired: Lifecycle, gates: Gates, conditions: Conditions, *, deployment: bool
) -> list[tuple[str, str]]:
    """Return the unmet gates, as :func:`unmet_gates` does, of a change that gates hold; none for every other change."""
    return unmet_gates(gates, conditions, deployment=deployment) if (current, desired) in GATED else []


def unready(name: str, current: Lifecycle, unmet: Iterable[tuple[str, str]], conditions: Conditions) -> Invalid:
    """Refuse a change that unmet gates hold: one cause per gate on spec.lifecycle, that says what to fix.

    Retrying does not help: something has to set the condition first.
    """
    waits = any(condition.get("reason") == WAITING for condition in conditions)
    causes = [
        Cause(
            "FieldValueInvalid",
            f"readiness gate '{gate}' is not met: {message.rstrip('.')}; {_fix(gate, current, waits=waits)}",
            "spec.lifecycle",
        )
        for gate, message in unmet
    ]
    return Invalid.of(KIND, GROUP, name, causes)


def _fix(gate: str, current: Lifecycle, *, waits: bool) -> str:
    if gate == PIPELINE_GATE and waits:
        return "the server renders the package soon; try again then"
    first = "reject the proposal, then " if current is Lifecycle.PROPOSED else ""
    if gate == PIPELINE_GATE:
        return f"{first}fix the package or its pipeline and save it again"
    if gate == PV_GATE:
        return "the PackageVariant that owns the package revision sets the condition when it is done"
    if gate.startswith(INJECTION):
        return f"{first}provide the object to inject, or set the condition to True in status.conditions"
    return f"{first}set the condition to True in status.conditions, or remove the gate from spec.readinessGates"
