"""Rendering, once, what was found in Git and says nothing of a render: drafts and proposals that no server ever saved.

Until then their pipeline has not passed, so that nobody can propose them. What waits is known from the objects themselves
(the reason of the server's condition), so a restart goes on where it was. Whoever pushed such a branch expects it to stay
what it is: when a render changes nothing but what the Kptfile says of renders, the outcome is kept with the object and no
commit is made; after a lost database the package is rendered again, with the same outcome. When a render changes files of a
draft, the rendered draft is saved like any other, or unrendered files would be published. A proposal is what its reviewers
saw: it is only told apart by whether its pipeline passes. A failure changes no file. Source: ``decisions.md`` 14.
"""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import structlog

from apiserver.engine.claims import Claims
from apiserver.engine.draft_contents import check_package, check_rendered
from apiserver.engine.draft_writing import DraftWriter
from apiserver.engine.off_loop import off_loop
from apiserver.engine.package_index import COMMIT, LIFECYCLE, REPOSITORY
from apiserver.engine.recording import REVISIONS, Recorder
from apiserver.engine.rendering import Renderer
from apiserver.engine.repositories import Repositories
from apiserver.engine.revision_body import lifecycle_of, pipeline_condition, self_commit
from apiserver.engine.revision_events import RENDER_FAILED, RevisionEvents
from apiserver.engine.tasks import StartingContents
from apiserver.rules.lifecycle import Lifecycle
from apiserver.rules.pipeline_gate import WAITING, failed, passed, with_condition
from krm.meta.errors import Invalid, StatusError
from krm.package.contents import Contents
from krm.package.kptfile import parse_kptfile
from storage.bodies import decode
from storage.interfaces import Entry, Event, EventType, ObjectKey, ObjectStore

Json = dict[str, Any]
log = structlog.get_logger(__name__)

PARALLEL: Final = 2
"""Renders at a time; requests have the rest of the machine."""
FIRST_RETRY, LAST_RETRY = 0.2, 300.0
"""Seconds until a draft is tried again that is being written or cannot be read; doubled each time."""
_UNPUBLISHED: Final = (Lifecycle.DRAFT, Lifecycle.PROPOSED)
_MARK: Final = WAITING.encode()


@dataclass(frozen=True, slots=True)
class _Outcome:
    condition: Json
    contents: Contents | None = None
    """The rendered package, where files changed."""


class ImportRendering:
    """Renders what waits for it, in the background."""

    def __init__(
        self,
        store: ObjectStore,
        recorder: Recorder,
        repositories: Repositories,
        claims: Claims,
        renderer: Renderer,
        starting: StartingContents,
        writer: DraftWriter,
        events: RevisionEvents,
    ) -> None:
        self._store = store
        self._recorder = recorder
        self._repositories = repositories
        self._claims = claims
        self._renderer = renderer
        self._starting = starting
        self._writer = writer
        self._events = events
        self._waiting: dict[ObjectKey, float] = {}
        """What is to be rendered, first come first served, and the delay before a next attempt."""
        self._later: dict[ObjectKey, asyncio.TimerHandle] = {}
        self._some = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def observe(self, event: Event) -> None:
        """Take notice of a revision; called by the store for each event, those of its start included."""
        entry = event.entry
        if event.type is not EventType.DELETED and entry.fields[LIFECYCLE] in _UNPUBLISHED and _MARK in entry.body:
            self._add(entry.key, FIRST_RETRY)

    def start(self) -> None:
        """Begin to render; to be called once the store has started."""
        self._tasks = [asyncio.create_task(self._run()) for _ in range(PARALLEL)]

    async def stop(self) -> None:
        """End; what waits is taken up after the next start."""
        for handle in self._later.values():
            handle.cancel()
        self._later.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _add(self, key: ObjectKey, delay: float) -> None:
        self._later.pop(key, None)
        self._waiting.setdefault(key, delay)
        self._some.set()

    async def _run(self) -> None:
        while True:
            await self._some.wait()
            if not self._waiting:
                self._some.clear()
                continue
            key = next(iter(self._waiting))
            delay = self._waiting.pop(key)
            try:
                await self._render(key)
            except StatusError as error:
                # Being written, its repository not read yet, its content not there, the database or the renderer busy.
                log.debug("import not rendered yet", revision=key.name, problem=error.message)
                self._again(key, delay)
            except Exception:
                log.exception("import cannot be rendered", revision=key.name)
                self._again(key, LAST_RETRY)

    def _again(self, key: ObjectKey, delay: float) -> None:
        if key not in self._waiting and key not in self._later:
            following = min(delay * 2, LAST_RETRY)
            self._later[key] = asyncio.get_running_loop().call_later(delay, self._add, key, following)

    def _found(self, key: ObjectKey) -> Entry | None:
        """Return a revision that waits for its render still."""
        entry = self._store.get(key)
        if entry is None or entry.fields[LIFECYCLE] not in _UNPUBLISHED:
            return None
        return entry if pipeline_condition(decode(entry))["reason"] == WAITING else None

    async def _render(self, key: ObjectKey) -> None:
        """Render one revision and record the outcome, if it has not been changed meanwhile.

        Raises:
            StatusError: not now.
        """
        entry = self._found(key)
        if entry is None:
            return
        held = self._repositories.get(entry.namespace, entry.fields[REPOSITORY])
        outcome = await self._outcome(entry.name, await self._starting.read(held, entry))
        async with self._claims.claim(REVISIONS, entry.namespace, entry.name):
            current = self._found(key)
            if current is None or current.fields[COMMIT] != entry.fields[COMMIT]:
                return  # an edit was rendered when it was saved; a push was noticed
            body = decode(current)
            body["status"]["conditions"] = with_condition(body["status"].get("conditions") or (), outcome.condition)
            if outcome.contents is not None and lifecycle_of(body) is Lifecycle.DRAFT:
                task, parent = {"type": "render"}, self_commit(body)
                await self._writer.save(held, body, outcome.contents, current, parent, task, "", dry_run=False)
            else:
                await self._writer.move(held, body, current, "", dry_run=False)
        if outcome.condition["status"] != "True":
            self._events.report(body, RENDER_FAILED, outcome.condition["message"], warning=True)

    async def _outcome(self, name: str, contents: Contents) -> _Outcome:
        try:
            await off_loop(contents, check_package, name, contents)
            rendered = await self._renderer.render(contents)
            if rendered.failed:
                return _Outcome(failed(rendered.cause or rendered.error))
            await off_loop(rendered.contents, check_rendered, name, rendered)
        except Invalid as error:
            return _Outcome(failed(error.causes[0].message if error.causes else error.message))
        same = await off_loop(contents, _same_but_status, contents, rendered.contents)
        return _Outcome(passed(), None if same else rendered.contents)


def _same_but_status(before: Contents, after: Contents) -> bool:
    """Tell whether a render changed nothing but what the root Kptfile says of renders."""
    if before.keys() != after.keys():
        return False
    if any(before[path] != after[path] for path in before if path != "Kptfile"):
        return False
    old, new = (parse_kptfile(contents["Kptfile"].data).raw for contents in (before, after))
    return {**old, "status": None} == {**new, "status": None}
