"""The informers of one controller, which read what other controllers of the same process read, too, from one watch.

Fifty thousand package revisions are listed, decoded and watched once for a process; each controller has indexes of its own
over them. Source: ``variants.md`` 6.9, 6.10.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from krm.client.cache import Cached, IndexOf
from krm.client.client import KubeClient
from krm.client.informer import Informer
from krm.client.reflector import Reflectors
from krm.client.resources import Resource

Json = dict[str, Any]
T = TypeVar("T", bound=Cached)


class Informers:
    """Informers that are made, waited for and run together.

    ``reflectors`` are those of the process, which runs them; without them the informers have some of their own.
    """

    def __init__(self, client: KubeClient, reflectors: Reflectors | None = None) -> None:
        self._client = client
        self._own = Reflectors() if reflectors is None else None
        self._reflectors = reflectors if self._own is None else self._own
        self._needed: list[Informer[Any]] = []

    def informer(
        self,
        resource: Resource,
        namespace: str | None,
        parse: Callable[[Json], T],
        *,
        field_selector: str = "",
        indexes: Mapping[str, IndexOf[T]] | None = None,
        needed: bool = True,
    ) -> Informer[T]:
        """Return a new informer; what is not ``needed`` is not waited for, and may be forbidden."""
        made: Informer[T] = Informer(
            self._client,
            resource,
            namespace,
            parse,
            field_selector=field_selector,
            indexes=indexes,
            reflectors=self._reflectors,
        )
        if needed:
            self._needed.append(made)
        return made

    @property
    def synced(self) -> bool:
        """Whether all that decisions are made of was read once."""
        return all(one.synced for one in self._needed)

    async def wait_synced(self) -> None:
        """Wait until all that decisions are made of was read; the caller sets the deadline."""
        for one in self._needed:
            await one.wait_synced()

    async def run(self) -> None:
        """Keep the caches true until cancelled, or leave that to the process where it is its own."""
        if self._own is None:
            await asyncio.Event().wait()
        else:
            await self._own.run()
