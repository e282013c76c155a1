"""Which variants of a set may change now. Source: ``variants.md`` 6.2."""

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
from rollout_scene import (
    BROKEN,
    NOON,
    OFF,
    PROPOSED,
    PUBLISHED,
    SETTLED,
    STALLED,
    WORKING,
    Scene,
    existing,
    pair_of,
    set_of,
    spec_of,
    waves,
    written,
)

from krm.variants.sets.changes import change_id
from krm.variants.sets.plan import Plan
from krm.variants.sets.rollout import admit

Json = dict[str, Any]
ROLLING = {"strategy": "Rolling", "maxInFlight": 2}
FIVE = dict.fromkeys("abcde", SETTLED)
CANARY, REST = {"name": "canary"}, {"name": "rest"}
TWO_WAVES = {"a": 0, "b": 0, "c": 1, "d": 1}

# Who goes: a scene, and what it writes.
WHO = {
    "without a rollout everything goes at once": (
        Scene(None, outdated=FIVE, missing=("f",), superfluous=("z",)),
        "a b c d e +f -z",
    ),
    "all at once is the strategy of a rollout that names none": (
        Scene({"settleOn": "DraftReady"}, outdated=FIVE, missing=("f",), superfluous=("z",)),
        "a b c d e +f -z",
    ),
    "all at once does not stop for failures": (
        Scene({"strategy": "AllAtOnce"}, outdated={"a": SETTLED}, current={"b": BROKEN}, superfluous=("z",)),
        "a -z",
    ),
    "rolling begins with the first names": (Scene(ROLLING, outdated=FIVE), "a b"),
    "without maxInFlight one at a time": (Scene({"strategy": "Rolling"}, outdated=FIVE), "a"),
    "what is in flight takes room": (
        Scene(ROLLING, outdated={"b": SETTLED, "c": SETTLED, "d": SETTLED}, current={"a": WORKING}),
        "b",
    ),
    "no room": (
        Scene(ROLLING, outdated={"c": SETTLED}, current={"a": WORKING, "b": WORKING}),
        "",
    ),
    "what is settled takes none": (
        Scene(ROLLING, outdated={"c": SETTLED, "d": SETTLED, "e": SETTLED}, current={"a": SETTLED, "b": SETTLED}),
        "c d",
    ),
    "what failed takes none": (
        Scene({**ROLLING, "onFailure": "Continue"}, outdated={"c": SETTLED, "d": SETTLED}, current={"a": BROKEN}),
        "c d",
    ),
    "creations take room": (Scene(ROLLING, outdated={"b": SETTLED, "d": SETTLED}, missing=("a", "c")), "b +a"),
    "a percentage of all, rounded down": (
        Scene({"strategy": "Rolling", "maxInFlight": "50%"}, outdated=FIVE),
        "a b",
    ),
    "a percentage is at least one": (Scene({"strategy": "Rolling", "maxInFlight": "1%"}, outdated=FIVE), "a"),
    "none at a time holds everything": (Scene({"strategy": "Rolling", "maxInFlight": 0}, outdated=FIVE), ""),
    "a number as a text": (Scene({"strategy": "Rolling", "maxInFlight": "3"}, outdated=FIVE), "a b c"),
    "what is at work goes first": (
        Scene(ROLLING, outdated={**FIVE, "d": WORKING, "e": BROKEN}),
        "d e",
    ),
    "deletions come last": (Scene(ROLLING, outdated={"a": SETTLED}, superfluous=("z",)), "a"),
    "deletions wait for what is in flight": (
        Scene(ROLLING, current={"a": WORKING}, superfluous=("z",)),
        "",
    ),
    "deletions come when all is settled": (Scene(ROLLING, current=FIVE, superfluous=("y", "z")), "-y -z"),
    "deletions wait for people when the rollout pauses": (
        Scene(ROLLING, current={"a": BROKEN}, superfluous=("z",)),
        "",
    ),
    "deletions do not wait for failures that are allowed": (
        Scene({**ROLLING, "failureThreshold": 1}, current={"a": BROKEN}, superfluous=("z",)),
        "-z",
    ),
    "a variant that is paused itself is neither changed nor waited for": (
        Scene({"strategy": "Rolling"}, outdated={"b": OFF, "c": SETTLED}, current={"a": OFF}, superfluous=("z",)),
        "c",
    ),
    "one that is paused does not hold deletions": (
        Scene({"strategy": "Rolling"}, outdated={"b": OFF}, current={"a": OFF}, superfluous=("z",)),
        "-z",
    ),
    "a failure pauses": (Scene(ROLLING, outdated={"b": SETTLED}, current={"a": BROKEN}), ""),
    "so does a variant that is stalled": (Scene(ROLLING, outdated={"b": SETTLED}, current={"a": STALLED}), ""),
    "as many failures as the threshold do not": (
        Scene({**ROLLING, "failureThreshold": 1}, outdated={"b": SETTLED}, current={"a": BROKEN}),
        "b",
    ),
    "a threshold in percent": (
        Scene(
            {**ROLLING, "failureThreshold": "50%"},
            outdated={"c": SETTLED, "d": SETTLED},
            current={"a": BROKEN, "b": BROKEN},
        ),
        "c d",
    ),
    "a failure of the former change is none of this one": (
        Scene(ROLLING, outdated={"a": BROKEN, "b": STALLED, "c": SETTLED}),
        "a b",
    ),
    "what waits for a person has not failed": (
        Scene(
            {"strategy": "Rolling", "maxInFlight": 2}, outdated={"b": SETTLED, "c": SETTLED}, current={"a": PROPOSED}
        ),
        "b",
    ),
    "a draft is enough": (Scene({"strategy": "Rolling"}, outdated={"b": SETTLED}, current={"a": SETTLED}), "b"),
    "a draft is not enough where the publication counts": (
        Scene({"strategy": "Rolling", "settleOn": "Published"}, outdated={"b": SETTLED}, current={"a": SETTLED}),
        "",
    ),
    "a publication is": (
        Scene({"strategy": "Rolling", "settleOn": "Published"}, outdated={"b": SETTLED}, current={"a": PUBLISHED}),
        "b",
    ),
    "the first wave begins": (
        Scene(waves(CANARY, REST, maxInFlight=9), outdated=dict.fromkeys("abcd", SETTLED), waves=TWO_WAVES),
        "a b",
    ),
    "waves are limited, too": (
        Scene(waves(CANARY, REST), outdated=dict.fromkeys("abcd", SETTLED), waves=TWO_WAVES),
        "a",
    ),
    "the next wave waits for all of the former": (
        Scene(
            waves(CANARY, REST, maxInFlight=9),
            outdated={"c": SETTLED, "d": SETTLED},
            current={"a": SETTLED, "b": WORKING},
            waves=TWO_WAVES,
        ),
        "",
    ),
    "the next wave begins when the former is settled": (
        Scene(
            waves(CANARY, REST, maxInFlight=9),
            outdated={"c": SETTLED, "d": SETTLED},
            current={"a": SETTLED, "b": SETTLED},
            waves=TWO_WAVES,
        ),
        "c d",
    ),
    "a part of the former can be enough": (
        Scene(
            waves({**CANARY, "gate": {"minSettledPercent": 50}}, REST, maxInFlight=9),
            outdated={"c": SETTLED, "d": SETTLED},
            current={"a": SETTLED, "b": WORKING},
            waves=TWO_WAVES,
        ),
        "c d",
    ),
    "what failed is not settled": (
        Scene(
            waves(CANARY, REST, maxInFlight=9, onFailure="Continue"),
            outdated={"c": SETTLED, "d": SETTLED},
            current={"a": SETTLED, "b": BROKEN},
            waves=TWO_WAVES,
        ),
        "",
    ),
    "a wave has a limit of its own": (
        Scene(
            waves({**CANARY, "maxInFlight": "50%"}, REST, maxInFlight=9),
            outdated=dict.fromkeys("abcd", SETTLED),
            waves=TWO_WAVES,
        ),
        "a",
    ),
    "which can be more than that of the rollout": (
        Scene(
            waves({**CANARY, "maxInFlight": 2}, REST, maxInFlight=1),
            outdated=dict.fromkeys("abcd", SETTLED),
            waves=TWO_WAVES,
        ),
        "a b",
    ),
    "and leaves that of the rollout to the other waves": (
        Scene(
            waves({**CANARY, "maxInFlight": 1, "gate": {"minSettledPercent": 50}}, REST, maxInFlight=1),
            outdated={"c": SETTLED, "d": SETTLED},
            current={"a": SETTLED, "b": WORKING},
            waves=TWO_WAVES,
        ),
        "c",
    ),
    "targets that no wave has are the last": (
        Scene(
            waves(CANARY, maxInFlight=9),
            outdated={"c": SETTLED, "x": SETTLED},
            current={"a": SETTLED},
            waves={"a": 0, "c": 0, "x": -1},
        ),
        "c",
    ),
    "they begin when all waves are done": (
        Scene(waves(CANARY, maxInFlight=9), outdated={"x": SETTLED}, current={"a": SETTLED}, waves={"a": 0, "x": -1}),
        "x",
    ),
    "a wave without targets is passed": (
        Scene(waves(CANARY, REST, maxInFlight=9), outdated={"c": SETTLED}, waves={"c": 1}),
        "c",
    ),
    "several waves that are done are passed at once": (
        Scene(
            waves(CANARY, {"name": "second"}, REST, maxInFlight=9),
            outdated={"c": SETTLED},
            current={"a": SETTLED, "b": SETTLED},
            waves={"a": 0, "b": 1, "c": 2},
        ),
        "c",
    ),
    "a wave that has begun goes on though the former has something new": (
        Scene(
            waves(CANARY, REST, maxInFlight=9),
            outdated={"c": SETTLED},
            missing=("n",),
            current={"a": SETTLED},
            waves={"a": 0, "n": 0, "c": 1},
        ).began(wave="rest"),
        "c +n",
    ),
}


