"""Writing package revisions to the log: the revision itself, its package's latest label, its placeholder.

Every write is compare-and-swap; whoever loses against another writer of the same object reads again and repeats.
"""

from collections.abc import Callable, Sequence
from typing import Any

from apiserver.engine.package_index import LIFECYCLE, PACKAGE, REPOSITORY, RESOURCE, REVISION, PackageIndex
from apiserver.engine.registered import RegisteredRepository
from apiserver.engine.revision_body import lifecycle_of, new_revision, set_managers, set_published, set_self_lock
from apiserver.rules.lifecycle import Lifecycle
from apiserver.rules.managed_labels import LATEST, with_latest
from krm.api.revision_name import RevisionName
from krm.meta.errors import NotFound, ResourceName, ServiceUnavailable
from storage.bodies import decode, encode_body
from storage.git.refs import tag_ref
from storage.interfaces import (
    Entry,
    Mutation,
    NotOurTurn,
    ObjectKey,
    ObjectStore,
    Op,
    OutcomeUnknown,
    StaleWrite,
    StoreUnavailable,
)
from storage.outbox import OutboxChange
from storage.turns import Turn

Json = dict[str, Any]
REVISIONS = ResourceName("packagerevisions", "porch.kpt.dev")
SYNC_ACTOR = "porch-sync"
"""Who the log says wrote what a sync found."""
MAX_RETRIES = 50
"""Lost compare-and-swaps in a row; each means that somebody else's write went through."""


def key_of(namespace: str, name: str) -> ObjectKey:
    """Return the log key of a package revision."""
    return ObjectKey(RESOURCE, namespace, name)


def create_mutation(body: Json, actor: str) -> Mutation:
    """Build the mutation that creates a revision."""
    metadata = body["metadata"]
    return Mutation(
        key_of(metadata["namespace"], metadata["name"]), Op.CREATE, 0, metadata["uid"], encode_body(body), actor
    )


def update_mutation(entry: Entry, body: Json, actor: str) -> Mutation:
    """Build the mutation that replaces ``entry`` by ``body``."""
    return Mutation(entry.key, Op.UPDATE, entry.rv, entry.uid, encode_body(body), actor)


def delete_mutation(entry: Entry, actor: str) -> Mutation:
    """Build the mutation that removes ``entry``; watchers are shown its last content."""
    return Mutation(entry.key, Op.DELETE, entry.rv, entry.uid, encode_body(decode(entry)), actor)


def set_latest_label(body: Json, *, latest: bool) -> None:
    """Make the managed label of a decoded object what it must be."""
    labels = with_latest(body["metadata"].get("labels"), latest=latest)
    if labels:
        body["metadata"]["labels"] = labels
    else:
        body["metadata"].pop("labels", None)


