"""What is wrong with the guards and the rollout of a set. Source: ``variants.md`` 6.2 and 6.11."""

from collections.abc import Iterator
from typing import Any, Final

from krm.meta.names import dns_label_problem
from krm.variants import shapes
from krm.variants.sets.amounts import Amount, InvalidAmount
from krm.variants.sets.expressions import VARIABLES
from krm.variants.sets.guards import DELETE, KEEP
from krm.variants.sets.template_validation import Written, duration_problems
from krm.variants.sets.wave_matching import WAVES

Json = dict[str, Any]

STRATEGIES: Final = ("AllAtOnce", "Rolling", WAVES)
SETTLE_ON: Final = ("DraftReady", "Published")
ON_FAILURE: Final = ("Pause", "Continue")
_ALL: Final = 100


def guard_problems(guards: object) -> Iterator[str]:
    """Yield what is wrong with ``spec.guards``."""
    if not isinstance(guards, dict | None):
        yield "spec.guards must be an object"
    elif guards:
        yield from _amount(guards.get("maxDeletions"), "spec.guards.maxDeletions")
        yield from shapes.choice(guards.get("onEmptySelection"), "spec.guards.onEmptySelection", (KEEP, DELETE))


def rollout_problems(rollout: object) -> Iterator[str]:
    """Yield what is wrong with ``spec.rollout``, but for its expressions."""
    if rollout is None:
        return
    if not isinstance(rollout, dict):
        yield "spec.rollout must be an object"
        return
    yield from shapes.choice(rollout.get("strategy"), "spec.rollout.strategy", STRATEGIES)
    yield from _in_flight(rollout.get("maxInFlight"), "spec.rollout.maxInFlight")
    yield from shapes.choice(rollout.get("settleOn"), "spec.rollout.settleOn", SETTLE_ON)
    yield from shapes.choice(rollout.get("onFailure"), "spec.rollout.onFailure", ON_FAILURE)
    yield from _amount(rollout.get("failureThreshold"), "spec.rollout.failureThreshold")
    if rollout.get("strategy") == WAVES and not rollout.get("waves"):
        yield f"spec.rollout.waves must not be empty when the strategy is {WAVES}"
    yield from _waves(rollout.get("waves"))
    rollback = rollout.get("rollback")
    if isinstance(rollback, dict):
        yield from _in_flight(rollback.get("maxInFlight"), "spec.rollout.rollback.maxInFlight")
    elif rollback is not None:
        yield "spec.rollout.rollback must be an object"


def rollout_expressions(rollout: object) -> Iterator[Written]:
    """Go through the expressions of a rollout of any shape."""
    written = rollout.get("waves") if isinstance(rollout, dict) else None
    for one in shapes.objects(written, "spec.rollout.waves"):
        if not isinstance(one, str) and isinstance(match := one[1].get("match"), str) and match:
            yield f"{one[0]}.match", match, VARIABLES


def _waves(waves: object) -> Iterator[str]:
    seen: set[str] = set()
    for one in shapes.objects(waves, "spec.rollout.waves"):
        if isinstance(one, str):
            yield one
            continue
        path, wave = one
        name = wave.get("name")
        if not isinstance(name, str) or (problem := dns_label_problem(name)):
            yield f"{path}.name must be a name" if not isinstance(name, str) or not name else f"{path}.name: {problem}"
        elif name in seen:
            yield f"{path}.name: there is another wave {name}"
        else:
            seen.add(name)
        yield from shapes.text(wave.get("match"), f"{path}.match")
        yield from _in_flight(wave.get("maxInFlight"), f"{path}.maxInFlight")
        yield from _gate(wave.get("gate"), f"{path}.gate")


def _gate(gate: object, path: str) -> Iterator[str]:
    if gate is None:
        return
    if not isinstance(gate, dict):
        yield f"{path} must be an object"
        return
    percent = gate.get("minSettledPercent")
    if percent is not None and (type(percent) is not int or not 0 <= percent <= _ALL):
        yield f"{path}.minSettledPercent must be a number from 0 to {_ALL}"
    yield from duration_problems(gate.get("soak"), f"{path}.soak")
    yield from shapes.truth(gate.get("manual"), f"{path}.manual")


def _amount(written: object, path: str) -> Iterator[str]:
    if written is None:
        return
    try:
        Amount.of(written)
    except InvalidAmount as error:
        yield f"{path} {error}"


def _in_flight(written: object, path: str) -> Iterator[str]:
    problems = [*_amount(written, path)]
    yield from problems
    if written is not None and not problems and Amount.of(written).most(_ALL) == 0:
        yield f"{path} must not be 0: nothing would ever change"
