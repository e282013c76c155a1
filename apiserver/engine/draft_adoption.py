"""Drafts whose replica died before it pushed them: any other replica brings them to their remotes.

Who saves a draft pushes it, within a second. What the outbox still holds some seconds later belongs to a replica that is gone,
or waits for a remote: pushing it twice does no harm, because what is pushed follows from the revision as it is now.
Source: ``decisions.md`` 8.
"""

import asyncio
from collections.abc import Callable, Iterable
from random import uniform

import structlog

from storage.interfaces import ObjectStore, StoreUnavailable

LOOK_SECONDS = 5.0
"""Between two looks, ±20 %; what two of them find is adopted."""

log = structlog.get_logger(__name__)


async def adopt_drafts(
    store: ObjectStore, waiting_here: Callable[[], Iterable[str]], push: Callable[[str], None]
) -> None:
    """Have every repository pushed whose parcels nobody cares for, until cancelled; returns at once where nobody else writes.

    ``waiting_here`` names the repositories (``namespace/name``) whose parcels this process is working at or retrying, ``push``
    is called with each of the others.
    """
    before: set[str] = set()
    while store.shared:
        await asyncio.sleep(LOOK_SECONDS * uniform(0.8, 1.2))  # noqa: S311 # spreads replicas' looks
        try:
            owing = set(await store.outbox.owing()) - set(waiting_here())
        except StoreUnavailable as error:
            log.debug("the outbox cannot be read", problem=str(error))
            continue
        for repository in sorted(owing & before):
            log.info("drafts of another replica are pushed", repository=repository)
            push(repository)
        before = owing
