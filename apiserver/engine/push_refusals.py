"""What a remote refuses, where users see it: a condition on the Repository, Events, and the answer to the request.

A branch that only others may push to, a hook, a key that may only read: the host's rule stands, nothing is lost, and the
same push is accepted once somebody allows it. The condition ``Writable`` is there from the first refusal on and says which
pushes wait. Source: issue 6 part 5; ``porch-api.md`` 6.5.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from apiserver.engine.registered import RegisteredRepository
from apiserver.engine.repository_status import RepositoryStatus
from apiserver.engine.revision_events import PUSH_REFUSED, RevisionEvents
from krm.meta.errors import Forbidden, ResourceName, StatusError
from storage.bodies import decode
from storage.git.errors import AuthenticationFailed, PushRejected
from storage.git.refs import HEADS, TAGS
from storage.interfaces import Entry, ObjectKey, ObjectStore

REVISIONS: Final = ResourceName("packagerevisions", "porch.kpt.dev")
MAX_NAMED: Final = 3
"""Refs, and revisions, that a message names."""
MAX_REMEMBERED: Final = 1000
"""Revisions whose refusal is remembered for one repository."""

Refusal = PushRejected | AuthenticationFailed


@dataclass(frozen=True, slots=True)
class _Refused:
    why: str
    refs: frozenset[str]
    """Those at fault; empty when the remote takes nothing at all."""
    publishes: bool
    """Whether the branch that all share is among them, or a tag."""


class PushRefusals:
    """The refusals of one repository's remote. Nobody waits for what it writes; a restart begins with none known."""

    def __init__(
        self, repository: RegisteredRepository, store: ObjectStore, status: RepositoryStatus, events: RevisionEvents
    ) -> None:
        self._repository = repository
        self._store = store
        self._status = status
        self._events = events
        self._refused: dict[str, _Refused] = {}
        self._written: str | None = None
        """The condition's message as last written; None while that is unknown."""
        self._writing: asyncio.Task[None] | None = None

    def refused(self, revision: str, refusal: Refusal) -> None:
        """Remember that the remote refused what it was sent for a revision, and tell whoever looks at either."""
        settings = self._repository.settings
        why = explain(self._repository, refusal)
        if len(self._refused) < MAX_REMEMBERED or revision in self._refused:
            blamed = frozenset(refusal.blamed) - {"*"} if isinstance(refusal, PushRejected) else frozenset()
            shared = any(ref == settings.branch_ref or ref.startswith(TAGS) for ref in blamed)
            self._refused[revision] = _Refused(why, blamed, shared)
        entry = self._entry(revision)
        if entry is not None:
            self._events.report(decode(entry), PUSH_REFUSED, why, warning=True)
        body = self._status.body(settings.namespace, settings.name)
        if body is not None:
            self._events.report(body, PUSH_REFUSED, f"{revision}: {why}", warning=True)
        self._write_soon()

    def accepted(self, revisions: Collection[str], refs: Collection[str]) -> None:
        """Forget the refusals that a push which went through, of these revisions and with these refs, proves outdated."""
        for revision, refused in list(self._refused.items()):
            taken = not refused.refs or not refused.refs.isdisjoint(refs)
            moved_on = revision in revisions and not refused.publishes
            if taken or moved_on or self._entry(revision) is None:
                del self._refused[revision]
        if self._message() != self._written:
            self._write_soon()

    async def close(self) -> None:
        """Write nothing any more."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.gather(self._writing, return_exceptions=True)

    def _entry(self, revision: str) -> Entry | None:
        return self._store.get(ObjectKey(str(REVISIONS), self._repository.settings.namespace, revision))

    def _message(self) -> str:
        if not self._refused:
            return ""
        named = [f"{revision}: {refused.why}" for revision, refused in list(self._refused.items())[:MAX_NAMED]]
        left = len(self._refused) - len(named)
        return "; ".join(named) + (f"; and {left} more" if left else "")

    def _write_soon(self) -> None:
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write())

    async def _write(self) -> None:
        while (message := self._message()) != self._written:
            await self._status.writable(self._repository.settings, message)
            self._written = message


def refusal(repository: RegisteredRepository, revision: str, error: Refusal) -> StatusError:
    """Answer a request whose push the remote refused: 403, because the same request fails until somebody allows it."""
    return Forbidden.of(REVISIONS, revision, f"{explain(repository, error)}; nothing was changed")


def explain(repository: RegisteredRepository, error: Refusal) -> str:
    """Say what was refused, in the host's words, and what would fix it."""
    settings = repository.settings
    secret = (
        f"Secret {settings.namespace}/{settings.secret}" if settings.secret else "nobody in particular (no secretRef)"
    )
    remote = f'the Git remote of repository "{settings.name}"'
    if isinstance(error, AuthenticationFailed):
        return f"{remote} refused the push: {error}; let {secret} push there, or name another Secret"
    blamed = sorted(error.blamed.items())
    refs = "; ".join(f"{_shown(ref)}: {why}" for ref, why in blamed[:MAX_NAMED])
    more = f" and {len(blamed) - MAX_NAMED} more" if len(blamed) > MAX_NAMED else ""
    said = f'; it says: "{error.said}"' if error.said else ""
    return f"{remote} refused the push ({refs}{more}){said}; allow {secret} to push there at the host, then try again"


def _shown(ref: str) -> str:
    for prefix, kind in ((HEADS, "branch"), (TAGS, "tag")):
        if ref.startswith(prefix):
            return f"{kind} {ref.removeprefix(prefix)}"
    return "everything" if ref == "*" else ref
