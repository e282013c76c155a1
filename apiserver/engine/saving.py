"""Saving a draft's files: check, give back lost comments, render, write. Source: ``porch-api.md`` 5.2 to 5.5."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

from apiserver.engine.draft_contents import (
    NOT_PUSHED,
    PUSHED,
    check_package,
    check_rendered,
    failed_contents,
    refuse_render,
    refuse_save,
)
from apiserver.engine.draft_writing import DraftWriter
from apiserver.engine.off_loop import off_loop
from apiserver.engine.package_index import REPOSITORY
from apiserver.engine.recording import Recorder
from apiserver.engine.rendering import Renderer
from apiserver.engine.repositories import Held, Repositories
from apiserver.engine.revision_body import lifecycle_of, self_commit, set_managers
from apiserver.engine.revision_events import RENDER_FAILED, RevisionEvents
from apiserver.engine.tasks import StartingContents
from apiserver.rules.lifecycle import Lifecycle
from apiserver.rules.revision_changes import INTERNAL, check_version
from krm.meta.errors import ResourceName, StatusError
from krm.package.comment_healing import heal_comments, is_quick, may_have_lost_comments
from krm.package.contents import Contents, ContentsError, File, replace_texts
from storage.bodies import decode
from storage.interfaces import Entry

Json = dict[str, Any]

RESOURCES = ResourceName("packagerevisionresources", "porch.kpt.dev")
PUSH_ON_FAILURE: Final = "porch.kpt.dev/push-on-render-failure"
"""Annotation of a draft: "true" keeps files although their pipeline fails (``porch-api.md`` 5.5)."""
RENDER_TASK: Final[Json] = {"type": "render"}


class NewManagers(Protocol):
    """The managedFields of a revision after its files were written."""

    @property
    def if_changed(self) -> list[Json]: ...
    @property
    def if_same(self) -> list[Json]: ...


WantedFiles = Callable[[Entry, dict[str, File]], tuple[Json, list[str], NewManagers]]
"""Gets the current state; returns the wanted object, the binary files to keep, and who manages what after that."""
Saved = tuple[Entry, dict[str, File], Json]
"""The entry, the rendered contents, and the function results."""


class Saving:
    """Replaces the files of drafts. The caller holds the claim on the draft."""

    def __init__(
        self,
        recorder: Recorder,
        repositories: Repositories,
        renderer: Renderer,
        starting: StartingContents,
        writer: DraftWriter,
        events: RevisionEvents,
    ) -> None:
        self._recorder = recorder
        self._repositories = repositories
        self._renderer = renderer
        self._starting = starting
        self._writer = writer
        self._events = events

    async def save(self, namespace: str, name: str, resources: WantedFiles, user: str, *, dry_run: bool) -> Saved:
        """Replace a draft's files; raises what ``PackageService.save`` does."""
        entry = self._recorder.entry(namespace, name)
        body = decode(entry)
        held = self._repositories.get(namespace, entry.fields[REPOSITORY])
        old = await self._starting.read(held, entry)
        wanted, keep, managers = resources(entry, old)
        check_version(RESOURCES, "PackageRevisionResources", name, wanted, entry.rv, entry.uid)
        lifecycle = lifecycle_of(body)
        if lifecycle is not Lifecycle.DRAFT:
            why = f'cannot update a package revision with lifecycle value "{lifecycle}"; package must be Draft'
            raise refuse_save(name, "spec.lifecycle", why)
        try:
            contents = replace_texts(old, (wanted.get("spec") or {}).get("resources") or {}, keep)
        except ContentsError as error:
            raise refuse_save(name, "spec.resources", str(error)) from error
        await off_loop(contents, check_package, name, contents)
        contents = await _with_comments(old, contents)
        rendered = await self._renderer.render(contents)
        if rendered.failed and (dry_run or not _keeps_failures(body)):
            raise refuse_render(name, NOT_PUSHED, rendered)
        if rendered.failed:
            set_managers(body, managers.if_changed)
            kept = await off_loop(rendered.contents, failed_contents, name, rendered)
            await self._keep(held, body, kept, entry, user)
            self._events.report(body, RENDER_FAILED, rendered.error, warning=True)
            raise refuse_render(name, PUSHED, rendered)
        await off_loop(rendered.contents, check_rendered, name, rendered)
        set_managers(body, managers.if_same if rendered.contents == old else managers.if_changed)
        saved = await self._writer.save(
            held, body, rendered.contents, entry, self_commit(body), RENDER_TASK, user, dry_run=dry_run
        )
        return saved, rendered.contents, rendered.results

    async def _keep(self, held: Held, body: Json, contents: Contents, entry: Entry, user: str) -> None:
        """Save what is left of a render that failed (``porch-api.md`` 5.5).

        Raises:
            StatusError: it cannot be saved; the error is that of any save, and says that nothing was kept.
        """
        try:
            await self._writer.save(held, body, contents, entry, self_commit(body), RENDER_TASK, user, dry_run=False)
        except StatusError as error:
            error.message = f"{INTERNAL}failed to persist resources after render failure: {error.message}"
            raise


async def _with_comments(old: Contents, contents: dict[str, File]) -> dict[str, File]:
    """Give back the comments that a client lost; off the event loop where that takes longer than a moment."""
    if is_quick(old, contents):
        lost = may_have_lost_comments(old, contents)
    else:
        lost = await asyncio.to_thread(may_have_lost_comments, old, contents)
    return await asyncio.to_thread(heal_comments, old, contents) if lost else contents


def _keeps_failures(body: Json) -> bool:
    return (body["metadata"].get("annotations") or {}).get(PUSH_ON_FAILURE) == "true"
