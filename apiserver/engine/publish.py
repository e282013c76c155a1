"""Approval: the merge on the registered branch, its tag, and the end of the draft's branches, as one push job.

Source: ``porch-api.md`` 4.4 and 6.5; ``decisions.md`` 8.
"""

import time
from collections.abc import Sequence
from typing import Any

from apiserver.engine.package_index import COMMIT, LIFECYCLE
from apiserver.engine.push_jobs import RefView
from apiserver.engine.recording import Recorder
from apiserver.engine.registered import RegisteredRepository
from apiserver.engine.remote_queue import REVISIONS
from apiserver.engine.tree_changes import Together, author_of, package_tree
from apiserver.rules.lifecycle import Lifecycle
from krm.api.revision_name import RevisionName
from krm.meta.errors import Conflict
from storage.git.commits import Annotation, approval_line, build_commit, format_message, parse_commit
from storage.git.errors import ObjectMissing
from storage.git.objects import GitObject
from storage.git.refs import draft_ref, proposed_ref, tag_ref
from storage.git.trees import replace_subtree
from storage.interfaces import Entry

Json = dict[str, Any]


class PublishJob:
    """Publish one proposed revision, with these managedFields. After :meth:`settle`, ``published`` is its new entry."""

    def __init__(
        self,
        repository: RegisteredRepository,
        recorder: Recorder,
        revision: RevisionName,
        *,
        commit: str,
        pending: Sequence[GitObject],
        user: str,
        managers: list[Json] | None = None,
    ) -> None:
        self.name = revision.object_name
        self.package = revision.package
        self.published: Entry | None = None
        self._repository = repository
        self._recorder = recorder
        self._revision = revision
        self._commit = commit
        self._pending = pending
        self._user = user
        self._managers = managers
        self._number = 0
        self._merge = ""
        self._at = 0

    def plan(self, view: RefView) -> None:
        """Merge the draft's package into the branch as it is now; the last approval wins for its directory."""
        settings, workspace = self._repository.settings, self._revision.workspace
        if self._arrived_before(settings.namespace):
            return
        path = settings.full_path(self._revision.package)
        self._check_unmoved(view, path)
        head = view.get(settings.branch_ref)
        source = Together(view, self._pending)
        tree = package_tree(source, self._commit, path)
        root = parse_commit(source.read(head).data).tree if head else None
        new_root, trees = replace_subtree(source, root, path, tree)
        self._number = self._next_number(view, path)
        self._at = int(time.time())
        merge = build_commit(
            new_root,
            (head, self._commit) if head else (self._commit,),
            author_of(settings, self._user),
            format_message(approval_line(path, self._number), Annotation(path, workspace, str(self._number))),
            self._at,
        )
        self._merge = merge.oid
        refs: dict[str, str | None] = {settings.branch_ref: merge.oid, tag_ref(path, self._number): merge.oid}
        refs.update({ref: None for ref in _branches(path, workspace) if view.get(ref)})
        view.add(refs, [*self._pending, *trees, merge])

    async def settle(self) -> None:
        """Record the publication; the draft's outbox parcel goes in the same transaction."""
        if self.published is not None:
            return
        self.published = await self._recorder.published(
            self._repository,
            self._revision,
            number=self._number,
            commit=self._merge,
            at=self._at,
            user=self._user,
            managers=self._managers,
        )
        self._repository.objects.discard([obj.oid for obj in self._pending])

    def _arrived_before(self, namespace: str) -> bool:
        """Tell whether an earlier attempt of this job reached the remote although it looked as if it had not.

        Raises:
            Conflict: a sync found the revision changed.
        """
        entry = self._recorder.entry(namespace, self.name)
        if self._merge and entry.fields[COMMIT] == self._merge:
            self.published = entry
            return True
        if entry.fields[LIFECYCLE] != Lifecycle.PROPOSED or entry.fields[COMMIT] != self._commit:
            raise Conflict.of(REVISIONS, self.name)
        return False

    def _check_unmoved(self, view: RefView, path: str) -> None:
        """Refuse to publish what the remote's draft branch no longer is."""
        for ref in _branches(path, self._revision.workspace):
            actual = view.get(ref)
            if actual is not None and not self._descends_from(actual):
                why = f"branch {ref.removeprefix('refs/heads/')} was changed in the Git repository; read the package revision again"
                raise Conflict.of(REVISIONS, self.name, why)

    def _descends_from(self, commit: str) -> bool:
        """Tell whether the draft's line of edits contains ``commit``."""
        source = Together(self._repository.objects, self._pending)
        current: str | None = self._commit
        for _ in range(_MAX_DRAFT_COMMITS):
            if current is None or current == commit:
                return current is not None
            try:
                parents = parse_commit(source.read(current).data).parents
            except ObjectMissing:
                return False
            current = parents[0] if parents else None
        return False

    def _next_number(self, view: RefView, path: str) -> int:
        """Return a number above every one that is given: the log may not have those yet that were just pushed.

        Of these the lowest may be gone again: a number that was given and deleted does not show where the others end.
        """
        settings = self._repository.settings
        number = self._recorder.next_revision(settings.namespace, settings.name, self._revision.package)
        prefix = tag_ref(path, number).removesuffix(str(number))
        given = [one for one in range(number, number + _MAX_UNRECORDED) if view.get(f"{prefix}{one}") is not None]
        return given[-1] + 1 if given else number


_MAX_UNRECORDED = 256
"""Numbers of one package that may have been pushed and not be in the log yet: more than two batches have."""
_MAX_DRAFT_COMMITS = 10_000
"""Edits of one draft that are looked through; each is one save."""


def _branches(path: str, workspace: str) -> tuple[str, str]:
    return draft_ref(path, workspace), proposed_ref(path, workspace)
