"""What a pass comes to in one sentence: which of several things is told, and who waits."""

from typing import Any

import pytest

from krm.variants.conditions import MOST_CHARACTERS
from krm.variants.sets.plan import Existing, Failure, Plan
from krm.variants.sets.rollout import Admission
from krm.variants.sets.targets import UnrollError
from krm.variants.sets.verdict import (
    Verdict,
    invalid,
    not_rendered,
    verdict,
    without_targets,
    without_upstream,
)
from krm.variants.upstream import UpstreamNotFound, UpstreamNotPublished
from krm.variants.variant import UpstreamSpec

Json = dict[str, Any]
PAUSED = {"config.porch.kpt.dev/paused": "true"}
FAILURE = Failure("r", "p", "render", "it fails")


def existing(name: str, **annotations: str) -> Existing:
    return Existing(name, name, "1", ("r", name), "digest", annotations=annotations)


def admission(plan: Plan, **parts: Any) -> Admission:
    """Admit everything, but for what is given."""
    return Admission(
        **{"deletes": plan.deletes, "updates": plan.updates, "creates": plan.creates, "status": None, **parts}
    )


TWO = Plan(creates=(("a", {}), ("b", {})))


@pytest.mark.parametrize(
    ("plan", "parts", "expected"),
    [
        (Plan(), {}, ("False Valid", "True Reconciled")),
        (TWO, {}, ("False Valid", "True Reconciled")),
        (TWO, {"creates": TWO.creates[:1]}, ("False Valid", "False RolloutInProgress")),
        (TWO, {"creates": (), "paused": "failed"}, ("False Valid", "False RolloutPaused")),
        (Plan(waiting=("x",)), {}, ("False Valid", "False WaitingForDeletion")),
        (Plan(guard="too many"), {}, ("True DeletionGuard", "False DeletionGuard")),
        (Plan(guard="too many", failures=(FAILURE,)), {}, ("True UnexpectedError", "False UnexpectedError")),
        (Plan(duplicates="two", failures=(FAILURE,)), {}, ("True DuplicateTargets", "False DuplicateTargets")),
    ],
)
def test_the_first_thing_that_somebody_must_know_is_told(plan: Plan, parts: Json, expected: tuple[str, str]) -> None:
    told = verdict(plan, admission(plan, **parts)).conditions

    assert tuple(f"{status} {reason}" for _, status, reason, _ in told) == expected


def test_a_variant_that_is_paused_waits_for_no_turn() -> None:
    there, paused = existing("a"), existing("b", **PAUSED)
    plan = Plan(deletes=(there, paused), updates=((existing("c", **PAUSED), {}),))

    assert verdict(plan, admission(plan, deletes=(there,), updates=())).ready
    assert (
        verdict(plan, admission(plan, deletes=(), updates=())).message
        == "1 package variants wait for their turn in the rollout"
    )


def test_what_failed_when_it_was_written_counts_like_what_was_not_rendered() -> None:
    found = verdict(Plan(failures=(FAILURE,)), admission(Plan()), failures=[Failure("r", "q", "apply", "refused")])

    assert (found.stalled, found.message) == (True, "it fails; refused")


def test_names_that_are_being_deleted_are_told_once() -> None:
    found = verdict(Plan(waiting=("b",)), admission(Plan()), waiting=["a", "b"])

    assert found.message.endswith("still being deleted: a, b")


def spec(**parts: Any) -> UpstreamSpec:
    return UpstreamSpec(
        **{"repo": "r", "package": "p", "revision": 3, "workspace": "", "tag": "", "allow_downgrade": False, **parts}
    )


@pytest.mark.parametrize(
    ("found", "reason", "message"),
    [
        (invalid(["one", "two"]), "ValidationError", "one; two"),
        (
            without_upstream(UpstreamNotFound("x"), spec()),
            "UpstreamNotFound",
            "could not find upstream package revision 'p/3' in repo 'r'",
        ),
        (
            without_upstream(UpstreamNotFound("x"), spec(workspace="w")),
            "UpstreamNotFound",
            "could not find upstream package revision 'p/w' in repo 'r'",
        ),
        (without_upstream(UpstreamNotFound("of the tag"), spec(tag="t")), "UpstreamNotFound", "of the tag"),
        (without_upstream(UpstreamNotPublished("a draft"), spec()), "UpstreamNotPublished", "a draft"),
        (without_targets(UnrollError("NoMatchingTargets", "no kind")), "NoMatchingTargets", "no kind"),
        (not_rendered(ValueError("too slow")), "UnexpectedError", "too slow"),
    ],
)
def test_what_keeps_a_set_from_being_worked_on_stalls_it(found: Verdict, reason: str, message: str) -> None:
    assert found.conditions == (("Stalled", "True", reason, message), ("Ready", "False", reason, message))


def test_a_message_has_at_most_so_many_characters() -> None:
    ((_, _, _, message), _) = invalid(["x" * 10_000]).conditions

    assert len(message) <= MOST_CHARACTERS
