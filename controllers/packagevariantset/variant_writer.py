"""Writes the variants of a set: deletes, then updates, then creations, a few at a time; what fails does not keep others back.

Source: ``variants.md`` 3.6, C-20; ``variants.md`` 6.2 for the annotation of rollouts.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from controllers.packagevariantset.cached_values import Member
from controllers.packagevariantset.report import Written
from krm.client.client import KubeClient, NoAnswer
from krm.client.informer import Informer
from krm.client.resources import PACKAGE_VARIANTS
from krm.meta.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    RequestEntityTooLarge,
    StatusError,
)
from krm.variants.sets.plan import APPLY, Existing, Failure
from krm.variants.sets.rollout import Admission
from krm.variants.sets.specs import spec_digest
from krm.variants.sets.vocabulary import API_VERSION, KIND, SET_LABEL, SPEC_HASH
from krm.variants.vocabulary import API_VERSION as VARIANT_API_VERSION
from krm.variants.vocabulary import FINALIZER
from krm.variants.vocabulary import KIND as VARIANT_KIND

Json = dict[str, Any]

AT_ONCE: Final = 16
"""Writes that are under way at the same time, for all sets together."""
_FINAL: Final = (BadRequest, Forbidden, Invalid, NotFound, RequestEntityTooLarge)
"""What trying again does not change; the rest may pass."""


@dataclass(slots=True)
class Outcome:
    """What became of the writes of a pass."""

    created: int = 0
    updated: int = 0
    deleted: int = 0
    failures: list[Failure] = field(default_factory=list)
    """What somebody has to do something about."""
    transient: StatusError | NoAnswer | None = None
    """The first of the errors after which trying again is enough."""
    waiting: list[str] = field(default_factory=list)
    """Names that variants have that are being deleted."""
    taken: list[str] = field(default_factory=list)
    """Names that others' variants have."""

    @property
    def written(self) -> Written:
        """How many were written."""
        return Written(self.created, self.updated, self.deleted)


