"""A watch through a kube-apiserver of its own that is opened early and looked at late: row 56 of ``kube-api.md`` 7.2.

The other tests stop and start their servers; this one must live ten minutes undisturbed, beside them.
"""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from aggregated_process import AggregatedProcess, install_rights
from control_plane import ControlPlane
from open_watch import OpenWatch

TEN_MINUTES = 600.0
SILENCE = 180.0
"""Seconds after which a watch that says nothing is given up; a bookmark comes every minute."""


@dataclass
class LongWatch:
    """The watch, and the server whose package revisions it is about."""

    server: AggregatedProcess
    watch: OpenWatch
    seconds: float
    """How long it is to live."""

    def wait(self) -> None:
        """Return when it has been open for so long, or has ended."""
        while not self.watch.ended and time.monotonic() < self.watch.opened + self.seconds:
            time.sleep(1)


@contextmanager
def long_watch(folder: Path, seconds: float = TEN_MINUTES) -> Iterator[LongWatch]:
    """Open the watch; it and all that belongs to it end with the block."""
    with ControlPlane(folder / "control-plane") as cluster:
        install_rights(cluster)
        server = AggregatedProcess(cluster, folder / "data")
        try:
            server.start()
            client = server.client(timeout=SILENCE)
            path = client.path("packagerevisions") + "?watch=true&allowWatchBookmarks=true"
            with closing(OpenWatch(client, path)) as watch:
                yield LongWatch(server, watch, seconds)
        finally:
            server.stop()
