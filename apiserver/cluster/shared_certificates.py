"""Serving certificates that the servers of a cluster make themselves: kept in one Secret, told to kube-apiserver, renewed in time.

Each server looks at the Secret and at the APIService again and again, and does what is due. Both are written only if they are as they
were read, so of several servers one does it, and one that was paused in between does nothing; nobody has to be the leader.
Source: ``kube-api.md`` 4; ADR 0039.
"""

import asyncio
import base64
import datetime as dt
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import structlog

from apiserver.auth.certificates import Files, UnusableCertificate, store_leaf
from apiserver.auth.shared_certificates import Data, SharedCertificates, read_shared, renewed
from apiserver.cluster.answers import ClusterUnusable
from apiserver.cluster.secrets import SECRETS
from krm.client.client import KubeClient
from krm.client.errors import NoAnswer
from krm.client.resources import API_SERVICES, PACKAGE_REVISIONS
from krm.meta.errors import Conflict, Forbidden, NotFound, StatusError

Json = dict[str, Any]

API_SERVICE: Final = f"{PACKAGE_REVISIONS.version}.{PACKAGE_REVISIONS.group}"
LOOK_SECONDS: Final = 10.0
"""Between two looks: so long one server shows another certificate than the others after a change."""
SETTLE_SECONDS: Final = 300.0
"""How long a new authority is named before it signs, and an old one after: every kube-apiserver knows of a change in much less."""
START_SECONDS: Final = 60.0
"""For the first look, before which nothing can be served."""
ATTEMPTS: Final = 5

log = structlog.get_logger()


class SharedServing:
    """The serving certificate of the Secret ``namespace``/``name``, for ``names``; a copy lies under ``data``, where TLS finds it."""

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        name: str,
        names: Sequence[str],
        data: Path,
        *,
        settle: float = SETTLE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._namespace, self._name = namespace, name
        self._names = tuple(names)
        self.files = Files.under(data)
        self._settle = settle
        self._clock = clock
        self._seen: tuple[bytes, float] | None = None
        """The bundle that the APIService was found to name, and since when."""
        self._shown: tuple[bytes, bytes] | None = None

    async def start(self) -> None:
        """Have a certificate to serve with: that of the Secret, or a new one.

        Raises:
            ClusterUnusable: the Secret cannot be read or written, or holds something else.
        """
        try:
            async with asyncio.timeout(START_SECONDS):
                await self.look()
        except Forbidden as error:
            raise self._unusable(f"{error.message}; the server's account needs get and update on it") from error
        except NotFound as error:
            raise self._unusable("it is missing; create it without data (kubectl create secret generic)") from error
        except UnusableCertificate as error:
            raise self._unusable(f"{error}; delete what it holds, and it is made anew") from error
        except (StatusError, NoAnswer, TimeoutError) as error:
            raise self._unusable(str(error) or f"no answer within {START_SECONDS:g} s") from error

    async def run(self) -> None:
        """Look again and again, until cancelled; what fails is logged and tried again."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                async with asyncio.timeout(LOOK_SECONDS):
                    await self.look()
            except (StatusError, NoAnswer, TimeoutError, UnusableCertificate, OSError) as error:
                log.warning("certificates not looked after", secret=self._name, error=str(error) or "no answer in time")

    async def look(self) -> None:
        """Do what is due; harmless to repeat, and to end anywhere.

        Raises:
            StatusError: the cluster refuses it.
            NoAnswer: the cluster does not answer.
            UnusableCertificate: the Secret holds something else than certificates of ours.
            OSError: the copy cannot be written.
        """
        service = await self._service()
        kept = await self._kept(service)
        if service is not None:  # first, so that what is shown is trusted
            await self._publish(service, kept.bundle)
        await self._show(kept)

    async def _service(self) -> Json | None:
        """Return the APIService, None where there is none yet, or none that we may read: it is told by somebody else, then."""
        try:
            service = await self._client.get(API_SERVICES, None, API_SERVICE)
        except (NotFound, Forbidden) as error:
            log.warning("kube-apiserver is not told of the certificate's authority", error=error.message)
            self._seen = None
            return None
        told = _told(service)
        if self._seen is None or self._seen[0] != told:
            self._seen = (told, self._clock())
        return service

    async def _kept(self, service: Json | None) -> SharedCertificates:
        """Return what the Secret holds, once what is due was done there."""
        for _ in range(ATTEMPTS):
            secret = await self._client.get(SECRETS, self._namespace, self._name)
            known = read_shared(_decoded(secret))
            published = service is not None and known is not None and self._is_published(known)
            wanted = await asyncio.to_thread(
                renewed, known, self._names, published=published, settle=dt.timedelta(seconds=self._settle)
            )
            if wanted is known:
                return wanted
            try:
                await self._client.update(SECRETS, {**secret, "data": _encoded(wanted.data)})
            except Conflict:  # another server was quicker
                continue
            log.info("certificates renewed", secret=self._name)
            return wanted
        raise UnusableCertificate("it changes all the time")

    def _is_published(self, known: SharedCertificates) -> bool:
        """Tell whether kube-apiserver has been told the bundle for as long as it takes to know of it."""
        seen = self._seen
        return seen is not None and seen[0] == known.bundle and self._clock() - seen[1] >= self._settle

    async def _show(self, kept: SharedCertificates) -> None:
        if kept.leaf != self._shown:
            await asyncio.to_thread(store_leaf, self.files.serving, self.files.serving_key, kept.leaf)
            self._shown = kept.leaf

    async def _publish(self, service: Json, bundle: bytes) -> None:
        if _told(service) == bundle:
            return
        version = service["metadata"]["resourceVersion"]
        told = base64.b64encode(bundle).decode("ascii")
        # The two exclude one another, and an APIService of upstream's may have the other one.
        spec = {"caBundle": told, "insecureSkipTLSVerify": False}
        patch = {"metadata": {"resourceVersion": version}, "spec": spec}
        try:
            await self._client.patch(API_SERVICES, None, API_SERVICE, patch)
        except Conflict:  # it was changed since it was read, by another server perhaps; the next look will tell
            return
        except StatusError as error:  # which keeps nobody from serving
            log.warning("kube-apiserver is not told of the certificate's authority", error=error.message)
            return
        log.info("kube-apiserver told of the certificate's authority", authorities=bundle.count(b"BEGIN CERTIFICATE"))

    def _unusable(self, why: str) -> ClusterUnusable:
        return ClusterUnusable(f"the Secret {self._namespace}/{self._name} cannot be used for certificates: {why}")


def _told(service: Json) -> bytes:
    return _bytes((service.get("spec") or {}).get("caBundle"))


def _decoded(secret: Json) -> Data:
    return {str(key): _bytes(value) for key, value in (secret.get("data") or {}).items()}


def _encoded(data: Data) -> dict[str, str]:
    return {key: base64.b64encode(value).decode("ascii") for key, value in data.items()}


def _bytes(text: Any) -> bytes:
    try:
        return base64.b64decode(str(text or ""), validate=True)
    except ValueError:  # not base64, or not even ASCII
        return b""
