"""The part of the composition roots that is about previews of PackageVariantSets: who reads, who renders, who may."""

from apiserver.machinery.access import Authorize
from apiserver.machinery.rest import Served
from apiserver.resources.objects import NamespaceCheck
from apiserver.resources.variant_set_previews import SetReader, VariantSetPreviews
from krm.variants.sets.rendering_pool import RenderingPool


class Previews:
    """Previews of what ``reader`` reads. No process runs before the first is asked for."""

    def __init__(self, reader: SetReader, authorize: Authorize, namespace_check: NamespaceCheck) -> None:
        self._pools = {identity: RenderingPool(upstream_identity=identity) for identity in (False, True)}
        self.served = Served(VariantSetPreviews(reader, self._pools, authorize, namespace_check))

    async def close(self) -> None:
        """End the processes that render; what is being rendered fails."""
        for pool in self._pools.values():
            await pool.close()