@pytest.mark.parametrize(("scene", "expected"), WHO.values(), ids=WHO.keys())
def test_who_may_change(scene: Scene, expected: str) -> None:
    assert written(scene.admit()) == expected


def test_a_gate_soaks_from_when_enough_is_settled() -> None:
    rollout = waves({**CANARY, "gate": {"soak": "10m"}}, REST, maxInFlight=9)
    scene = Scene(rollout, outdated={"c": SETTLED}, current={"a": SETTLED}, waves={"a": 0, "c": 1})
    first = scene.admit()
    assert (written(first), first.requeue_after) == ("", 600)
    assert first.status is not None
    assert first.status["phase"] == "Waiting"
    assert first.status["message"] == "wave canary soaks until 2026-01-01T12:10:00Z"
    assert first.status["waves"][0]["settledAt"] == "2026-01-01T12:00:00Z"

    scene.status, scene.now = {"rollout": first.status}, NOON + dt.timedelta(minutes=9, seconds=30)
    later = scene.admit()
    assert (written(later), later.requeue_after, later.status) == ("", 30, first.status)

    scene.now = NOON + dt.timedelta(minutes=10)
    assert written(scene.admit()) == "c"


def test_a_wave_that_breaks_while_it_soaks_begins_to_soak_anew() -> None:
    rollout = waves({**CANARY, "gate": {"soak": "10m"}}, REST, onFailure="Continue")
    scene = Scene(rollout, outdated={"c": SETTLED}, current={"a": BROKEN}, waves={"a": 0, "c": 1})
    scene.began(wave="canary", waves=[{"name": "canary", "settledAt": "2026-01-01T11:00:00Z"}])
    broken = scene.admit()
    assert broken.status is not None
    assert "settledAt" not in broken.status["waves"][0]
    scene.status, scene.current = {"rollout": broken.status}, {"a": SETTLED}
    assert scene.admit().requeue_after == 600


