"""The objects of the cluster that packages take configuration from, watched while a variant has a point for them.

Of a kind that is watched, the objects that some variant selects are kept with what is copied. Secrets are never read. Source:
``variants.md`` 2.9.3, 2.14, 6.10; ``decisions.md`` 16; seed 000, "Configuration injection".
"""

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, Protocol

from controllers.packagevariant.injected_kind import Injectable, InjectedKind
from controllers.runtime.kind_watches import Key, KindWatches, Limits
from controllers.runtime.served_kinds import ObjectType
from krm.client.client import KubeClient
from krm.client.informer import Informer
from krm.client.resources import PACKAGE_REVISIONS, Resource
from krm.meta.errors import NotFound
from krm.variants.mutation import Listing

SECRET: Final = ("v1", "Secret")
PACKAGES: Final = PACKAGE_REVISIONS.group
"""Objects of this group are packages: to list them all with their files would cost more than any injection is worth."""


class Askers(Protocol):
    """The variants by the names of the objects that they select."""

    def names(self, key: Key) -> Iterable[str]:
        """Return the names that a variant's selectors ask for."""
        ...

    def asking(self, namespace: str, name: str) -> Iterable[Key]:
        """Return the variants that ask for a name."""
        ...


class Injectables(KindWatches[InjectedKind]):
    """Reads objects by kind for variants, and wakes a variant when one of those that it selects changes."""

    purpose = "injection"
    only_namespaced = "only objects in the namespace of the variant are injected"

    def __init__(
        self,
        client: KubeClient,
        askers: Askers,
        wake: Callable[[Iterable[Key]], None],
        *,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(client, wake, limits=limits, clock=clock)
        self._askers = askers

    async def listings(self, key: Key, namespace: str, types: Iterable[ObjectType]) -> Mapping[ObjectType, Listing]:
        """Return what there is of each type, and wake the variant from now on when that changes for it.

        ``types`` replaces what the variant read before. Where there are objects but none that the variant selects, one
        without contents stands for all of them.

        Raises:
            NotListed: The first list did not come in time.
            StatusError, NoAnswer: The server cannot answer now.

        """
        wanted = set(types)
        self._subscribe(key, {(namespace, type_) for type_ in wanted})
        return {type_: await self._listing(key, self._kinds[namespace, type_]) for type_ in sorted(wanted)}

    def reading(self, key: Key) -> tuple[object, ...]:
        """Return what a variant was told of, as a value that differs when it would be told something else."""
        names = tuple(self._askers.names(key))
        return tuple(self._kinds[one].reading(names) for one in sorted(self._read.get(key, ())))

    # --- one kind -----------------------------------------------------------------------------------

    async def _listing(self, key: Key, kind: InjectedKind) -> Listing:
        await self._opened(kind)
        if key in kind.readers:
            kind.told.add(key)
        names = tuple(self._askers.names(key))
        await self._complete(kind, names)
        return kind.listing(names)

    async def _complete(self, kind: InjectedKind, names: Iterable[str]) -> None:
        """Read the objects that nobody asked for when they were listed."""
        for name in names:
            known = kind.known(name)
            if known is None or known.text or kind.resource is None:
                continue
            try:
                body = await self._client.get(kind.resource, kind.namespace, name)
            except NotFound:  # its event is on the way
                continue
            kind.fetched[name] = Injectable.of(body, kind.type, asked=True)

    def _changed(self, kind: InjectedKind, old: Injectable | None, new: Injectable | None) -> None:
        one = new or old
        if not kind.changed(old, new) or one is None:
            return
        woken = kind.told.intersection(self._askers.asking(one.namespace, one.name))
        if kind.first_or_last(old, new):
            woken = set(kind.told)  # whose conditions say that there is nothing of the kind, or no longer do
        if woken:
            self._wake(woken)

    def _kept(self, namespace: str, type_: ObjectType, body: dict[str, Any]) -> Injectable:
        name = body["metadata"]["name"]
        return Injectable.of(body, type_, asked=any(True for _ in self._askers.asking(namespace, name)))

    # --- what is watched ----------------------------------------------------------------------------

    def _made(self, namespace: str, type_: ObjectType) -> InjectedKind:
        return InjectedKind(namespace, type_)

    def _never(self, type_: ObjectType) -> str:
        if type_ == SECRET:
            return "objects of kind Secret are never injected"
        if type_[0].partition("/")[0] == PACKAGES:
            return f"objects of {PACKAGES} are never injected"
        return ""

    def _informer(self, watched: InjectedKind, client: KubeClient, resource: Resource) -> Informer[Injectable]:
        parse = partial(self._kept, watched.namespace, watched.type)
        informer = Informer(client, resource, watched.namespace, parse)
        informer.subscribe(partial(self._changed, watched))
        return informer

    def _concerned(self, watched: InjectedKind) -> set[Key]:
        return set(watched.told)
