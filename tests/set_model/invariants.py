"""What must hold of a set at every moment, and what the end must look like, by the server's state and what users asked for.

Source: ``variants.md`` 3.5, 3.6, 3.8, 6.2, 6.6, 6.7, 6.11 and I8.
"""

from dataclasses import dataclass, field
from typing import Any

from variant_model.client import CONTROLLER, Faults
from variant_model.porch import VARIANTS, PorchModel, copied

from krm.meta.conditions import find_condition
from krm.variants.sets.specs import canonical
from set_model.people import People
from set_model.wanted import (
    ALLOW_DELETIONS,
    PAUSED,
    SET_LABEL,
    SETS,
    Pair,
    Wanted,
    pair_of,
    set_of,
    variants_of,
    wanted,
)

Json = dict[str, Any]


@dataclass
class Ledger:
    """What is remembered from moment to moment."""

    porch: PorchModel
    people: People
    faults: Faults
    pairs: dict[str, Pair] = field(default_factory=dict)
    """Of the variants of sets that were there, by UID."""
    superfluous: set[str] = field(default_factory=set)
    """UIDs of variants that their set did not want at some moment of their lives."""
    others: dict[str, Json] = field(default_factory=dict)
    """Variants that no set made, by UID, as people left them."""
    paused: dict[str, Json] = field(default_factory=dict)
    """Specs of the variants that people have paused, by UID."""
    _writes: int = 0
    _finished: int = 0
    _checked: int = -1

    def check(self) -> None:
        """Check what holds at every moment."""
        if self._checked == self.porch.newest:
            return
        self._checked = self.porch.newest
        self._check_writes()
        self._check_others()
        self._check_variants()

    def people_did(self) -> None:
        """Take what people have changed."""
        self.others = {one["metadata"]["uid"]: copied(one) for one in self._others()}
        self.paused = {one["metadata"]["uid"]: copied(one["spec"]) for one in self._ours() if _is_paused(one)}
        for uid in self.people.touched & self.pairs.keys():
            # Two variants that were sent to one place: one of them has to go.
            pairs = {self.pairs[uid]} | {pair_of(one) for one in self._ours() if one["metadata"]["uid"] == uid}
            self.superfluous |= {known for known, pair in self.pairs.items() if pair in pairs}

    def _ours(self) -> list[Json]:
        return [one for one in self.porch.all(VARIANTS) if _set_of(one)]

    def _others(self) -> list[Json]:
        return [one for one in self.porch.all(VARIANTS) if not _set_of(one)]

    def _check_writes(self) -> None:
        """Nothing but variants and the status of sets is written, and nothing is deleted that a guard is known to keep."""
        new, self._writes = self.porch.writes[self._writes :], len(self.porch.writes)
        is_late, self._finished = self._finished != self.faults.finished, self.faults.finished
        now = set_of(self.porch)
        for write in new:
            if write.by == CONTROLLER:
                assert (write.plural, write.subresource) in {(VARIANTS, ""), (SETS, "status")}, write
                assert write.verb != "delete" or is_late or not _keeps_all(now), f"{write} against {now}"

    def _check_others(self) -> None:
        """What people made themselves or have paused stays as it is; that its controller tells of it is no change here."""
        for one in self._ours():
            assert one["spec"] == self.paused.get(one["metadata"]["uid"], one["spec"]), f"{one} was paused"
        for one in self._others():
            known = self.others.get(one["metadata"]["uid"])
            if known is not None:
                assert one["spec"] == known["spec"], one
                assert not one["metadata"].get("deletionTimestamp"), one

    def _check_variants(self) -> None:
        """No package has two variants, and none goes that was wanted all its life: it would come again without its drafts."""
        now = set_of(self.porch)
        live: dict[Pair, str] = {}
        asked = wanted(self.porch, now) if now is not None else Wanted()
        for one in self._ours():
            meta, pair = one["metadata"], pair_of(one)
            uid, is_of_now = meta["uid"], now is not None and meta["labels"][SET_LABEL] == now["metadata"]["uid"]
            deleted = bool(meta.get("deletionTimestamp"))
            self.pairs[uid] = pair
            if not is_of_now or (pair not in asked.specs and pair not in asked.failed) or uid in self.people.touched:
                self.superfluous.add(uid)
            if deleted and self._deleted_by_controller(meta["name"]):
                assert uid in self.superfluous, f"{meta['name']} is deleted and was always wanted"
            if not deleted and is_of_now and uid not in self.people.touched:
                assert live.setdefault(pair, meta["name"]) == meta["name"], f"{live[pair]} and {meta['name']}: {pair}"

    def _deleted_by_controller(self, name: str) -> bool:
        deletes = [
            one.by for one in self.porch.writes if (one.verb, one.plural, one.name) == ("delete", VARIANTS, name)
        ]
        return bool(deletes) and deletes[-1] == CONTROLLER


# --- in the end --------------------------------------------------------------------------------------------


