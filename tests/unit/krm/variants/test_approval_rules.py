"""What is proposed and published without a person, and what never is. Source: ``variants.md`` 6.3, 2.12, C-14."""

import datetime as dt
from typing import Any

import pytest
from approval_scene import (
    BOTH,
    NOON,
    UPSTREAM,
    decided,
    edited,
    owner_reference,
    package_revision,
    package_variant,
    published,
)
from hypothesis import given
from hypothesis import strategies as st

from krm.variants import validation
from krm.variants.approval import (
    ApprovingVariant,
    Candidate,
    InvalidPolicy,
    Policy,
    Step,
    belongs_to,
    policy_of,
    problems,
)
from krm.variants.revisions import Revision

Json = dict[str, Any]
DRAFT, PROPOSED = package_revision(), package_revision("Proposed")
INITIAL = {"propose": "WhenReady", "publish": "Initial"}
FIRST = published("bar", 1, repository="deployments")
PLACEHOLDER = published("bar", -1, repository="deployments", workspaceName="main")


def annotated(body: Json, **annotations: str) -> Json:
    keys = {f"approval.nephio.org/{key}": value for key, value in annotations.items()}
    return edited(body, "metadata/annotations", keys)


def free(body: Json) -> Json:
    """Return a draft that no variant has anything to do with."""
    loose = edited(edited(body, "metadata/ownerReferences", []), "metadata/labels", {})
    return edited(loose, "status/upstreamLock", None)


# --- the next step of what is ready ------------------------------------------------------------------

STEPS: dict[str, tuple[Json, Json | None, tuple[Json, ...], Step | None]] = {
    "a draft is proposed": (DRAFT, package_variant(BOTH), (), Step.PROPOSE),
    "a draft may have an empty lifecycle": (package_revision(""), package_variant(BOTH), (), Step.PROPOSE),
    "a proposal is published": (PROPOSED, package_variant(BOTH), (), Step.PUBLISH),
    "only proposed": (DRAFT, package_variant({"propose": "WhenReady"}), (), Step.PROPOSE),
    "only proposed, so not published": (PROPOSED, package_variant({"propose": "WhenReady"}), (), None),
    "only published, what people propose": (PROPOSED, package_variant({"publish": "Always"}), (), Step.PUBLISH),
    "only published, so not proposed": (DRAFT, package_variant({"publish": "Always"}), (), None),
    "an empty policy does nothing": (DRAFT, package_variant({}), (), None),
    "Never is never": (PROPOSED, package_variant({"propose": "Never", "publish": "Never"}), (), None),
    "the first is published": (PROPOSED, package_variant(INITIAL), (), Step.PUBLISH),
    "the second is not": (PROPOSED, package_variant(INITIAL), (FIRST,), None),
    "the second is still proposed": (DRAFT, package_variant(INITIAL), (FIRST,), Step.PROPOSE),
    "something published without a number counts, too": (PROPOSED, package_variant(INITIAL), (PLACEHOLDER,), None),
    "what shall be deleted is published, too": (
        PROPOSED,
        package_variant(INITIAL),
        (edited(FIRST, "spec/lifecycle", "DeletionProposed"),),
        None,
    ),
    "another draft is nothing published": (
        PROPOSED,
        package_variant(INITIAL),
        (edited(FIRST, "spec/lifecycle", "Draft"),),
        Step.PUBLISH,
    ),
    "always is always": (PROPOSED, package_variant(BOTH), (FIRST,), Step.PUBLISH),
    "the annotation initial proposes": (annotated(DRAFT, policy="initial"), package_variant(), (), Step.PROPOSE),
    "the annotation initial publishes": (annotated(PROPOSED, policy="initial"), package_variant(), (), Step.PUBLISH),
    "the annotation initial leaves a second revision alone": (
        annotated(DRAFT, policy="initial"),
        package_variant(),
        (FIRST,),
        None,
    ),
    "the annotation always": (annotated(DRAFT, policy="always"), package_variant(), (FIRST,), Step.PROPOSE),
    "a package without a variant": (annotated(free(DRAFT), policy="initial"), None, (), Step.PROPOSE),
    "the variant's own policy wins over the annotation": (
        annotated(DRAFT, policy="always"),
        package_variant({"propose": "Never"}),
        (),
        None,
    ),
    "what is published stays": (package_revision("Published"), package_variant(BOTH), (), None),
    "what is being deleted is left alone": (
        edited(DRAFT, "metadata/deletionTimestamp", "2026-01-01T12:00:00Z"),
        package_variant(BOTH),
        (),
        None,
    ),
}