def test_a_gate_waits_for_a_person() -> None:
    rollout = waves({**CANARY, "gate": {"manual": True}}, REST)
    scene = Scene(rollout, outdated={"c": SETTLED}, current={"a": SETTLED}, waves={"a": 0, "c": 1})
    waiting = scene.admit()
    assert waiting.status is not None
    assert (written(waiting), waiting.requeue_after, waiting.status["phase"]) == ("", None, "Waiting")
    told = waiting.status["message"]
    assert told == f"wave canary waits for the annotation config.porch.kpt.dev/approve-wave: canary@{scene.change}"

    assert written(scene.approved("rest").admit()) == ""
    assert written(scene.approved("canary").admit()) == "c"


@pytest.mark.parametrize(
    "annotation", ["canary", "canary@", "canary@0123456789abcdef", "@{change}", "{change}", "canary {change}"]
)
def test_no_other_annotation_opens_a_gate(annotation: str) -> None:
    rollout = waves({**CANARY, "gate": {"manual": True}}, REST)
    scene = Scene(rollout, outdated={"c": SETTLED}, current={"a": SETTLED}, waves={"a": 0, "c": 1})
    scene.approve = annotation.format(change=scene.change)
    assert written(scene.admit()) == ""


def test_gates_of_several_waves_can_be_opened_at_once() -> None:
    manual = {"gate": {"manual": True}}
    rollout = waves({**CANARY, **manual}, {"name": "second", **manual}, REST)
    scene = Scene(
        rollout, outdated={"c": SETTLED}, current={"a": SETTLED, "b": SETTLED}, waves={"a": 0, "b": 1, "c": 2}
    )
    scene.approve = f"canary@{scene.change}, second@{scene.change}"
    assert written(scene.admit()) == "c"