def check_end(porch: PorchModel, people: People) -> None:
    """Check that the set has come to where its users want it, or says why not."""
    for one in porch.all(VARIANTS):
        note = people.notes.get(one["metadata"]["uid"])
        assert note is None or one["metadata"]["annotations"].get("note") == note, "people's annotations stay"
    now = set_of(porch)
    if now is None:
        assert not [one for one in porch.all(VARIANTS) if _set_of(one)]
        return
    conditions = (now.get("status") or {}).get("conditions")
    stalled, ready, paused = (find_condition(conditions, kind) or {} for kind in ("Stalled", "Ready", "Paused"))
    assert (paused.get("status") == "True") == bool(now["spec"].get("suspend")), now
    if now["spec"].get("suspend"):
        return
    assert now["status"]["observedGeneration"] == now["metadata"]["generation"], now
    asked = wanted(porch, now)
    match = Match.of(now, asked, variants_of(porch, now["metadata"]["uid"]))
    reason = _stalled_by(porch, now, asked, match)
    assert (stalled.get("status"), stalled.get("reason") if reason else "") == (str(bool(reason)), reason), (
        stalled,
        reason,
    )
    if reason in {"UpstreamNotFound", "DuplicateTargets"} or (reason == "UnexpectedError" and not _best_effort(now)):
        assert ready["status"] == "False", ready
        return
    if now["spec"].get("rollout") and now["status"]["rollout"]["phase"] != "Complete":
        _check_held_up(porch, now, people)
        return
    _check_variants(porch, now, asked, match)
    assert (ready.get("status") == "True") == (not reason), (ready, reason)


def _keeps_all(one: Json | None) -> bool:
    """Tell whether nothing of a set may be deleted, and its controller has seen that."""
    if one is None or (one["spec"].get("guards") or {}).get("maxDeletions") != 0:
        return False
    meta = one["metadata"]
    allowed = (meta.get("annotations") or {}).get(ALLOW_DELETIONS) == str(meta["generation"])
    return not allowed and (one.get("status") or {}).get("observedGeneration") == meta["generation"]


def _best_effort(one: Json) -> bool:
    return bool(one["spec"].get("errorPolicy") == "BestEffort")


def _stalled_by(porch: PorchModel, one: Json, asked: Wanted, match: "Match") -> str:
    """Return the reason of Stalled."""
    if not asked.upstream:
        return "UpstreamNotFound"
    if asked.disputed:
        return "DuplicateTargets"
    if asked.fails or _lacks_a_name(porch, one, match):
        return "UnexpectedError"
    return "DeletionGuard" if _is_guarded(one, asked, match) else ""


@dataclass
class Match:
    """Which variant is that of which pair."""

    chosen: dict[Pair, Json]
    missing: set[Pair]
    leftover: list[Json]

    @classmethod
    def of(cls, one: Json, asked: Wanted, there: list[Json]) -> "Match":
        """Find them by their pairs, and those that somebody has moved by their names."""
        named = {f"{one['metadata']['name']}-{repo}-{package}": (repo, package) for repo, package in asked.specs}
        chosen: dict[Pair, Json] = {}
        for variant in sorted(there, key=lambda each: named.get(each["metadata"]["name"]) != pair_of(each)):
            if pair_of(variant) in asked.specs:
                chosen.setdefault(pair_of(variant), variant)
        for variant in there:
            pair = named.get(variant["metadata"]["name"])
            if pair is not None and pair not in chosen and variant not in chosen.values():
                chosen[pair] = variant
        leftover = [variant for variant in there if variant not in chosen.values()]
        return cls(chosen, asked.specs.keys() - chosen.keys(), leftover)


def _lacks_a_name(porch: PorchModel, one: Json, match: Match) -> set[Pair]:
    """Return the pairs whose variant would have the name of one that somebody else made."""
    others = {each["metadata"]["name"] for each in porch.all(VARIANTS) if not _set_of(each)}
    return {pair for pair in match.missing if f"{one['metadata']['name']}-{pair[0]}-{pair[1]}" in others}


def _set_of(variant: Json) -> str:
    return str((variant["metadata"].get("labels") or {}).get(SET_LABEL) or "")


def _is_paused(variant: Json) -> bool:
    return bool((variant["metadata"].get("annotations") or {}).get(PAUSED) == "true")


def _is_held(one: Json, asked: Wanted, match: Match, variant: Json) -> bool:
    """Tell whether a variant that nobody wants stays all the same."""
    return (
        asked.unknown
        or pair_of(variant) in asked.failed
        or (asked.empty and (one["spec"].get("guards") or {}).get("onEmptySelection") == "Keep")
        or _is_guarded(one, asked, match)
        or _is_paused(variant)
    )


def _is_guarded(one: Json, asked: Wanted, match: Match) -> bool:
    guards, meta = one["spec"].get("guards") or {}, one["metadata"]
    kept = asked.unknown or (asked.empty and guards.get("onEmptySelection") == "Keep")
    if "maxDeletions" not in guards or kept:
        return False
    if (meta.get("annotations") or {}).get(ALLOW_DELETIONS) == str(meta["generation"]):
        return False
    doomed = [variant for variant in match.leftover if pair_of(variant) not in asked.failed]
    return len(doomed) > int(guards["maxDeletions"])


def _check_variants(porch: PorchModel, one: Json, asked: Wanted, match: Match) -> None:
    """Check that what is wanted is there as it should be, and nothing else but what is held."""
    assert match.missing == _lacks_a_name(porch, one, match), (match.missing, sorted(match.chosen))
    for variant in match.leftover:
        assert _is_held(one, asked, match, variant), f"{variant['metadata']['name']} is left over"
    for pair, variant in match.chosen.items():
        right = canonical(variant["spec"]) == canonical(asked.specs[pair])
        assert right or _is_paused(variant), (variant, asked.specs[pair])


def _check_held_up(porch: PorchModel, one: Json, people: People) -> None:
    """Check that a rollout that does not go on has a reason: a variant that fails, or a gate that a person opens."""
    rollout, told = one["spec"]["rollout"], one["status"]["rollout"]
    manual = any((wave.get("gate") or {}).get("manual") for wave in rollout.get("waves") or ())
    broken = any(pair_of(variant)[0] in people.broken for variant in porch.all(VARIANTS))
    assert manual or broken or any(map(_is_paused, porch.all(VARIANTS))), told