@pytest.mark.parametrize(("draft", "variant", "siblings", "expected"), STEPS.values(), ids=STEPS.keys())
def test_the_next_step(draft: Json, variant: Json | None, siblings: tuple[Json, ...], expected: Step | None) -> None:
    assert decided(draft, variant, siblings=siblings).step is expected


# --- what is not ready is never approved ------------------------------------------------------------------

NOT_READY: dict[str, tuple[str, Any, str]] = {
    "a gate that is False": ("status/conditions/0/status", "False", "gates that are not met: PackagePipelinePassed"),
    "a gate that is Unknown": ("status/conditions/1/status", "Unknown", "gates that are not met: PVOperationsComplete"),
    "a gate without a condition": ("status/conditions", [], "not met: PVOperationsComplete, PackagePipelinePassed"),
    "a gate of the package's own": (
        "spec/readinessGates",
        [{"conditionType": "mine"}, {"conditionType": "PVOperationsComplete"}],
        "not met: mine",
    ),
    "a gate with two conditions": (
        "status/conditions",
        [
            {"type": "PVOperationsComplete", "status": "True"},
            {"type": "PVOperationsComplete", "status": "False"},
            {"type": "PackagePipelinePassed", "status": "True"},
        ],
        "not met: PVOperationsComplete",
    ),
    "a variant's draft without its gate": (
        "spec/readinessGates",
        [{"conditionType": "PackagePipelinePassed"}],
        "it lacks the readiness gate PVOperationsComplete",
    ),
    "made of an older revision": ("status/upstreamLock/git/commit", "c1", 'it is not made of "blueprints.foo.v2"'),
    "made of another package": ("status/upstreamLock/git/directory", "fool", "it is not made of"),
    "made of another repository": ("status/upstreamLock/git/repo", "https://evil/x", "it is not made of"),
    "made of nothing known": ("status/upstreamLock", None, "it cannot be told what it is made of"),
    "in another package": ("spec/packageName", "baz", 'package variant "v" has another target'),
    "in another repository": ("spec/repository", "prod", 'package variant "v" has another target'),
}
BAD_VARIANTS: dict[str, tuple[str, Any, str]] = {
    "not ready": ("status/conditions/0/status", "False", 'package variant "v" is not ready'),
    "without a condition": ("status/conditions", [], 'package variant "v" is not ready'),
    "edited since": ("metadata/generation", 3, 'package variant "v" has not been worked on since it was edited'),
    "never worked on": ("status", {}, 'package variant "v" has not been worked on'),
    "being deleted": ("metadata/deletionTimestamp", "2026-01-01T00:00:00Z", 'package variant "v" is being deleted'),
    "paused": ("metadata/annotations", {"config.porch.kpt.dev/paused": "true"}, 'package variant "v" is paused'),
    "suspended": ("spec/suspend", True, 'package variant "v" is paused'),
    "has seen an older upstream": ("status/upstream/name", "blueprints.foo.v1", "has not seen its upstream yet"),
    "has seen nothing": ("status/upstream", {}, "has not seen its upstream yet"),
    "another package's upstream": ("spec/upstream/package", "gone", "could not find upstream package revision"),
    "an upstream that is no choice": ("spec/upstream/revision", -7, 'package variant "v" is invalid'),
}


@pytest.mark.parametrize("draft", [DRAFT, PROPOSED], ids=["draft", "proposal"])
@pytest.mark.parametrize(("path", "value", "why"), NOT_READY.values(), ids=NOT_READY.keys())
def test_what_is_not_ready_is_not_approved(draft: Json, path: str, value: Any, why: str) -> None:
    found = decided(edited(draft, path, value), package_variant(BOTH))
    assert found.step is None
    assert why in found.why


