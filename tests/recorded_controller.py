"""The PackageVariant controller in a thread of the test, with everything that it sends."""

import asyncio
from typing import Any

from live_controller import TELL_SECONDS, LiveController
from porch_process import PorchProcess
from recording_client import Recording, RecordingClient, RecordingConnection, Write

from controllers.packagevariant.controller import Options, package_variant_controller
from krm.client.client import KubeClient
from krm.client.connection import Connection, open_connection

Json = dict[str, Any]


class RecordedController(LiveController):
    """A live controller that writes down what it sends, in ``recording``."""

    def __init__(self, server: PorchProcess, namespace: str) -> None:
        super().__init__(server.kubeconfig, namespace)
        self.recording = Recording()

    def connection_over(self, inner: Connection) -> RecordingConnection:
        """Return the connection that the controller speaks through."""
        return RecordingConnection(inner, self.recording)

    async def _work(self) -> None:
        async with open_connection(self._kubeconfig, agent="porch-controllers") as connection:
            client: KubeClient = RecordingClient(self.connection_over(connection))
            options = Options(self._metrics, workers=4, namespace=self._namespace, tell_seconds=TELL_SECONDS)
            self.controller = package_variant_controller(client, _Silent(), options)
            await self.controller.run()

    @property
    def is_running(self) -> bool:
        """Whether it works."""
        return self._thread.is_alive()

    def die(self) -> None:
        """Stop as if killed: what is under way is broken off, and nothing more is written."""

        def refuse(number: int, write: Write) -> None:
            raise asyncio.CancelledError

        self.recording.before_each = refuse
        self.stop()


class _Silent:
    def event(self, body: Json, type_: str, reason: str, message: str, /) -> None:
        """Forget it."""
