"""Secrets of the cluster, read by name when a remote is reached. Source: ``porch-api.md`` 6.8; issue 9 part 1."""

from typing import Final

import orjson

from apiserver.auth.answer_cache import AnswerCache
from apiserver.cluster.answers import cluster_errors
from apiserver.engine.remote_access import CA_BUNDLE
from krm.client.client import KubeClient
from krm.client.resources import Resource
from krm.meta.errors import Forbidden, NotFound
from storage.interfaces import Entry, ObjectKey

SECRETS: Final = Resource("", "v1", "secrets", "Secret")
KEPT_SECONDS: Final = 5.0
"""A Secret that is exchanged counts so much later. Without, each push would ask twice before it begins."""
KEPT: Final = 1000


class ClusterSecrets:
    """Asks for one Secret at a time, so that the server needs no right to list them."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._known: AnswerCache[ObjectKey, Entry | None] = AnswerCache(seconds=KEPT_SECONDS, size=KEPT)

    async def get(self, key: ObjectKey) -> Entry | None:
        """Return a Secret, None when there is none, as it was at most five seconds ago.

        Raises:
            StoreUnavailable: the cluster does not let us read it, or does not answer.
        """
        return await self._known.get(key, lambda: self._read(key))

    async def _read(self, key: ObjectKey) -> Entry | None:
        with cluster_errors(f"secret {key.namespace}/{key.name}"):
            try:
                body = await self._client.get(SECRETS, key.namespace, key.name)
            except NotFound:
                return None
            except Forbidden:
                # Nobody named the bundle: where we may read no Secrets at all, there simply is none.
                if key.name == f"{key.namespace}{CA_BUNDLE}":
                    return None
                raise
        return Entry(key, 0, 0, str(body["metadata"].get("uid") or ""), orjson.dumps(body), {}, ())