@pytest.mark.parametrize("draft", [DRAFT, PROPOSED], ids=["draft", "proposal"])
@pytest.mark.parametrize("approval", [BOTH, None], ids=["policy", "annotation"])
@pytest.mark.parametrize(("path", "value", "why"), BAD_VARIANTS.values(), ids=BAD_VARIANTS.keys())
def test_nothing_is_approved_while_its_variant_is_not_ready(
    draft: Json, approval: Json | None, path: str, value: Any, why: str
) -> None:
    variant = edited(package_variant(approval), path, value)
    found = decided(annotated(draft, policy="always"), variant)
    assert found.step is None
    assert why in found.why


def test_a_gate_holds_what_no_variant_owns_too() -> None:
    draft = edited(annotated(free(DRAFT), policy="initial"), "status/conditions/0/status", "False")
    assert decided(draft, None).step is None


def test_an_upstream_that_has_moved_is_looked_at_again() -> None:
    """The variant's status may come back to what it says now, which wakes nobody."""
    found = decided(DRAFT, package_variant(BOTH), upstream=(*UPSTREAM, published(number=3)))
    assert (found.step, found.recheck) == (None, 5.0)


def test_an_upstream_that_went_backwards_is_not_followed_nor_approved_by_its_number() -> None:
    """The variant keeps what it made of revision 2, which is gone."""
    found = decided(DRAFT, package_variant(BOTH), upstream=(published(number=1),))
    assert (found.step, found.why) == (None, "it cannot be told what it is made of")


# --- delay --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", [package_variant({**BOTH, "delay": "10m"}), package_variant()])
def test_a_delay_counts_from_the_creation(variant: Json) -> None:
    draft = annotated(DRAFT, policy="initial", delay="10m")
    early = decided(draft, variant, now=NOON + dt.timedelta(minutes=9, seconds=59))
    assert (early.step, early.recheck) == (None, 1)
    assert decided(draft, variant, now=NOON + dt.timedelta(minutes=10)).step is Step.PROPOSE


def test_a_delay_is_no_timer_for_what_is_not_ready() -> None:
    draft = edited(DRAFT, "status/conditions/0/status", "False")
    assert decided(draft, package_variant({**BOTH, "delay": "10m"})).recheck is None


# --- deletions ---------------------------------------------------------------------------------------------

GOING = package_revision("DeletionProposed")
CLEANS = {"approveDeletion": "Always"}


@pytest.mark.parametrize(
    ("draft", "variant", "expected"),
    [
        (edited(GOING, "spec/packageName", "old"), package_variant(CLEANS), Step.DELETE),
        (edited(GOING, "spec/packageName", "old"), package_variant(BOTH), None),
        (edited(GOING, "spec/packageName", "old"), package_variant(CLEANS, suspend=True), None),
        (GOING, package_variant(CLEANS), None),
        (GOING, edited(package_variant(CLEANS), "metadata/deletionTimestamp", "2026-01-01T00:00:00Z"), Step.DELETE),
        (annotated(free(GOING), policy="always"), None, None),
        (
            edited(edited(GOING, "spec/packageName", "old"), "metadata/deletionTimestamp", "2026-01-01T00:00:00Z"),
            package_variant(CLEANS),
            None,
        ),
    ],
    ids=[
        "former target",
        "no policy",
        "paused",
        "its target: somebody else's",
        "variant goes",
        "no variant",
        "goes already",
    ],
)
def test_only_what_the_variant_itself_gave_up_is_deleted(
    draft: Json, variant: Json | None, expected: Step | None
) -> None:
    assert decided(draft, variant).step is expected


# --- policies that cannot be understood -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotations", "why"),
    [
        ({"policy": "Initial"}, '"Initial" is neither initial nor always'),
        ({"policy": "x" * 500}, f'"{"x" * 64}" is neither'),
        ({"policy": "initial", "delay": "-1s"}, "approval.nephio.org/delay: must be a duration of 0 or more"),
        ({"policy": "initial", "delay": "soon"}, "approval.nephio.org/delay: must be a duration of 0 or more"),
    ],
)
def test_an_annotation_that_is_no_policy(annotations: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidPolicy, match=why):
        policy_of(Candidate.of(annotated(DRAFT, **annotations)), None)


