"""Deleting published revisions from Git: a tag, or a package from the registered branch, as a push job.

Source: ``porch-api.md`` 4.7 and 6.6.
"""

import time
from typing import Any

from apiserver.engine.package_index import PACKAGE
from apiserver.engine.push_jobs import RefView
from apiserver.engine.recording import Recorder, is_placeholder
from apiserver.engine.registered import RegisteredRepository
from apiserver.engine.revision_body import revision_name_of
from apiserver.engine.tree_changes import author_of
from storage.bodies import decode
from storage.git.commits import build_commit, deletion_line, parse_commit
from storage.git.refs import TAGS, deletion_ref
from storage.git.trees import replace_subtree, subtree
from storage.interfaces import Entry
from storage.outbox import OutboxChange

Json = dict[str, Any]


class DeletePublishedJob:
    """Remove one published revision from the remote, then from the log."""

    def __init__(self, repository: RegisteredRepository, recorder: Recorder, entry: Entry, user: str) -> None:
        self.name = entry.name
        self.package = entry.fields[PACKAGE]
        self._repository = repository
        self._recorder = recorder
        self._entry = entry
        self._user = user
        self._body: Json = decode(entry)

    def plan(self, view: RefView) -> None:
        """Drop the tag, or commit the branch without the package; what is gone already is fine."""
        settings = self._repository.settings
        name = revision_name_of(self._body)
        path = settings.full_path(name.package)
        if is_placeholder(self._body):
            self._plan_branch(view, path)
            proposed = deletion_ref(path, name.workspace)
        else:
            version = self._body["status"]["selfLock"]["git"]["ref"].rpartition("/")[2]
            tag = f"{TAGS}{path}/{version}"
            if view.get(tag):
                view.add({tag: None}, [])
            proposed = deletion_ref(path, version)
        if view.get(proposed):
            view.add({proposed: None}, [])

    def _plan_branch(self, view: RefView, path: str) -> None:
        settings = self._repository.settings
        head = view.get(settings.branch_ref)
        if head is None:
            return
        root = parse_commit(view.read(head).data).tree
        if subtree(view, root, path) is None:
            return
        new_root, trees = replace_subtree(view, root, path, None)
        commit = build_commit(new_root, (head,), author_of(settings, self._user), deletion_line(path), int(time.time()))
        view.add({settings.branch_ref: commit.oid}, [*trees, commit])

    async def settle(self) -> None:
        """Record that it is gone."""
        drop = OutboxChange(self._repository.settings.key, self.name, drop=True)
        await self._recorder.removed(self._entry, [drop], self._user)