class VariantWriter:
    """Writes variants, and tells the cache of them at once."""

    def __init__(self, client: KubeClient, variants: Informer[Member], at_once: int = AT_ONCE) -> None:
        self._client, self._variants = client, variants
        self._at_once, self._turns = at_once, asyncio.Semaphore(at_once)
        self._deleted: dict[str, str] = {}
        """UIDs of variants that we had deleted and whose event has not come, and their names."""

    @property
    def deletes(self) -> bool:
        """Whether there is a variant that we had deleted and whose event has not come."""
        return bool(self._deleted)

    def is_deleted(self, uid: str) -> bool:
        """Whether a variant that the cache shows was deleted by us."""
        return uid in self._deleted

    def seen(self, old: Member | None, new: Member | None) -> None:
        """Take an event of a variant: its end, or that it has begun, is known now."""
        if old is not None and (new is None or new.existing.terminating or new.existing.uid != old.existing.uid):
            self._deleted.pop(old.existing.uid, None)

    async def apply(self, set_body: Json, admission: Admission) -> Outcome:
        """Do what was admitted; repeating it after any interruption does the rest.

        Raises:
            WriteRefused: this process may not write any more.
        """
        outcome = Outcome()
        job = _Job(set_body, outcome)
        await self._all(job, ((one.name, one.pair, self._delete(job, one)) for one in admission.deletes))
        await self._all(job, ((one.name, one.pair, self._update(job, one, spec)) for one, spec in admission.updates))
        await self._all(job, ((name, _pair(spec), self._create(job, name, spec)) for name, spec in admission.creates))
        return outcome

    async def _all(self, job: "_Job", writes: Iterable["_Planned"]) -> None:
        """Do all writes of a kind, beginning in order."""
        waiting = iter(writes)
        done = await asyncio.gather(*(self._some(job, waiting) for _ in range(self._at_once)), return_exceptions=True)
        for error in done:
            if error is not None:
                raise error

    async def _some(self, job: "_Job", waiting: Iterator["_Planned"]) -> None:
        for name, pair, write in waiting:
            await self._attempt(job, name, pair, write)

    async def _attempt(self, job: "_Job", name: str, pair: tuple[str, str], write: "_Write") -> None:
        async with self._turns:
            if job.hopeless:
                return
            try:
                await write()
            except _FINAL as error:
                message = f'package variant "{name}" cannot be written: {error.message}'
                job.outcome.failures.append(Failure(*pair, APPLY, message))
            except (StatusError, NoAnswer) as error:
                job.failed(error)

    def _delete(self, job: "_Job", one: Existing) -> "_Write":
        async def write() -> None:
            try:
                await self._client.delete(PACKAGE_VARIANTS, job.namespace, one.name, uid=one.uid)
            except NotFound:  # its event is on the way
                return
            known = self._variants.get(job.namespace, one.name)
            if known is not None and known.existing.uid == one.uid and not known.existing.terminating:
                self._deleted[one.uid] = one.name
            job.outcome.deleted += 1

        return write

    def _update(self, job: "_Job", one: Existing, spec: Json) -> "_Write":
        async def write() -> None:
            body = await self._read(job, one.name)
            meta, digest, now = body["metadata"], spec_digest(spec), Member.of(body)
            if now.existing.uid != one.uid or now.existing.terminating or now.set_uid != job.uid:
                raise Conflict(f'package variant "{one.name}" was changed meanwhile')
            if now.paused or now.existing.digest == digest:
                return  # its event is on the way
            wanted = {**body, "metadata": job.annotated(meta, digest), "spec": spec}
            with self._variants.writing(job.namespace, one.name):
                self._variants.wrote(await self._client.update(PACKAGE_VARIANTS, wanted))
            job.outcome.updated += 1

        return write

    def _create(self, job: "_Job", name: str, spec: Json) -> "_Write":
        async def write() -> None:
            body = job.variant(name, spec)
            try:
                with self._variants.writing(job.namespace, name):
                    self._variants.wrote(await self._client.create(PACKAGE_VARIANTS, job.namespace, body))
            except AlreadyExists:
                await self._exists(job, name, _pair(spec))
                return
            job.outcome.created += 1

        return write

    async def _exists(self, job: "_Job", name: str, pair: tuple[str, str]) -> None:
        """Find out whose variant has a name that the cache does not know of."""
        body = await self._read(job, name)
        member = Member.of(body)
        if member.set_uid != job.uid:
            job.outcome.taken.append(name)
            message = f'package variant "{name}" exists already, and is not of this set'
            job.outcome.failures.append(Failure(*pair, APPLY, message))
        elif member.existing.terminating:
            job.outcome.waiting.append(name)
        else:  # ours, made by a request whose answer was lost
            self._variants.wrote(body)
            raise Conflict(f'package variant "{name}" was created meanwhile')

    async def _read(self, job: "_Job", name: str) -> Json:
        try:
            return await self._client.get(PACKAGE_VARIANTS, job.namespace, name)
        except NotFound as error:
            raise Conflict(f'package variant "{name}" was deleted meanwhile') from error


_Write = Callable[[], Awaitable[None]]
_Planned = tuple[str, tuple[str, str], _Write]
"""Name and pair of a variant, and what writes it."""


@dataclass(frozen=True, slots=True)
class _Job:
    """The writes of one pass over a set."""

    body: Json
    outcome: Outcome

    @property
    def namespace(self) -> str:
        namespace: str = self.body["metadata"]["namespace"]
        return namespace

    @property
    def uid(self) -> str:
        uid: str = self.body["metadata"]["uid"]
        return uid

    @property
    def hopeless(self) -> bool:
        """Whether the server is gone: every further write would wait for its deadline."""
        return isinstance(self.outcome.transient, NoAnswer)

    def failed(self, error: StatusError | NoAnswer) -> None:
        """Note an error that may pass; one that says the server is gone counts most."""
        if self.outcome.transient is None or isinstance(error, NoAnswer):
            self.outcome.transient = error

    def annotated(self, meta: Json, digest: str) -> Json:
        """Return the metadata of a variant with the digest of its spec, where there is a rollout; the rest is kept."""
        if not self.body["spec"].get("rollout"):
            return meta
        return {**meta, "annotations": {**(meta.get("annotations") or {}), SPEC_HASH: digest}}

    def variant(self, name: str, spec: Json) -> Json:
        """Return a variant to create."""
        meta = self.body["metadata"]
        owner = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "name": meta["name"],
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        metadata: Json = {
            "namespace": self.namespace,
            "name": name,
            "labels": {SET_LABEL: self.uid},
            "finalizers": [FINALIZER],
            "ownerReferences": [owner],
        }
        return {
            "apiVersion": VARIANT_API_VERSION,
            "kind": VARIANT_KIND,
            "metadata": self.annotated(metadata, spec_digest(spec)),
            "spec": spec,
        }


def _pair(spec: Json) -> tuple[str, str]:
    return spec["downstream"]["repo"], spec["downstream"]["package"]
