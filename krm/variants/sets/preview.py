"""What a set would do, told target by target: the answer of a preview, made of the very plan that the controller follows.

Pure: ``previewing`` brings what is read and rendered. Source: ``variants.md`` 6.1, 6.2, 6.6, 6.7 and 6.11.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import orjson

from krm.variants.conditions import PAUSED, paused_by_user, shortened
from krm.variants.sets.field_diff import differences
from krm.variants.sets.fleet import is_paused
from krm.variants.sets.guards import GuardDefaults, keeps_all
from krm.variants.sets.naming import Pair
from krm.variants.sets.plan import APPLY, Existing, Plan, held_back, intended, paused
from krm.variants.sets.progress import VariantState
from krm.variants.sets.rendering import Rendered
from krm.variants.sets.rollout import Admission, admit
from krm.variants.sets.targets import Context, SelectedObject
from krm.variants.sets.verdict import Verdict, verdict
from krm.variants.sets.waves import Wave, place_of, read_waves

Json = dict[str, Any]

CREATE: Final = "create"
UPDATE: Final = "update"
DELETE: Final = "delete"
UNCHANGED: Final = "unchanged"
ACTIONS: Final = (CREATE, UPDATE, DELETE, UNCHANGED)
MAX_BYTES: Final = 16 << 20
"""Of the targets of an answer, as JSON: ten thousand of them with specs of 1.5 KiB. What does not fit is counted."""
MOST_SAID: Final = 1024
"""Characters of what keeps a target from being written: a guard names many variants."""
_RANKS: Final = (DELETE, UPDATE, CREATE, UNCHANGED)
"""What is left out last comes first; errors come before all of them."""
_DELETING: Final = "the package variant set is being deleted, and its variants with it"


@dataclass(frozen=True, slots=True)
class Known:
    """What is there when a set is planned."""

    existing: Sequence[Existing]
    """The variants of the set, with their specs, and those of others that have a name that it would give."""
    states: Mapping[str, VariantState]
    """How far the variants are, by name; only read where there is a rollout."""
    empty: Sequence[int] = ()
    """Targets that select nothing."""


def told_without_targets(set_body: Json, found: Verdict, *, upstream: Json | None = None) -> Json:
    """Return the answer for a set that cannot be worked on: its conditions, and no target."""
    status: Json = {"conditions": _conditions(set_body, found), "summary": _summary([], ())}
    return {**status, "upstream": upstream} if upstream else status


def told_of_deletion(set_body: Json) -> Json:
    """Return the answer for a set that is being deleted, whose controller does nothing any more (3.1)."""
    conditions = (set_body.get("status") or {}).get("conditions") or []
    return {"conditions": conditions, "summary": _summary([], ()), "warnings": [{"message": _DELETING}]}


def told(
    set_body: Json,
    contexts: Sequence[Context],
    rendered: Sequence[Rendered],
    known: Known,
    *,
    defaults: GuardDefaults,
    now: datetime,
) -> Json:
    """Return the answer: conditions, numbers, the rollout, and every target with what becomes of it.

    ``set_body`` is valid, its upstream pinned; ``rendered`` is in the order of ``contexts``.
    """
    whole = intended(set_body, rendered, known.existing, empty=known.empty, defaults=defaults)
    planned = held_back(whole)
    status = set_body.get("status") or {}
    admission = admit(set_body, planned, known.states, status, now)
    if paused(set_body):
        admission = Admission((), (), (), status.get("rollout"))
        conditions = _paused_conditions(set_body)
    else:
        conditions = _conditions(set_body, verdict(planned, admission))
    outlook = _Outlook(set_body, whole, admission, known, defaults)
    targets = [*map(outlook.target, contexts, rendered), *outlook.deletions()]
    kept = _within(targets, MAX_BYTES)
    answer: Json = {"conditions": conditions, "summary": _summary(targets, kept), "targets": kept}
    return {**answer, "rollout": admission.status} if admission.status else answer


class _Outlook:
    """What becomes of each target, and why not now."""

    def __init__(
        self, set_body: Json, whole: Plan, admission: Admission, known: Known, defaults: GuardDefaults
    ) -> None:
        self._body, self._plan, self._admission, self._known = set_body, whole, admission, known
        self._defaults = defaults
        self._updates = {_pair(spec): one for one, spec in whole.updates}
        self._creates = {_pair(spec) for _, spec in whole.creates}
        self._unchanged = {one.pair for one in whole.unchanged}
        self._conflicts = {(one.repo, one.package): one.message for one in whole.failures if one.stage == APPLY}
        self._now = {
            CREATE: {name for name, _ in admission.creates},
            UPDATE: {one.name for one, _ in admission.updates},
            DELETE: {one.name for one in admission.deletes},
        }

    def target(self, context: Context, one: Rendered) -> Json:
        """Return what becomes of one target."""
        pair = one.repo, one.package
        entry: Json = {"inputs": _inputs(context), "downstream": {"repo": one.repo, "package": one.package}}
        if one.spec is None:
            return {**entry, "error": one.error}
        if pair not in self._plan.names:  # another target of the same package failed
            return {**entry, "error": self._failure_of(pair), "spec": one.spec}
        entry["name"] = self._plan.names[pair]
        if wave := self._wave(pair):
            entry["wave"] = wave
        if error := self._plan.disputed.get(pair) or self._conflicts.get(pair):
            return {**entry, "error": error, "spec": one.spec}
        return {**entry, **self._action(pair, entry["name"], one.spec), "spec": one.spec}

    def deletions(self) -> Iterator[Json]:
        """Yield the variants that nobody wants any more."""
        for one in sorted((*self._plan.deletes, *self._plan.held), key=lambda one: one.name):
            entry = {"downstream": {"repo": one.pair[0], "package": one.pair[1]}, "name": one.name}
            yield {**entry, "action": DELETE, **self._admitted(DELETE, one.name, one)}

    def _action(self, pair: Pair, name: str, spec: Json) -> Json:
        if pair in self._unchanged:
            return {"action": UNCHANGED}
        if (there := self._updates.get(pair)) is not None:
            diff = [one.to_json() for one in differences(there.spec or {}, spec)]
            return {"action": UPDATE, **self._admitted(UPDATE, name, there), "diff": diff}
        return {"action": CREATE, **self._admitted(CREATE, name, None, waits=pair not in self._creates)}

    def _admitted(self, action: str, name: str, there: Existing | None, *, waits: bool = False) -> Json:
        if name in self._now[action]:
            return {"admitted": True}
        return {"admitted": False, "reason": shortened(self._reason(action, there, waits=waits), MOST_SAID)}

    def _reason(self, action: str, there: Existing | None, *, waits: bool) -> str:
        """Return why a write is not made by the next pass; what a person can change comes first."""
        if paused(self._body):
            return "the package variant set is paused"
        if self._plan.disputed:
            return "nothing is written while targets ask for different package variants of the same package"
        if self._plan.blocked:
            return "nothing is written while a target fails, unless spec.errorPolicy is BestEffort"
        if there is not None and is_paused(there, self._known.states):
            return "the package variant is paused"
        if waits:
            return "a package variant of this name is still being deleted"
        if action == DELETE and there in self._plan.held:
            return self._held
        return self._admission.paused or self._turn

    @cached_property
    def _held(self) -> str:
        if self._plan.guard:
            return self._plan.guard
        if keeps_all(self._body, self._known.empty, self._defaults):
            places = ", ".join(f"spec.targets[{index}]" for index in self._known.empty)
            return f"spec.guards.onEmptySelection is Keep, and {places} selects nothing"
        return "it is kept because a target fails that may be the one it is of"

    @cached_property
    def _turn(self) -> str:
        message = (self._admission.status or {}).get("message")
        return "it waits for its turn in the rollout" + (f": {message}" if message else "")

    @cached_property
    def _waves(self) -> tuple[Wave, ...]:
        return read_waves(self._body["spec"].get("rollout") or {})

    def _wave(self, pair: Pair) -> str:
        return self._waves[place_of(self._waves, self._plan.waves[pair])].name if len(self._waves) > 1 else ""

    def _failure_of(self, pair: Pair) -> str:
        return next(one.message for one in self._plan.failures if (one.repo, one.package) == pair)


# --- the parts of an answer ---------------------------------------------------------------------------


def _inputs(context: Context) -> Json:
    inputs: Json = {
        "targetIndex": context.target_index,
        "repo": context.repo_default,
        "package": context.package_default,
    }
    return {**inputs, "object": _reference(context.target)} if context.target is not None else inputs


def _reference(one: SelectedObject) -> Json:
    reference = {"apiVersion": one.api_version, "kind": one.kind, "namespace": one.namespace, "name": one.name}
    return {key: value for key, value in reference.items() if value}


def _conditions(set_body: Json, found: Verdict) -> list[Json]:
    return [_condition(set_body, *one) for one in found.conditions]


def _paused_conditions(set_body: Json) -> list[Json]:
    """What was told last stays told while a set is paused (6.7)."""
    kept = [one for one in (set_body.get("status") or {}).get("conditions") or [] if one.get("type") != PAUSED]
    return [*kept, _condition(set_body, PAUSED, "True", *paused_by_user("package variant set"))]


def _condition(set_body: Json, kind: str, status: str, reason: str, message: str) -> Json:
    generation = set_body["metadata"].get("generation") or 0
    return {"type": kind, "status": status, "observedGeneration": generation, "reason": reason, "message": message}


def _summary(targets: Sequence[Json], kept: Sequence[Json]) -> Json:
    """Return how many variants there are of each kind: two targets that ask for the same one count once."""
    named = {one["name"]: one for one in targets if "action" in one}
    numbers = {action: sum(one["action"] == action for one in named.values()) for action in ACTIONS}
    return {
        **numbers,
        "admitted": sum(bool(one.get("admitted")) for one in named.values()),
        "failed": sum("error" in one for one in targets),
        "omitted": len(targets) - len(kept),
    }


def _within(targets: Sequence[Json], most: int) -> Sequence[Json]:
    """Return the targets that fit into so many bytes, in order; errors and changes are kept rather than what stays as it is."""
    sizes = [len(orjson.dumps(one, option=orjson.OPT_NON_STR_KEYS)) + 1 for one in targets]
    if sum(sizes) <= most:
        return targets
    kept: set[int] = set()
    for place in sorted(range(len(targets)), key=lambda place: _rank(targets[place])):
        if sizes[place] <= most:
            most -= sizes[place]
            kept.add(place)
    return [one for place, one in enumerate(targets) if place in kept]


def _rank(target: Json) -> int:
    return _RANKS.index(target["action"]) if "action" in target else -1


def _pair(spec: Json) -> Pair:
    return spec["downstream"]["repo"], spec["downstream"]["package"]