def test_a_passed_gate_needs_no_annotation_any_more() -> None:
    """The annotation has room for the next wave."""
    rollout = waves({**CANARY, "gate": {"manual": True}}, REST)
    scene = Scene(rollout, outdated={"c": SETTLED}, current={"a": SETTLED}, waves={"a": 0, "c": 1})
    assert written(scene.began(wave="rest").admit()) == "c"


def test_another_change_begins_with_the_first_wave_and_its_own_approval() -> None:
    rollout = waves({**CANARY, "gate": {"manual": True}}, REST, maxInFlight=9)
    scene = Scene(rollout, outdated=dict.fromkeys("ac", SETTLED), waves={"a": 0, "c": 1}, revision=3)
    old = change_id(set_of(rollout, 2))
    scene.approve = f"canary@{old}"
    scene.status = {
        "rollout": {"changeId": old, "phase": "Complete", "wave": "rest", "startedAt": "2025-01-01T00:00:00Z"}
    }
    first = scene.admit()
    assert first.status is not None
    assert (written(first), first.status["wave"], first.status["startedAt"]) == ("a", "canary", "2026-01-01T12:00:00Z")
    scene.status, scene.outdated, scene.current = {"rollout": first.status}, {"c": SETTLED}, {"a": SETTLED}
    assert written(scene.admit()) == ""


def test_another_change_during_a_rollout_is_given_first_to_what_is_at_work() -> None:
    """Also in waves that it has not reached: what those are at is of no use any more."""
    rollout = waves(CANARY, REST, maxInFlight=2)
    scene = Scene(
        rollout, outdated={"a": SETTLED, "c": SETTLED, "d": WORKING}, waves={"a": 0, "c": 1, "d": 1}, revision=3
    )
    scene.status = {"rollout": {"changeId": change_id(set_of(rollout, 2)), "phase": "Progressing", "wave": "rest"}}
    first = scene.admit()
    assert written(first) == "a d"
    assert first.status is not None
    assert first.status["wave"] == "canary"


def test_after_a_rollout_that_was_done_no_wave_is_overtaken() -> None:
    rollout = waves(CANARY, REST, maxInFlight=2)
    scene = Scene(
        rollout, outdated={"a": SETTLED, "c": SETTLED, "d": WORKING}, waves={"a": 0, "c": 1, "d": 1}, revision=3
    )
    scene.status = {"rollout": {"changeId": change_id(set_of(rollout, 2)), "phase": "Complete", "wave": "rest"}}
    assert written(scene.admit()) == "a"


def test_a_new_set_overtakes_no_wave() -> None:
    rollout = waves(CANARY, REST, maxInFlight=2)
    assert written(Scene(rollout, outdated={"a": SETTLED, "d": BROKEN}, waves={"a": 0, "d": 1}).admit()) == "a"


# --- rollback -------------------------------------------------------------------------------------------

