"""The comparison of answers sees what differs, and nothing else."""

from typing import Any

import pytest
from porchctl_meaning import ABSENT, TIME, UID, Learned, comments, file_meaning, meaning

DERIVED = "45ee0692-730a-51b2-9a1d-ad4f4ad55dc8"
DRAWN = "46ee0692-730a-41b2-9a1d-ad4f4ad55dc8"


def revision(**changes: Any) -> dict[str, Any]:
    return {
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "kind": "PackageRevision",
        "metadata": {"name": "a", "uid": DERIVED, "resourceVersion": "1", "creationTimestamp": "2026-11-21T12:43:47Z"},
        "spec": {"lifecycle": "Draft"},
        "status": {"selfLock": {"git": {"commit": "x"}}, "publishTimestamp": None},
        **changes,
    }


def places(recorded: Any, ours: Any) -> list[str]:
    return [difference.place for difference in Learned().differences(meaning(recorded), meaning(ours))]


@pytest.mark.parametrize(
    ("changed", "place"),
    [
        ({"spec": {"lifecycle": "Proposed"}}, "spec.lifecycle"),
        ({"spec": {}}, "spec.lifecycle"),
        ({"spec": {"lifecycle": "Draft", "tasks": []}}, "spec.tasks"),
        ({"metadata": {**revision()["metadata"], "uid": DERIVED.replace("4", "5", 1)}}, "metadata.uid"),
        ({"status": {**revision()["status"], "publishTimestamp": "2026-11-21T12:43:47Z"}}, "status.publishTimestamp"),
        ({"status": {**revision()["status"], "conditions": [{"type": "Ready"}]}}, "status.conditions"),
    ],
)
def test_a_different_field_is_seen(changed: dict[str, Any], place: str) -> None:
    assert places(revision(), revision(**changed)) == [place]


def test_versions_times_drawn_uids_and_our_default_gate_may_differ() -> None:
    ours = revision(
        metadata={"name": "a", "uid": DERIVED, "resourceVersion": "7", "creationTimestamp": "2027-01-01T00:00:00Z"}
    )
    ours["spec"] |= {"readinessGates": [{"conditionType": "PackagePipelinePassed"}]}
    ours["status"] |= {"conditions": [{"type": "PackagePipelinePassed", "status": "True"}]}

    assert places(revision(), ours) == []
    assert meaning({"metadata": {"uid": DRAWN}, "at": "2026-11-21T12:43:47Z"}) == {"metadata": {"uid": UID}, "at": TIME}


def test_a_commit_stands_for_the_same_recorded_one_everywhere() -> None:
    learned = Learned(commits={"known": "known"})

    assert (
        list(learned.differences({"a.commit": 0, "lock": {"commit": "x"}}, {"a.commit": 0, "lock": {"commit": "y"}}))
        == []
    )
    assert [it.place for it in learned.differences({"lock": {"commit": "x"}}, {"lock": {"commit": "z"}})] == [
        "lock.commit"
    ]
    assert [it.place for it in learned.differences({"lock": {"commit": "known"}}, {"lock": {"commit": "y"}})] == [
        "lock.commit"
    ]
    assert [it.ours for it in learned.differences({"lock": {"commit": "x"}}, {"lock": {}})] == [ABSENT]


def test_requests_carry_what_our_answers_said() -> None:
    learned = Learned(commits={"x": "y"})
    learned.learn_versions(
        {"items": [revision()]}, {"items": [revision(metadata={"name": "a", "resourceVersion": "7"})]}
    )

    sent = learned.sent(revision())

    assert sent["metadata"]["resourceVersion"] == "7"
    assert sent["status"]["selfLock"]["git"]["commit"] == "y"
    assert learned.sent(revision(metadata={"name": "b", "resourceVersion": "1"}))["metadata"]["resourceVersion"] == "1"


@pytest.mark.parametrize(
    "changed",
    [
        "b: 2 # two\na: 1\n",
        "a: 1\nb: '2' # two\n",
        "a: 1\nb: 2\n",
        "a: 1\nb: 2 # other\n",
        "a: 1\nb: 2 # two\n---\nc: 3\n",
        "a: 1\nb: [2] # two\n",
    ],
)
def test_a_file_with_other_documents_another_order_or_other_comments_is_different(changed: str) -> None:
    assert file_meaning("a.yaml", changed) != file_meaning("a.yaml", "a: 1\nb: 2 # two\n")


def test_a_file_in_another_layout_is_the_same() -> None:
    assert file_meaning("Kptfile", "a:\n- x: 1   # one\n- {y: 'z'}\n") == file_meaning(
        "Kptfile", 'a: [{x: 1}, {"y": z}] # one\n'
    )
    assert file_meaning("README.md", "a:  1") != file_meaning("README.md", "a: 1")


def test_comments_are_no_part_of_scalars() -> None:
    assert comments("# head\na: 'b # c' # d\ne: |\n  # text\nf: g#h # i\n") == ["# head", "# d", "# i"]
