"""The object store of a server in a cluster: its own objects in the log, and the few kinds that are the cluster's.

Whoever reads Repositories, namespaces and Secrets asks the one store, as without a cluster; only where they are differs.
Source: ``architecture.md`` 3.6; ADR 0033.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from apiserver.cluster.answers import ClusterUnusable, cluster_errors
from apiserver.cluster.mirror import Mirror, wait_for_all
from apiserver.cluster.repository_writer import RepositoryWriter
from apiserver.cluster.secrets import ClusterSecrets
from apiserver.engine.repositories import RESOURCE as REPOSITORIES
from apiserver.engine.repositories import SECRETS
from krm.client.client import KubeClient
from krm.client.resources import REPOSITORIES as REPOSITORY_RESOURCE
from krm.client.resources import Resource
from krm.meta.errors import NotFound
from storage.interfaces import Entry, Index, ListQuery, Mutation, ObjectKey, ObjectStore, Observer, Page, Refresh, Watch
from storage.outbox import Outbox, OutboxChange
from storage.turns import Claim, Election, TakenTurn, Turn

NAMESPACES: Final = "namespaces"
NAMESPACE_RESOURCE: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
START_SECONDS: Final = 30.0
"""Until the cluster's objects must have been read; a start with 10,000 of them takes two."""