BACK = {"strategy": "Rolling", "maxInFlight": 1, "rollback": {"maxInFlight": 4}}


def upstream_was(revision: int, package: str = "foo") -> Json:
    return {"name": f"blueprints.{package}.v{revision}", "revision": revision, "workspaceName": f"v{revision}"}


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        (upstream_was(3), "a b c d"),
        (upstream_was(2), "a"),
        (upstream_was(1), "a"),
        (upstream_was(3, package="other"), "a"),
        ({}, "a"),
    ],
)
def test_a_rollback_may_be_faster(before: Json, expected: str) -> None:
    assert written(Scene(BACK, outdated=FIVE, status={"upstream": before}).admit()) == expected


@pytest.mark.parametrize("revision", [2, "v2", "2"])
def test_a_rollback_is_known_however_the_revision_is_written(revision: Any) -> None:
    assert (
        written(Scene(BACK, outdated=FIVE, revision=revision, status={"upstream": upstream_was(3)}).admit())
        == "a b c d"
    )


def test_a_rollback_stays_one_until_another_change() -> None:
    scene = Scene(BACK, outdated=FIVE, status={"upstream": upstream_was(3)})
    first = scene.admit()
    assert first.status is not None
    assert first.status["rollback"] is True
    scene.status = {"rollout": first.status, "upstream": upstream_was(2)}
    scene.outdated, scene.current = {"e": SETTLED}, dict.fromkeys("abcd", SETTLED)
    again = scene.admit()
    assert again.status is not None
    assert again.status["rollback"] is True
    scene.status, scene.revision = {"rollout": again.status, "upstream": upstream_was(2)}, 3
    forward = scene.admit()
    assert forward.status is not None
    assert "rollback" not in forward.status


def test_a_rollback_whose_targets_are_edited_stays_one() -> None:
    other = {"changeId": "0123456789abcdef", "phase": "Progressing", "rollback": True}
    scene = Scene(BACK, outdated=FIVE, status={"rollout": other, "upstream": upstream_was(2)})
    assert written(scene.admit()) == "a b c d"
    scene.status["rollout"]["phase"] = "Complete"
    assert written(scene.admit()) == "a"


def test_the_limit_of_a_rollback_is_that_of_all_waves() -> None:
    rollout = waves({**CANARY, "maxInFlight": 1}, REST, rollback={"maxInFlight": 2})
    scene = Scene(
        rollout, outdated=dict.fromkeys("abcd", SETTLED), waves=TWO_WAVES, status={"upstream": upstream_was(3)}
    )
    assert written(scene.admit()) == "a b"


# --- what is told -----------------------------------------------------------------------------------------


def test_the_status_counts_what_is_there_after_the_writes() -> None:
    told = Scene(ROLLING, outdated={"c": SETTLED, "d": SETTLED}, current={"a": WORKING, "b": SETTLED}).admit().status
    assert told == {
        "changeId": change_id(set_of(ROLLING)),
        "phase": "Progressing",
        "outdated": 1,
        "inFlight": 2,
        "settled": 1,
        "failed": 0,
        "startedAt": "2026-01-01T12:00:00Z",
    }


def test_the_status_tells_each_wave() -> None:
    rollout = waves(CANARY, REST, maxInFlight=9)
    scene = Scene(
        rollout, outdated={"c": SETTLED}, current={"a": SETTLED, "b": SETTLED}, waves={"a": 0, "b": 0, "c": 1}
    )
    told = scene.admit().status
    assert told is not None
    assert told["wave"] == "rest"
    assert told["waves"] == [
        {
            "name": "canary",
            "outdated": 0,
            "inFlight": 0,
            "settled": 2,
            "failed": 0,
            "settledAt": "2026-01-01T12:00:00Z",
        },
        {"name": "rest", "outdated": 0, "inFlight": 1, "settled": 0, "failed": 0},
    ]


def test_a_pause_tells_who_failed() -> None:
    scene = Scene(ROLLING, outdated={"x": SETTLED}, current=dict.fromkeys("abcdefg", BROKEN))
    paused = scene.admit()
    assert paused.paused == "7 of 8 variants failed, more than failureThreshold allows (0): a, b, c, d, e, …"
    assert paused.status is not None
    assert (paused.status["phase"], paused.status["message"]) == ("Paused", paused.paused)


