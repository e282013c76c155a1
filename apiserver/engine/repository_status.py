"""What a Repository object says about itself: its Ready condition and counters, and the wishes that are done.

Written only when it changes. Source: ``porch-api.md`` 1.9 and 7.3.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import structlog

from apiserver.engine.recording import SYNC_ACTOR
from apiserver.engine.registered import RepositorySettings
from apiserver.engine.revision_body import timestamp
from apiserver.rules.sync_plan import SYNC_ANNOTATION, SyncWishes
from krm.meta.errors import StatusError
from storage.bodies import decode, encode_body
from storage.interfaces import Entry, Mutation, ObjectKey, ObjectStore, Op, StaleWrite, StoreUnavailable

Json = dict[str, Any]
log = structlog.get_logger(__name__)

RESOURCE = "repositories.config.porch.kpt.dev"
FINALIZER = "config.porch.kpt.dev/repository"


WRITABLE = "Writable"
"""Whether the remote takes what it is sent; there from the first refusal on."""
PUSH_REFUSED, PUSH_ACCEPTED = "PushRefused", "PushAccepted"
MAX_MESSAGE = 4096
"""Characters of the condition's message."""


class Readiness(StrEnum):
    """Reasons of the Ready condition."""

    RECONCILING = "Reconciling"
    READY = "Ready"
    ERROR = "Error"


@dataclass(frozen=True, slots=True)
class SyncOutcome:
    """What a successful sync has to tell; ``full_at`` and ``next_full_at`` are None when no full sync is recorded."""

    revisions: int
    head: str | None
    full_at: datetime | None = None
    next_full_at: datetime | None = None
    done: SyncWishes | None = None
    """The wishes that this sync fulfilled."""


class RepositoryStatus:
    """Writes Repository objects on behalf of the engine; a write that fails is logged, the next one says the same."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def body(self, namespace: str, name: str) -> Json | None:
        """Return a Repository, decoded."""
        entry = self._store.get(ObjectKey(RESOURCE, namespace, name))
        return None if entry is None else decode(entry)

    async def begin(self, settings: RepositorySettings) -> None:
        """Hold a repository, and say of one that was never read that it is being read; a remote that hangs takes long to fail."""

        def change(body: Json) -> None:
            _hold(body)
            status = body.setdefault("status", {})
            if not status.get("conditions"):
                set_ready(status, Readiness.RECONCILING, "Repository reconciliation in progress", settings.generation)

        await self._write(settings, change)

    async def failed(self, settings: RepositorySettings, message: str) -> None:
        """Say why a repository cannot be used."""

        def change(body: Json) -> None:
            status = body.setdefault("status", {})
            status["observedGeneration"] = settings.generation
            set_ready(status, Readiness.ERROR, message, settings.generation)

        await self._write(settings, change)

    async def synced(self, settings: RepositorySettings, outcome: SyncOutcome) -> None:
        """Say that a repository is ready, what it holds and when it is read next; take done wishes off."""

        def change(body: Json) -> None:
            _hold(body)
            status = body.setdefault("status", {})
            generation = settings.generation
            if _take_off(body, status, outcome.done):
                generation = body["metadata"]["generation"] = body["metadata"].get("generation", 1) + 1
            status["observedGeneration"] = generation
            status["packageCount"] = outcome.revisions
            if outcome.head:
                status["gitCommitHash"] = outcome.head
            else:
                status.pop("gitCommitHash", None)
            if outcome.full_at is not None and outcome.next_full_at is not None:
                status["lastFullSyncTime"] = _time(outcome.full_at)
                status["nextFullSyncTime"] = _time(outcome.next_full_at)
            set_ready(status, Readiness.READY, "Repository Ready", generation)

        await self._write(settings, change)

    async def writable(self, settings: RepositorySettings, refused: str) -> None:
        """Say what the remote refuses to take, or with an empty message that it takes everything; the latter only after the former."""

        def change(body: Json) -> None:
            status = body.setdefault("status", {})
            if refused:
                set_condition(status, WRITABLE, PUSH_REFUSED, refused[:MAX_MESSAGE], settings.generation, holds=False)
            elif any(c.get("type") == WRITABLE for c in status.get("conditions") or []):
                set_condition(
                    status, WRITABLE, PUSH_ACCEPTED, "the remote takes every push", settings.generation, holds=True
                )

        await self._write(settings, change)

    async def release(self, namespace: str, name: str, uid: str = "") -> None:
        """Take our finalizer off (with ``uid``: of that object only); it goes with its last one.

        Raises:
            StoreUnavailable: the database refused; the finalizer is still there.
        """

        def change(body: Json) -> None:
            finalizers = body["metadata"].get("finalizers") or []
            body["metadata"]["finalizers"] = [f for f in finalizers if f != FINALIZER]

        await self._rewrite(namespace, name, change, uid=uid)

    async def _write(self, settings: RepositorySettings, change: Callable[[Json], None]) -> None:
        try:
            await self._rewrite(settings.namespace, settings.name, change, uid=settings.uid)
        except (StoreUnavailable, StatusError) as error:
            log.warning("a repository's status could not be written", repository=settings.key, problem=str(error))

    async def _rewrite(self, namespace: str, name: str, change: Callable[[Json], None], *, uid: str = "") -> None:
        """Change a Repository (with ``uid``: that one only); it is removed when it is to go and nothing holds it."""
        while True:
            entry = self._store.get(ObjectKey(RESOURCE, namespace, name))
            if entry is None or (uid and entry.uid != uid):
                return
            with contextlib.suppress(StaleWrite):
                await self._replace(entry, change)
                return

    async def _replace(self, entry: Entry, change: Callable[[Json], None]) -> None:
        old, body = decode(entry), decode(entry)
        change(body)
        metadata = body["metadata"]
        remove = bool(metadata.get("deletionTimestamp")) and not metadata.get("finalizers")
        if body == old and not remove:
            return
        op = Op.DELETE if remove else Op.UPDATE
        await self._store.write([Mutation(entry.key, op, entry.rv, entry.uid, encode_body(body), SYNC_ACTOR)])


def _hold(body: Json) -> None:
    """Add our finalizer: where Repositories are a cluster's, nobody else does. One that is on its way is let go."""
    metadata = body["metadata"]
    finalizers = metadata.get("finalizers") or []
    if FINALIZER not in finalizers and not metadata.get("deletionTimestamp"):
        metadata["finalizers"] = [*finalizers, FINALIZER]


