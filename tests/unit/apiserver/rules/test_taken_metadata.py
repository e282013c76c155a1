"""What of an object's metadata is taken from a client, and what stays the server's. Source: ``porch-api.md`` 2.4 and 4.3."""

from typing import Any

import pytest

from apiserver.rules.lifecycle import Lifecycle
from apiserver.rules.revision_changes import taken_metadata
from apiserver.rules.terminating import check_not_published_while_going
from krm.meta.errors import Invalid

LATEST, BINARY, PUBLISHED = (
    "kpt.dev/latest-revision",
    "porch.kpt.dev/binary-files",
    "porch.kpt.dev/published-commit",
)


def test_clients_own_labels_annotations_finalizers_and_owners_and_nothing_else() -> None:
    stored = {"name": "a", "uid": "1", "creationTimestamp": "then", "deletionTimestamp": "now", "labels": {"old": "x"}}
    sent: dict[str, Any] = {
        "name": "b",
        "uid": "2",
        "creationTimestamp": "now",
        "labels": {"new": "x"},
        "annotations": {"a": "b"},
        "finalizers": ["example.com/hold"],
        "ownerReferences": [{"uid": "3"}],
        "generation": 7,
    }

    taken = taken_metadata(stored, sent)

    assert taken == {
        "name": "a",
        "uid": "1",
        "creationTimestamp": "then",
        "deletionTimestamp": "now",
        "labels": {"new": "x"},
        "annotations": {"a": "b"},
        "finalizers": ["example.com/hold"],
        "ownerReferences": [{"uid": "3"}],
    }


@pytest.mark.parametrize("sent", [{}, {"labels": None, "annotations": None}, {"labels": {}, "annotations": {}}])
def test_what_the_server_says_stays_when_a_client_leaves_it_out(sent: dict[str, Any]) -> None:
    said = {"labels": {LATEST: "true"}, "annotations": {BINARY: '["a"]', PUBLISHED: "c0ffee"}}

    assert taken_metadata({"name": "a", **said}, sent) == {"name": "a", **said}


def test_what_the_server_does_not_say_is_not_taken_from_a_client() -> None:
    sent = {
        "labels": {LATEST: "true", "team": "edge"},
        "annotations": {BINARY: "[]", PUBLISHED: "x", "porch.kpt.dev/bypass-gates": "why", "note": "x"},
    }

    assert taken_metadata({"name": "a"}, sent) == {
        "name": "a",
        "labels": {"team": "edge"},
        "annotations": {"note": "x"},
    }


@pytest.mark.parametrize(
    ("going", "current", "desired", "refused"),
    [
        (True, Lifecycle.PROPOSED, Lifecycle.PUBLISHED, True),
        (True, Lifecycle.DELETION_PROPOSED, Lifecycle.PUBLISHED, True),
        (True, Lifecycle.DRAFT, Lifecycle.PROPOSED, False),
        (True, Lifecycle.DELETION_PROPOSED, Lifecycle.DELETION_PROPOSED, False),
        (False, Lifecycle.PROPOSED, Lifecycle.PUBLISHED, False),
        (False, Lifecycle.DELETION_PROPOSED, Lifecycle.PUBLISHED, False),
    ],
)
def test_what_is_being_deleted_is_not_published(
    going: bool, current: Lifecycle, desired: Lifecycle, refused: bool
) -> None:
    stored = {"metadata": {"deletionTimestamp": "now"} if going else {}}
    if not refused:
        check_not_published_while_going(stored, current, desired, "a")
        return
    with pytest.raises(Invalid, match="is being deleted and only waits for its finalizers"):
        check_not_published_while_going(stored, current, desired, "a")
