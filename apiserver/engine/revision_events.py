"""What the engine tells users besides its answers: Events about package revisions and Repositories.

A port: the engine reports, whoever is behind it writes when it has time. Source: ``porch-api.md`` 4; ``decisions.md`` 14.
"""

from collections.abc import Iterable
from typing import Any, Final, Protocol

from apiserver.rules.lifecycle import Lifecycle

Json = dict[str, Any]

CREATED: Final = "Created"
PROPOSED: Final = "Proposed"
REJECTED: Final = "Rejected"
APPROVED: Final = "Approved"
DELETION_PROPOSED: Final = "DeletionProposed"
DELETION_REJECTED: Final = "DeletionRejected"
DELETED: Final = "Deleted"
RENDER_FAILED: Final = "RenderFailed"
GATES_BYPASSED: Final = "GatesBypassed"
LEFT_OUT: Final = "LeftOut"
BRANCH_REWRITTEN: Final = "BranchRewritten"
TAG_MOVED: Final = "TagMoved"
CHANGED_IN_GIT: Final = "ChangedInGit"
DELETED_IN_GIT: Final = "DeletedInGit"
SYNC_FAILED: Final = "SyncFailed"
PUSH_REFUSED: Final = "PushRefused"
MERGE_DECIDED: Final = "MergeDecided"


class RevisionEvents(Protocol):
    """Takes reports about objects; ``docs/reference/events.md`` lists the reasons."""

    def report(self, body: Json, reason: str, message: str, *, warning: bool = False) -> None:
        """Tell users of an object what happened to it, some time soon.

        ``body`` is the decoded object: its apiVersion, kind, namespace, name and uid are used, now. ``reason`` is one word
        in CamelCase; ``message`` a sentence without secrets, of which 1,024 characters are kept.

        Never waits and never raises; reports that come faster than they can be written are dropped. The same report again
        counts up the Event that is there.
        """


def report_transition(events: RevisionEvents, before: Lifecycle, body: Json, user: str) -> None:
    """Report that a revision has left a lifecycle for the one that ``body`` shows; nothing where they are the same."""
    after = Lifecycle(body["spec"].get("lifecycle") or "Draft")
    said = _TRANSITIONS.get((before, after))
    if said is not None:
        reason, message = said
        events.report(body, reason, message.format(user=user, revision=body["spec"].get("revision", 0)))


def report_notes(events: RevisionEvents, body: Json, notes: Iterable[str]) -> None:
    """Report what a merge decided about places that both sides had changed."""
    for note in notes:
        events.report(body, MERGE_DECIDED, note, warning=True)


_TRANSITIONS: Final = {
    (Lifecycle.DRAFT, Lifecycle.PROPOSED): (PROPOSED, "proposed for publication by {user}"),
    (Lifecycle.PROPOSED, Lifecycle.DRAFT): (REJECTED, "proposal rejected by {user}; it is a draft again"),
    (Lifecycle.PROPOSED, Lifecycle.PUBLISHED): (APPROVED, "approved by {user} and published as revision {revision}"),
    (Lifecycle.PUBLISHED, Lifecycle.DELETION_PROPOSED): (DELETION_PROPOSED, "proposed for deletion by {user}"),
    (Lifecycle.DELETION_PROPOSED, Lifecycle.PUBLISHED): (
        DELETION_REJECTED,
        "proposal of its deletion rejected by {user}; it stays published",
    ),
}
"""(before, after) → the reason and the message. Whatever else happens to a lifecycle comes from Git and is no news."""
