"""What upstream's server answers to whoever takes its place: an old installation, over HTTP, or as an APIService of a real cluster."""

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from control_plane_keys import Authority
from old_installation import OldInstallation

GROUP_VERSION: Final = "porch.kpt.dev/v1alpha1"
DISCOVERY: Final[dict[str, Any]] = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": GROUP_VERSION,
    "resources": [
        {
            "name": "packagerevisions",
            "singularName": "packagerevision",
            "namespaced": True,
            "kind": "PackageRevision",
            "verbs": ["get", "list"],
        }
    ],
}
START_SECONDS: Final = 30.0
CLOSE_SECONDS: Final = 1.0
"""TLS connections take a moment to close."""


class Upstream:
    """Answers as upstream does: its lists have no resourceVersion, come whole, and can be narrowed to a Repository."""

    def __init__(self, old: OldInstallation) -> None:
        self._old = old
        self.asked: list[str] = []
        self.meanwhile: Callable[[], None] | None = None
        """Called once, after the package revisions of edge were shown for the first time."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(str(request.rel_url))
        *_, plural = request.path.split("/")
        if plural == "repositories":
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": self._old.repositories})
        if request.path == f"/apis/{GROUP_VERSION}":
            return web.json_response(DISCOVERY)
        if plural == "packagerevisions":
            wanted = request.query.get("fieldSelector", "").removeprefix("spec.repository=")
            items = [item for item in self._old.revisions if not wanted or item["spec"]["repository"] == wanted]
            listed = {"apiVersion": GROUP_VERSION, "kind": "PackageRevisionList", "metadata": {}, "items": items}
            shown = web.json_response(listed)
            if self.meanwhile is not None and wanted == "edge":
                self.meanwhile()
                self.meanwhile = None
            return shown
        if plural in ("configmaps", "secrets"):
            return web.json_response({"metadata": {}, "items": []})
        if request.path == "/api/v1":
            kinds = {"configmaps": "ConfigMap", "secrets": "Secret"}
            resources = [{"name": name, "kind": kind, "namespaced": True} for name, kind in kinds.items()]
            return web.json_response({"groupVersion": "v1", "resources": resources})
        found = [
            one
            for one in [*self._old.others, *self._old.revisions]
            if request.path.endswith(f"{one['kind'].lower()}s/{one['metadata']['name']}")
        ]
        if found:
            return web.json_response(found[0])
        status = {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "not here"}
        return web.json_response(status, status=404)


class _Served:
    """Serves answers over TLS in a thread of its own; ``port`` is known once it is started."""

    def __init__(self, upstream: Upstream, keys: ssl.SSLContext) -> None:
        self._upstream, self._keys = upstream, keys
        self._loop = asyncio.new_event_loop()
        self._ready, self._stop = threading.Event(), asyncio.Event()
        self.port = 0
        self._thread = threading.Thread(target=lambda: self._loop.run_until_complete(self._serve()))

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(START_SECONDS)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(START_SECONDS)
        self._loop.close()

    async def _serve(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._upstream.answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        assert runner.server is not None
        # kube-apiserver keeps its connections and does not answer their end.
        server = await self._loop.create_server(
            runner.server, "127.0.0.1", 0, ssl=self._keys, ssl_shutdown_timeout=CLOSE_SECONDS / 2
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()
        await runner.cleanup()
        await asyncio.sleep(CLOSE_SECONDS)


@contextmanager
def serving_tls(upstream: Upstream, name: str, folder: Path) -> Iterator[tuple[int, bytes]]:
    """Serve until the block ends, as the host ``name``; yield the port, and the authority to be trusted."""
    authority = Authority.new(folder, "old-authority")
    pair = authority.server("old-server", [name, "localhost"])
    keys = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    keys.load_cert_chain(pair.certificate, pair.key)
    served = _Served(upstream, keys)
    served.start()
    try:
        yield served.port, authority.file.read_bytes()
    finally:
        served.stop()
