"""The objects that targets select, of whatever kind: watched while a set selects some of the kind.

Of each object the metadata is kept. Secrets are not selected. Source: ``variants.md`` 3.2, 3.7, 6.10; ``decisions.md`` 16.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from controllers.packagevariantset.cached_values import Key, Selectable
from controllers.runtime.kind_watches import KindWatches, Limits, WatchedKind
from krm.client.client import KubeClient
from krm.client.informer import Informer
from krm.client.resources import Resource
from krm.variants.sets.targets import NEVER_SELECTED, SECRET, Kind, SelectedObject

Changed = Callable[[str, Kind, Selectable | None, Selectable | None], None]
"""Is told of the namespace that is watched, the kind, and an object before and after."""


class SelectedObjects(KindWatches[WatchedKind]):
    """Lists objects by kind for sets; ``changed`` is told what happens to them."""

    purpose = "sets"
    metadata_only = True

    def __init__(
        self,
        client: KubeClient,
        wake: Callable[[Iterable[Key]], None],
        changed: Changed,
        *,
        limits: Limits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(client, wake, limits=limits, clock=clock)
        self._changed = changed

    async def open(self, key: Key, kinds: Iterable[Kind]) -> None:
        """Watch the kinds that a set selects from, in its namespace; they replace those of before.

        Raises:
            NotListed: a first list did not come in time.
            StatusError, NoAnswer: the server cannot answer now.
        """
        wanted = {(key[0], kind) for kind in kinds}
        self._subscribe(key, wanted)
        for place in sorted(wanted):
            await self._opened(self._kinds[place])

    def listed(self, key: Key) -> dict[Kind, Sequence[SelectedObject] | str]:
        """Return what there is of each kind that a set reads, or why that is not known; a kind that is not served is missing."""
        found: dict[Kind, Sequence[SelectedObject] | str] = {}
        for place in self._read.get(key, ()):
            watched = self._kinds[place]
            if not watched.served:
                continue
            if watched.refusal:
                found[watched.type] = watched.refusal
            elif watched.informer is not None:
                found[watched.type] = [one.metadata for one in watched.informer.values()]
        return found

    # --- what is watched ----------------------------------------------------------------------------

    def _made(self, namespace: str, type_: Kind) -> WatchedKind:
        return WatchedKind(namespace, type_)

    def _never(self, type_: Kind) -> str:
        return NEVER_SELECTED if type_ == SECRET else ""

    def _informer(self, watched: WatchedKind, client: KubeClient, resource: Resource) -> Informer[Selectable]:
        namespace = watched.namespace if resource.namespaced else None
        informer = Informer(client, resource, namespace, partial(Selectable.of, kind=watched.type))
        informer.subscribe(partial(self._changed, watched.namespace, watched.type))
        return informer