class ClusterStore:
    """An ``ObjectStore`` whose Repositories and namespaces are mirrored from a cluster; Secrets are read from it by name.

    A write is of own objects, or of one Repository: there is no transaction across both.
    """

    def __init__(self, own: ObjectStore, client: KubeClient) -> None:
        self._own = own
        self._client = client
        self._secrets = ClusterSecrets(client)
        self._mirrors = {
            REPOSITORIES: Mirror(client, REPOSITORY_RESOURCE, REPOSITORIES),
            NAMESPACES: Mirror(client.of_metadata(), NAMESPACE_RESOURCE, NAMESPACES),
        }
        self._repositories = RepositoryWriter(client, self._mirrors[REPOSITORIES])
        self._following: list[asyncio.Task[None]] = []

    @property
    def following(self) -> bool:
        """Whether the cluster's objects were read, and are followed; also while the cluster is away."""
        return bool(self._following) and not any(task.done() for task in self._following)

    @property
    def outbox(self) -> Outbox:
        """The outbox of the own store."""
        return self._own.outbox

    @property
    def shared(self) -> bool:
        """Whether other replicas write to the own database."""
        return self._own.shared

    @property
    def rv(self) -> int:
        """The revision of the own objects."""
        return self._own.rv

    @property
    def incarnation(self) -> str:
        """Which life of the own database this is."""
        return self._own.incarnation

    # --- life ---------------------------------------------------------------------------------

    def register(self, resource: str, index: Index, *, sealed: bool = False, refresh: Refresh | None = None) -> None:
        """Serve a resource of our own."""
        self._own.register(resource, index, sealed=sealed, refresh=refresh)

    def unregister(self, resource: str) -> None:
        """Stop serving a resource of our own."""
        self._own.unregister(resource)

    async def reindex(self, resource: str, index: Index, *, refresh: Refresh | None = None) -> None:
        """Serve a resource of our own by another index."""
        await self._own.reindex(resource, index, refresh=refresh)

    def observe(self, resource: str, observer: Observer) -> None:
        """Call ``observer`` for each event of a resource; never for Secrets, which are not followed."""
        if resource in self._mirrors:
            self._mirrors[resource].observe(observer)
        elif resource != SECRETS:
            self._own.observe(resource, observer)

    async def start(self) -> None:
        """Read the cluster's objects, then load our own.

        Raises:
            ClusterUnusable: the cluster does not let us, or does not answer; nothing was begun. To go on would be to
                take all Repositories for deleted.
            StoreUnavailable: the database cannot be used.
        """
        self._following = [asyncio.create_task(mirror.run()) for mirror in self._mirrors.values()]
        try:
            await self._filled()
            await self._own.start()
        except BaseException:
            await self._stop_following()
            raise

    async def _filled(self) -> None:
        if problem := await wait_for_all(list(self._mirrors.values()), START_SECONDS):
            raise ClusterUnusable(
                f"{problem}; the server needs the CustomResourceDefinitions of Porch, and the rights to get, list and watch "
                "repositories and namespaces (see docs/how-to/run-behind-a-kube-apiserver.md)"
            )

    async def stop(self) -> None:
        """Stop following the cluster, then our own store."""
        await self._stop_following()
        await self._own.stop()

    async def _stop_following(self) -> None:
        for task in self._following:
            task.cancel()
        await asyncio.gather(*self._following, return_exceptions=True)
        self._following = []

    # --- reading ------------------------------------------------------------------------------

    def get(self, key: ObjectKey) -> Entry | None:
        """Return an object as it is in memory; Secrets are not."""
        mirror = self._mirrors.get(key.resource)
        return mirror.get(key) if mirror else self._own.get(key)

    async def get_fresh(self, key: ObjectKey, *, not_older_than: int | None = None) -> Entry | None:
        """Return an object as it is now; a Secret as it was at most five seconds ago.

        Raises:
            FutureRevision: of an own object, that revision does not come.
            StoreUnavailable: the cluster, or the database, does not answer.
        """
        if key.resource == SECRETS:
            return await self._secrets.get(key)
        if mirror := self._mirrors.get(key.resource):
            return await self._read(mirror, key)
        return await self._own.get_fresh(key, not_older_than=not_older_than)

    async def _read(self, mirror: Mirror, key: ObjectKey) -> Entry | None:
        with cluster_errors(f"{mirror.resource.kind} {key.name}"):
            try:
                return mirror.entry(await self._client.get(mirror.resource, key.namespace or None, key.name))
            except NotFound:
                return None

    async def list(self, resource: str, query: ListQuery) -> Page:
        """List objects of our own."""
        return await self._own.list(resource, query)

    def snapshot(self, resource: str, namespace: str | None = None) -> Sequence[Entry]:
        """Return the entries in memory, in order."""
        mirror = self._mirrors.get(resource)
        return mirror.snapshot(namespace) if mirror else self._own.snapshot(resource, namespace)

    def watch(self, resource: str, *, namespace: str | None, after: int | None) -> tuple[Sequence[Entry], Watch]:
        """Watch objects of our own."""
        return self._own.watch(resource, namespace=namespace, after=after)

    # --- writing ------------------------------------------------------------------------------

    async def write(
        self, mutations: Sequence[Mutation], outbox: Sequence[OutboxChange] = (), turn: Turn | None = None
    ) -> Sequence[Entry]:
        """Write own objects in one transaction, or one Repository to the cluster.

        Raises:
            ValueError: a Repository is to be written together with something else.
            StaleWrite: a compare-and-swap lost; nothing was written.
            StoreUnavailable: the database or the cluster refused.
        """
        if all(mutation.key.resource not in self._mirrors for mutation in mutations):
            return await self._own.write(mutations, outbox, turn)
        if len(mutations) != 1 or outbox or mutations[0].key.resource != REPOSITORIES:
            raise ValueError("a Repository of the cluster is written alone, and nothing else of the cluster's is")
        return [await self._repositories.write(mutations[0])]

    def turn(self, key: str) -> TakenTurn:
        """Wait for a turn among the replicas of the own database."""
        return self._own.turn(key)

    def claim(self, key: str) -> Claim:
        """Take something unless another replica of the own database has it."""
        return self._own.claim(key)

    def elect(self, key: str) -> Election:
        """Wait to lead among the replicas of the own database."""
        return self._own.elect(key)

    async def compact(self, before: int) -> None:
        """Compact the own log."""
        await self._own.compact(before)
