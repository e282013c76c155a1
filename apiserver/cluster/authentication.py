"""Whom the cluster trusts, followed: the ConfigMap in which kube-apiserver says so. Source: ``kube-api.md`` 3.2."""

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import structlog

from apiserver.auth.cluster_trust import ClusterTrust, UnusableTrust, read_trust
from apiserver.cluster.answers import ClusterUnusable
from krm.client.client import KubeClient
from krm.client.informer import Informer
from krm.client.resources import Resource

Json = dict[str, Any]
CONFIG_MAPS: Final = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACE: Final = "kube-system"
NAME: Final = "extension-apiserver-authentication"
START_SECONDS: Final = 30.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Told:
    namespace: str
    name: str
    resource_version: str
    trust: ClusterTrust


class FollowedTrust:
    """The trust of the moment. Before ``start`` nobody is trusted; when the ConfigMap goes, what it said last holds."""

    def __init__(self, client: KubeClient) -> None:
        self.current = ClusterTrust()
        self._informer: Informer[_Told] = Informer(
            client, CONFIG_MAPS, NAMESPACE, _read, field_selector=f"metadata.name={NAME}"
        )
        self._informer.subscribe(self._changed)
        self._following: asyncio.Task[None] | None = None

    @property
    def following(self) -> bool:
        """Whether changes are still heard of."""
        return self._following is not None and not self._following.done()

    async def start(self) -> None:
        """Read the ConfigMap and begin to follow it.

        Raises:
            ClusterUnusable: it is not there, may not be read, or cannot be understood.
        """
        self._following = asyncio.create_task(self._informer.run())
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._informer.wait_synced()
        except TimeoutError:
            await self.stop()
            raise ClusterUnusable(
                f"the ConfigMap {NAMESPACE}/{NAME} cannot be read: {self._informer.error or 'no answer'}; bind the Role "
                f"extension-apiserver-authentication-reader of {NAMESPACE} to the server's service account"
            ) from None
        if not len(self._informer):
            await self.stop()
            raise ClusterUnusable(
                f"the ConfigMap {NAMESPACE}/{NAME} is missing or cannot be understood (the log says which); "
                "kube-apiserver writes it when it is given --requestheader-client-ca-file and --client-ca-file"
            )

    async def stop(self) -> None:
        """Follow no more; may be called twice."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)

    def _changed(self, _old: _Told | None, new: _Told | None) -> None:
        if new is None:
            log.warning("the cluster does not say any more whom it trusts; what it said last stays in force")
            return
        self.current = new.trust
        log.info("trust of the cluster taken over", front_proxy=new.trust.proxy is not None)


def _read(body: Json) -> _Told:
    metadata = body["metadata"]
    try:
        trust = read_trust(body.get("data") or {})
    except UnusableTrust as error:
        raise ValueError(str(error)) from error
    return _Told(metadata["namespace"], metadata["name"], metadata["resourceVersion"], trust)