def test_without_a_policy_nothing_is_asked() -> None:
    assert policy_of(Candidate.of(DRAFT), ApprovingVariant.of(package_variant())) is None
    assert policy_of(Candidate.of(annotated(DRAFT, delay="5m")), None) is None


@pytest.mark.parametrize(
    ("approval", "expected"),
    [
        (None, []),
        ({}, []),
        ({"propose": "WhenReady", "publish": "Initial", "delay": "1h", "approveDeletion": "Always"}, []),
        ({"propose": "", "publish": None}, []),
        ([], ["spec.approval must be an object"]),
        ({"propose": "Always"}, ['spec.approval.propose can only be "Never" or "WhenReady"']),
        ({"publish": "always"}, ['spec.approval.publish can only be "Never", "Initial" or "Always"']),
        ({"publish": ["Always"]}, ['spec.approval.publish can only be "Never", "Initial" or "Always"']),
        ({"approveDeletion": True}, ['spec.approval.approveDeletion can only be "Never" or "Always"']),
        ({"delay": "5"}, ["spec.approval.delay must be a duration of 0 or more, such as 90s, 10m or 1h30m"]),
        ({"delay": 5}, ["spec.approval.delay must be a duration of 0 or more, such as 90s, 10m or 1h30m"]),
    ],
)
def test_problems_of_a_policy(approval: Any, expected: list[str]) -> None:
    assert problems(approval, "spec.approval") == expected
    assert validation.problems(package_variant(approval)) == expected
    if expected:
        variant = ApprovingVariant.of(package_variant(approval))
        with pytest.raises(InvalidPolicy):
            policy_of(Candidate.of(DRAFT), variant)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.dictionaries(st.sampled_from(["propose", "publish", "delay", "approveDeletion", "x"]), inner)
            | st.lists(inner)
        ),
    )
)
def test_any_json_is_a_policy_or_has_problems(approval: Any) -> None:
    variant = ApprovingVariant.of(package_variant(approval))
    if problems(approval, "spec.approval"):
        with pytest.raises(InvalidPolicy):
            policy_of(Candidate.of(DRAFT), variant)
    else:
        assert isinstance(policy_of(Candidate.of(DRAFT), variant), Policy | None)


# --- a law ---------------------------------------------------------------------------------------------------


@given(
    lifecycle=st.sampled_from(["", "Draft", "Proposed", "Published", "DeletionProposed"]),
    conditions=st.lists(
        st.fixed_dictionaries(
            {
                "type": st.sampled_from(["PackagePipelinePassed", "PVOperationsComplete", "x"]),
                "status": st.sampled_from(["True", "False", "Unknown"]),
            }
        )
    ),
    commit=st.sampled_from(["c1", "c2", "c3"]),
    generation=st.integers(1, 3),
    ready=st.sampled_from(["True", "False"]),
    newest=st.integers(1, 3),
    approval=st.sampled_from([BOTH, INITIAL, CLEANS]),
)
def test_what_is_approved_was_ready(
    lifecycle: str, conditions: list[Json], commit: str, generation: int, ready: str, newest: int, approval: Json
) -> None:
    draft = package_revision(lifecycle, conditions=conditions)
    draft["status"]["upstreamLock"]["git"]["commit"] = commit
    variant = edited(
        edited(package_variant(approval), "metadata/generation", generation), "status/conditions/0/status", ready
    )
    found = decided(draft, variant, upstream=tuple(published(number=number) for number in range(1, newest + 1)))
    if found.step in (Step.PROPOSE, Step.PUBLISH):
        assert lifecycle in ("", "Draft", "Proposed")
        assert {one["status"] for one in conditions if one["type"] != "x"} == {"True"}
        assert {one["type"] for one in conditions} >= {"PackagePipelinePassed", "PVOperationsComplete"}
        assert (commit, generation, ready, newest) == ("c2", 2, "True", 2)


def test_who_a_revision_belongs_to() -> None:
    assert belongs_to(Revision.of(DRAFT), "uid-v")
    assert belongs_to(Revision.of(edited(DRAFT, "metadata/ownerReferences", [])), "uid-v")
    assert belongs_to(Revision.of(edited(free(DRAFT), "metadata/ownerReferences", [owner_reference()])), "uid-v")
    assert not belongs_to(Revision.of(free(DRAFT)), "uid-v")
