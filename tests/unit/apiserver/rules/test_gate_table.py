"""The table of all cases: lifecycle × wanted lifecycle × door × gate × condition × pipeline × repository × override.

What is expected is written down here anew, from the words of the specification and not from the code: seed 002 part 1,
``decisions.md`` 14, ``porch-api.md`` 4.2, ``variants.md`` C-15.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from engine_fixture import CollectedEvents

from apiserver.engine.gates import GateRequest, Gates
from apiserver.rules.lifecycle import Door, Lifecycle, check_transition
from krm.meta.errors import Invalid, StatusError

Json = dict[str, Any]

LIFECYCLES = ("Draft", "Proposed", "Published", "DeletionProposed")
OFFERED = {
    "main": {
        "Draft": {"Draft", "Proposed"},
        "Proposed": {"Draft", "Proposed"},
        "Published": {"Published", "DeletionProposed"},
        "DeletionProposed": {"Published", "DeletionProposed"},
    },
    "approval": {
        "Draft": set(),
        "Proposed": {"Draft", "Published"},
        "Published": {"DeletionProposed"},
        "DeletionProposed": {"Published"},
    },
}
GATED = {("Draft", "Proposed"), ("Proposed", "Published")}
GATES = (None, "acme.com/tested", "PVOperationsComplete", "config.injection.ConfigMap.settings")
STATUSES = ("True", "False", "Unknown", "true", "", None)
"""Of the gate's condition; None: there is no such condition."""
PIPELINES = ("True", "False", None)
OVERRIDES = (
    # (annotation, verb) → whether unmet gates are passed, or how the request is refused
    (None, False, "422 Invalid"),
    (None, True, "422 Invalid"),
    ("the demo is tomorrow", False, "403 Forbidden"),
    ("the demo is tomorrow", True, "passed"),
    (" ", True, "422 Invalid"),
    ("x" * 1000, True, "422 Invalid"),
)


@dataclass(frozen=True)
class Case:
    """One state of a revision's gates, where it is, and what its author may and asks for."""

    gate: str | None
    status: str | None
    pipeline: str | None
    deployment: bool
    annotation: str | None
    verb: bool
    override: str

    @property
    def is_ready(self) -> bool:
        holds = self.gate is not None and (self.deployment or not self.gate.startswith("config.injection."))
        return self.pipeline == "True" and (not holds or self.status == "True")

    @property
    def body(self) -> Json:
        gates = [{"conditionType": "PackagePipelinePassed"}]
        conditions = []
        if self.pipeline is not None:
            conditions.append({"type": "PackagePipelinePassed", "status": self.pipeline, "reason": "R", "message": "m"})
        if self.gate is not None:
            gates.append({"conditionType": self.gate})
            if self.status is not None:
                conditions.append({"type": self.gate, "status": self.status, "message": "m"})
        return {"spec": {"readinessGates": gates}, "status": {"conditions": conditions}}


def cases() -> Iterator[Case]:
    for gate, status, pipeline, deployment, (annotation, verb, override) in itertools.product(
        GATES, STATUSES, PIPELINES, (False, True), OVERRIDES
    ):
        yield Case(gate, status, pipeline, deployment, annotation, verb, override)


async def outcome(case: Case, door: str, current: str, desired: str) -> str:
    async def may_bypass() -> bool:
        return case.verb

    try:
        check_transition(Lifecycle(current), Lifecycle(desired), Door(door), "r.p.w")
    except Invalid:
        return "not offered"
    request = GateRequest("ann", case.deployment, case.annotation, may_bypass)
    try:
        passage = await Gates(CollectedEvents()).passage(
            "r.p.w", case.body, Lifecycle(current), Lifecycle(desired), request
        )
    except StatusError as error:
        return f"{error.code} {error.reason}"
    return "done" if passage is None else "passed"


def expected(case: Case, door: str, current: str, desired: str) -> str:
    if desired not in OFFERED[door][current]:
        return "not offered"
    if (current, desired) not in GATED or case.is_ready:
        return "done"
    return case.override


@pytest.mark.parametrize("door", ["main", "approval"])
@pytest.mark.parametrize("current", LIFECYCLES)
@pytest.mark.parametrize("desired", LIFECYCLES)
async def test_every_case_of_the_table(door: str, current: str, desired: str) -> None:
    wrong = [
        (case, found, wanted)
        for case in cases()
        if (found := await outcome(case, door, current, desired)) != (wanted := expected(case, door, current, desired))
    ]

    assert wrong == []


def test_the_table_has_cases_of_every_outcome() -> None:
    """A table that expects the same of everything would prove nothing."""
    outcomes = {expected(case, "main", "Draft", "Proposed") for case in cases()}

    assert outcomes == {"done", "422 Invalid", "403 Forbidden", "passed"}
