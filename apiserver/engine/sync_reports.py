"""What a sync tells users besides the revisions themselves: what others did to a repository with Git, and what it left out.

Events, and a line in the log for what is left out. Source: ``users.md`` 7.3 row 17.
"""

from collections.abc import Mapping, Sequence

import structlog

from apiserver.engine.discovered import Difference, moved_tag
from apiserver.engine.package_index import COMMIT, REVISION
from apiserver.engine.recording import is_published
from apiserver.engine.registered import RepositorySettings
from apiserver.engine.repository_status import RESOURCE
from apiserver.engine.revision_body import self_commit
from apiserver.engine.revision_events import (
    BRANCH_REWRITTEN,
    CHANGED_IN_GIT,
    DELETED_IN_GIT,
    LEFT_OUT,
    TAG_MOVED,
    RevisionEvents,
)
from storage.bodies import decode
from storage.interfaces import Entry, ObjectKey, ObjectStore

log = structlog.get_logger(__name__)

MAX_TOLD = 20
"""Reports of one kind in one sync; the first ones show what is going on."""


class SyncReports:
    """Reports about one repository and its revisions."""

    def __init__(self, store: ObjectStore, events: RevisionEvents) -> None:
        self._store = store
        self._events = events

    def left_out(self, settings: RepositorySettings, problems: Sequence[str]) -> None:
        """Report refs and directories that cannot be read as packages; the others are served."""
        for problem in problems[:MAX_TOLD]:
            log.warning("left out of a repository", repository=settings.key, problem=problem)
            self._about_repository(settings, LEFT_OUT, problem)
        if (more := len(problems) - MAX_TOLD) > 0:
            self._about_repository(settings, LEFT_OUT, f"{more} more refs or directories cannot be read as packages")

    def branch_rewritten(self, settings: RepositorySettings, old: str, new: str | None) -> None:
        """Report that the registered branch lost commits."""
        now = f"it is at {new}" if new else "it is gone"
        message = f"branch {settings.branch} was rewritten by somebody else: {old} is not part of it any more; {now}"
        self._about_repository(settings, BRANCH_REWRITTEN, message)

    def changes(self, difference: Difference, existing: Mapping[str, Entry]) -> None:
        """Report revisions that others changed or deleted in Git; what is merely new needs no report."""
        told = 0
        for name, body in difference.written.items():
            entry = existing.get(name)
            if entry is None or self_commit(body) == entry.fields[COMMIT] or told >= MAX_TOLD:
                continue
            if moved_tag(body, entry):
                was, now = entry.fields[COMMIT], self_commit(body)
                message = f"the tag of this published revision was moved by somebody else, from {was} to {now}"
                self._events.report(body, TAG_MOVED, message, warning=True)
                told += 1
            elif not is_published(entry):
                self._events.report(body, CHANGED_IN_GIT, f"changed by a push to Git: {self_commit(body)}")
                told += 1
        for entry in [entry for entry in difference.gone if int(entry.fields[REVISION]) >= 0][:MAX_TOLD]:
            what = "tag" if is_published(entry) else "branch"
            message = f"its {what} was deleted in Git by somebody else"
            self._events.report(decode(entry), DELETED_IN_GIT, message, warning=True)

    def _about_repository(self, settings: RepositorySettings, reason: str, message: str) -> None:
        entry = self._store.get(ObjectKey(RESOURCE, settings.namespace, settings.name))
        if entry is not None:
            self._events.report(decode(entry), reason, message, warning=True)