def test_a_pause_keeps_where_the_waves_were() -> None:
    rollout = waves(CANARY, REST)
    scene = Scene(rollout, outdated={"d": SETTLED}, current={"a": SETTLED, "c": BROKEN}, waves={"a": 0, "c": 1, "d": 1})
    scene.began(wave="rest", waves=[{"name": "canary", "settledAt": "2026-01-01T11:00:00Z"}])
    told = scene.admit().status
    assert told is not None
    assert (told["wave"], told["waves"][0]["settledAt"]) == ("rest", "2026-01-01T11:00:00Z")


def test_a_rollout_whose_variants_recover_goes_on() -> None:
    scene = Scene(ROLLING, outdated={"b": SETTLED}, current={"a": BROKEN})
    scene.status = {"rollout": scene.admit().status}
    scene.current = {"a": SETTLED}
    assert written(scene.admit()) == "b"


def test_a_rollout_is_complete_when_all_is_settled() -> None:
    scene = Scene(
        waves({**CANARY, "gate": {"manual": True}}), current={"a": SETTLED}, waves={"a": 0}, superfluous=("z",)
    )
    done = scene.admit()
    assert done.status is not None
    assert (done.status["phase"], written(done)) == ("Complete", "-z")


def test_it_is_told_that_deletions_wait() -> None:
    told = Scene(ROLLING, current={"a": WORKING}, superfluous=("z",)).admit().status
    assert told is not None
    assert (told["phase"], told["message"]) == (
        "Progressing",
        "deletions (1) wait until all other variants are settled",
    )


def test_a_set_without_a_rollout_tells_nothing() -> None:
    assert Scene(None, outdated=FIVE).admit().status is None


def test_of_a_plan_that_is_blocked_nothing_is_written() -> None:
    before = {"changeId": "c", "phase": "Progressing", "outdated": 7}
    found = admit(set_of(ROLLING), Plan(blocked=True), {}, {"rollout": before}, NOON)
    assert (written(found), found.status) == ("", before)


def test_a_pass_that_finds_nothing_new_tells_the_same() -> None:
    """Else every pass would write the status, and every write cause a pass."""
    scene = Scene(ROLLING, outdated={"c": SETTLED}, current={"a": WORKING, "b": WORKING})
    first = scene.admit()
    scene.status, scene.now = {"rollout": first.status}, NOON + dt.timedelta(hours=1, microseconds=5)
    assert scene.admit() == first


def test_a_variant_whose_target_somebody_changed_is_in_the_wave_of_the_target_that_it_shall_have() -> None:
    body, there = set_of(waves(CANARY, REST, maxInFlight=9)), existing("x")
    plan = Plan(updates=((there, spec_of("a")),), waves={pair_of("a"): 0})
    found = admit(body, plan, {"x": SETTLED}, {}, NOON)
    assert written(found) == "x"
    assert found.status is not None
    assert found.status["waves"][0]["inFlight"] == 1


def test_a_rollout_is_not_complete_while_a_name_is_not_free_yet() -> None:
    plan = Plan(deletes=(existing("z"),), unchanged=(existing("a"),), waiting=("z",))
    found = admit(set_of(ROLLING), plan, {"a": SETTLED}, {}, NOON)
    assert written(found) == "-z"
    assert found.status is not None
    assert found.status["phase"] == "Progressing"


@pytest.mark.parametrize("rollout", [None, {"strategy": "AllAtOnce"}, ROLLING], ids=["none", "all at once", "rolling"])
def test_a_variant_that_is_paused_itself_is_neither_changed_nor_deleted(rollout: Json | None) -> None:
    off = replace(existing("b"), annotations={"config.porch.kpt.dev/paused": "true"})
    plan = Plan(
        deletes=(existing("y"), existing("z"), replace(off, name="x")),
        updates=((existing("a"), spec_of("a")), (off, spec_of("b"))),
    )
    found = admit(set_of(rollout), plan, {"a": OFF, "z": OFF, "y": SETTLED, "b": SETTLED}, {}, NOON)
    assert written(found) == "-y"
