"""The gate that every package revision has: its pipeline must have passed.

The gate and its condition are the server's. They are the first of the object's lists and are in no Kptfile, so they follow
from what a render leaves there, the condition ``Rendered``; whatever clients, Kptfiles and functions say of them is
ignored. Source: seed 002 part 2.1; ``decisions.md`` 14.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

Json = dict[str, Any]

PIPELINE_GATE: Final = "PackagePipelinePassed"
RENDERED: Final = "Rendered"
"""The condition in the Kptfile that every render sets. Source: ``kpt.md`` 2.12."""
SERVERS: Final = frozenset({PIPELINE_GATE, RENDERED})
"""Types of conditions that only a render changes."""
MOST_ERROR: Final = 4096
"""Characters of an error that the condition shows."""
WAITING: Final = "WaitingOnPipeline"
"""The reason before a render that is not done."""


def waiting() -> Json:
    """Return the condition before a render that is not done."""
    return _condition("False", WAITING, "waiting for package pipeline to pass")


def passed() -> Json:
    """Return the condition after a render without an error."""
    return _condition("True", "PipelinePassed", "package pipeline completed successfully")


def failed(error: str) -> Json:
    """Return the condition after a render that failed and was kept; of a long error the beginning is shown."""
    said = error.strip() or "the pipeline failed and said nothing"
    return _condition("False", "PipelineFailed", shortened(said, MOST_ERROR))


def shortened(text: str, most: int) -> str:
    """Return a text of at most ``most`` characters, of a longer one the beginning."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _condition(status: str, reason: str, message: str) -> Json:
    return {"type": PIPELINE_GATE, "status": status, "reason": reason, "message": message}


def follow_rendered(conditions: Iterable[Mapping[str, Any]], otherwise: Json) -> Json:
    """Return what a Kptfile's conditions say of its last render; ``otherwise`` where they say nothing of it.

    Of several ``Rendered`` conditions, which only a forged Kptfile has, each has to be True.
    """
    rendered = [condition for condition in conditions if condition.get("type") == RENDERED]
    if not rendered:
        return otherwise
    bad = next((condition for condition in rendered if condition.get("status") != "True"), None)
    return passed() if bad is None else failed(str(bad.get("message") or ""))


def with_gate(gates: Iterable[Mapping[str, Any]]) -> list[Json]:
    """Return ``gates`` with the server's first."""
    return [{"conditionType": PIPELINE_GATE}, *without_gate(gates)]


def without_gate(gates: Iterable[Mapping[str, Any]]) -> list[Json]:
    """Return the gates that are the package's own."""
    return [dict(gate) for gate in gates if gate.get("conditionType") != PIPELINE_GATE]


def with_condition(conditions: Iterable[Mapping[str, Any]], own: Json) -> list[Json]:
    """Return ``conditions`` with the server's, which is ``own``, first."""
    return [own, *without_condition(conditions)]


def without_condition(conditions: Iterable[Mapping[str, Any]]) -> list[Json]:
    """Return the conditions that are the package's own."""
    return [dict(condition) for condition in conditions if condition.get("type") != PIPELINE_GATE]


def condition_in(conditions: Sequence[Mapping[str, Any]] | None) -> Json | None:
    """Return the server's condition in a revision's list, None where it has none yet."""
    return next((dict(each) for each in conditions or () if each.get("type") == PIPELINE_GATE), None)