class Recorder:
    """The one place that writes package revisions."""

    def __init__(self, store: ObjectStore, index: PackageIndex) -> None:
        self._store = store
        self._index = index

    def next_revision(self, namespace: str, repository: str, package: str) -> int:
        """Return the number that the next approval of a package gives."""
        held = self._index.package(namespace, repository, package)
        return held.next_revision() if held else 1

    async def write(
        self, mutations: Sequence[Mutation], outbox: Sequence[OutboxChange] = (), turn: Turn | None = None
    ) -> Sequence[Entry]:
        """Commit mutations, which hold only as long as no other replica has had ``turn``, if there is one.

        Raises:
            StaleWrite: somebody else was first.
            NotOurTurn: another replica has had the turn; nothing was written.
            ServiceUnavailable: the database refused; nothing was written, or nobody can tell.
        """
        try:
            return await self._store.write(mutations, outbox, turn)
        except NotOurTurn:
            raise
        except OutcomeUnknown as error:
            why = f"the database went away ({error}); read the object again, then try again"
            raise ServiceUnavailable(why, retry_after=1) from error
        except StoreUnavailable as error:
            why = f"the database cannot be written ({error}); nothing was changed, try again"
            raise ServiceUnavailable(why, retry_after=1) from error

    async def change(
        self,
        namespace: str,
        name: str,
        change: Callable[[Json], None],
        actor: str,
        outbox: Sequence[OutboxChange] = (),
    ) -> Entry:
        """Apply ``change`` to the stored object and write it; repeat when another writer was first.

        Raises:
            NotFound: the revision is gone.
        """
        for _ in range(MAX_RETRIES):
            entry = self.entry(namespace, name)
            body = decode(entry)
            change(body)
            try:
                return (await self.write([update_mutation(entry, body, actor)], outbox))[0]
            except StaleWrite:
                continue
        raise ServiceUnavailable(f"package revision {name} is written by too many at once; try again", retry_after=1)

    def entry(self, namespace: str, name: str) -> Entry:
        """Return a revision in force.

        Raises:
            NotFound: there is none of that name.
        """
        entry = self._store.get(key_of(namespace, name))
        if entry is None:
            raise NotFound.of(REVISIONS, name)
        return entry

    async def published(
        self,
        repository: RegisteredRepository,
        revision: RevisionName,
        *,
        number: int,
        commit: str,
        at: int,
        user: str,
        managers: list[Json] | None = None,
    ) -> Entry:
        """Record an approval that the remote has: the revision, the label's move, the placeholder.

        ``at`` is seconds since the epoch; ``managers`` (None: those that are there) become the managedFields. Repeating it after a sync recorded the same changes nothing.
        """
        settings = repository.settings
        drop = OutboxChange(settings.key, revision.object_name, drop=True)
        for _ in range(MAX_RETRIES):
            entry = self.entry(settings.namespace, revision.object_name)
            body = decode(entry)
            set_published(body, number, by=user, at=at)
            if managers is not None:
                set_managers(body, managers)
            newest = number > self._highest_besides(settings.namespace, settings.name, revision)
            set_latest_label(body, latest=newest)
            path = settings.full_path(revision.package)
            lock = {"url": settings.url, "directory": path, "commit": commit}
            set_self_lock(body, ref=tag_ref(path, number).removeprefix("refs/tags/"), **lock)
            mutations = [update_mutation(entry, body, user)]
            if newest:  # a later push may have been recorded first
                mutations += self._demote(settings.namespace, settings.name, revision, user)
                mutations.append(self._placeholder(repository, revision, body, lock, user))
            try:
                return (await self.write(mutations, [drop]))[0]
            except StaleWrite:
                continue
        raise ServiceUnavailable(f"package {revision.package} is written by too many at once; try again", retry_after=1)

    def _highest_besides(self, namespace: str, repository: str, revision: RevisionName) -> int:
        """Return the highest number of the package's other revisions; another replica's sync may have recorded this one."""
        package = self._index.package(namespace, repository, revision.package)
        others = [entry for entry in package.published() if entry.name != revision.object_name] if package else []
        return max((int(entry.fields[REVISION]) for entry in others), default=0)

    def _demote(self, namespace: str, repository: str, revision: RevisionName, actor: str) -> list[Mutation]:
        """Take the label from whoever has it besides the revision that is published now."""
        package = self._index.package(namespace, repository, revision.package)
        mutations = []
        for entry in package.labelled_latest() if package else ():
            if entry.name != revision.object_name:
                body = decode(entry)
                set_latest_label(body, latest=False)
                mutations.append(update_mutation(entry, body, actor))
        return mutations

    def _placeholder(
        self,
        repository: RegisteredRepository,
        revision: RevisionName,
        published: Json,
        lock: dict[str, str],
        actor: str,
    ) -> Mutation:
        """Make the revision of the branch head show the content that was just published (4.4)."""
        settings = repository.settings
        name = RevisionName(settings.name, revision.package, settings.branch)
        entry = self._store.get(key_of(settings.namespace, name.object_name))
        tasks = published["spec"].get("tasks") or []
        fresh = new_revision(settings.namespace, name, Lifecycle.PUBLISHED, tasks, deployment=settings.deployment)
        body = fresh if entry is None else {**decode(entry), "spec": fresh["spec"], "status": fresh["status"]}
        body["spec"]["revision"] = -1
        for part, key in (("spec", "packageMetadata"), ("spec", "readinessGates"), ("status", "upstreamLock")):
            if key in published[part]:
                body[part][key] = published[part][key]
        for key in ("conditions", "publishedBy", "publishTimestamp"):
            if key in published["status"]:
                body["status"][key] = published["status"][key]
        set_self_lock(body, ref=settings.branch, **lock)
        return create_mutation(body, actor) if entry is None else update_mutation(entry, body, actor)

    async def removed(self, entry: Entry, outbox: Sequence[OutboxChange], actor: str) -> None:
        """Record that a revision is gone; the label moves on to the latest that is left."""
        for _ in range(MAX_RETRIES):
            mutations = [delete_mutation(entry, actor), *self._promote(entry, actor)]
            try:
                await self.write(mutations, outbox)
            except StaleWrite:
                current = self._store.get(entry.key)
                if current is None:
                    return
                entry = current
            else:
                return
        raise ServiceUnavailable(
            f"package revision {entry.name} is written by too many at once; try again", retry_after=1
        )

    def _promote(self, gone: Entry, actor: str) -> list[Mutation]:
        if LATEST not in gone.labels:
            return []
        package = self._index.package(gone.namespace, gone.fields[REPOSITORY], gone.fields[PACKAGE])
        left = [entry for entry in package.published() if entry.name != gone.name] if package else []
        if not left:
            return []
        latest = max(left, key=lambda entry: int(entry.fields[REVISION]))
        body = decode(latest)
        set_latest_label(body, latest=True)
        return [update_mutation(latest, body, actor)]


def is_published(entry: Entry) -> bool:
    """Tell whether a revision is Published or DeletionProposed."""
    return Lifecycle(entry.fields[LIFECYCLE]).is_published


def is_placeholder(body: Json) -> bool:
    """Tell whether a decoded revision tracks a branch rather than a tag."""
    spec = body["spec"]
    lock = body["status"].get("selfLock", {}).get("git", {})
    return spec.get("revision") == -1 and lifecycle_of(body).is_published and lock.get("ref") == spec["workspaceName"]
