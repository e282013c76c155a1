"""The part of a composition root that is about previews of PackageVariantSets: who reads, who renders, who may."""

from collections.abc import Callable, Iterable

from apiserver.machinery.access import Authorize
from apiserver.machinery.rest import Served
from apiserver.resources.objects import NamespaceCheck
from apiserver.resources.stored_sets import RevisionsOf, StoredSets
from apiserver.resources.variant_set_previews import VariantSetPreviews
from krm.variants.sets.rendering_pool import RenderingPool
from storage.interfaces import ObjectStore


class Previews:
    """Previews, wired for one store. No process runs before the first is asked for."""

    def __init__(
        self,
        store: ObjectStore,
        revisions: RevisionsOf,
        kinds: Callable[[], Iterable[Served]],
        authorize: Authorize,
        namespace_check: NamespaceCheck,
    ) -> None:
        self._pools = {identity: RenderingPool(upstream_identity=identity) for identity in (False, True)}
        reader = StoredSets(store, revisions, kinds)
        self.served = Served(VariantSetPreviews(reader, self._pools, authorize, namespace_check))

    async def close(self) -> None:
        """End the processes that render; what is being rendered fails."""
        for pool in self._pools.values():
            await pool.close()