def _take_off(body: Json, status: Json, done: SyncWishes | None) -> bool:
    """Take fulfilled wishes out of an object, unless others stand there by now; tell whether its spec changed."""
    if done is None:
        return False
    annotations = body["metadata"].get("annotations") or {}
    if done.requested and annotations.get(SYNC_ANNOTATION) == done.requested:
        del annotations[SYNC_ANNOTATION]
        if not annotations:
            del body["metadata"]["annotations"]
    if not done.run_once_at:
        return False
    status["observedRunOnceAt"] = done.run_once_at
    sync = body["spec"].get("sync") or {}
    if sync.get("runOnceAt") != done.run_once_at:
        return False
    del sync["runOnceAt"]
    if not sync:
        del body["spec"]["sync"]
    return True


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def set_ready(status: Json, readiness: Readiness, message: str, generation: int) -> None:
    """Set the Ready condition."""
    set_condition(status, "Ready", readiness, message, generation, holds=readiness is Readiness.READY)


def set_condition(status: Json, type_: str, reason: str, message: str, generation: int, *, holds: bool) -> None:
    """Set a condition in its place; the transition time moves only with the status."""
    conditions: list[Json] = list(status.get("conditions") or [])
    at = next((number for number, one in enumerate(conditions) if one.get("type") == type_), len(conditions))
    old = conditions[at] if at < len(conditions) else {}
    value = "True" if holds else "False"
    conditions[at:] = [
        {
            "type": type_,
            "status": value,
            "reason": str(reason),
            "message": message,
            "observedGeneration": generation,
            "lastTransitionTime": old["lastTransitionTime"] if old.get("status") == value else timestamp(),
        },
        *conditions[at + 1 :],
    ]
    status["conditions"] = conditions
