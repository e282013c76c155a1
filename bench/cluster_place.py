"""A cluster to measure in: a real control plane, a PostgreSQL, and servers on it that an APIService leads to.

The servers, their registration and the forwarder in front of two of them are those of the test suite. PostgreSQL keeps its promises here
(``fsync`` is on, which the suite turns off).
"""

import asyncio
import contextlib
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
import measurements as m
from testbed import Address, ControlPlane, PorchClient, RemoteServer, register, remotes

# isort: split
# The tests' folder is on the path only since testbed was read.
from aggregated_process import API_SERVICE, AggregatedProcess, install_rights
from cutting_proxy import cutting_proxy
from embedded_postgres import OwnPostgres, new_postgres

SERVERS = 2
PATIENCE = 120.0
"""Seconds until something that should happen is given up."""
PROBE_SECONDS = 0.02
API_SERVICE_PATH = f"/apis/apiregistration.k8s.io/v1/apiservices/{API_SERVICE}"
PROBE: dict[str, Any] = {
    "apiVersion": "porch.kpt.dev/v1alpha1",
    "kind": "PackageRevision",
    "metadata": {},
    "spec": {"packageName": "probe", "workspaceName": "v1", "lifecycle": "Draft"},
}


class Place:
    """Servers on one database, of which at first one runs; clients go through kube-apiserver unless they say otherwise."""

    def __init__(self, folder: Path, cluster: ControlPlane, database: str, git: RemoteServer) -> None:
        self.cluster = cluster
        self.git = git
        environment = {"PORCH_DATABASE_URL": database, "PORCH_SYNC_INTERVAL": "3600", "PORCH_LOG_LEVEL": "warning"}
        self.servers = [
            AggregatedProcess(cluster, folder / f"server-{number}", environment=environment)
            for number in range(SERVERS)
        ]

    @property
    def server(self) -> AggregatedProcess:
        """The server that always runs."""
        return self.servers[0]

    @property
    def through(self) -> Address:
        """kube-apiserver's address, for the cluster's administrator."""
        return Address(self.cluster.url, *self.cluster.client_certificate)

    @property
    def past(self) -> Address:
        """The first server's own address, for the same user."""
        return Address(self.server.url, *self.cluster.client_certificate)

    @contextmanager
    def client(self) -> Iterator[PorchClient]:
        """Speak to kube-apiserver."""
        with contextlib.closing(self.server.client()) as client:
            yield client

    def register_empty(self, name: str) -> None:
        """Register a new, empty repository and wait until the first server has read it."""
        remotes.empty_remote(self.git.path(name))
        self.register(name)

    def register(self, name: str) -> None:
        """Register a repository and wait until it is Ready."""
        with self.client() as client:
            register(client, name, self.git.url(name))
            m.wait_until_ready(client, name)

    def join(self) -> None:
        """Start the other servers; kube-apiserver trusts one authority for all."""
        for other in self.servers[1:]:
            other.data.mkdir(parents=True, exist_ok=True)
            for name in ("ca.crt", "ca.key"):
                shutil.copy(self.server.data / name, other.data / name)
            other.run()

    @contextmanager
    def led_to(self, servers: list[AggregatedProcess], repository: str) -> Iterator[None]:
        """Have the APIService lead to these servers, by way of a forwarder, once each of them serves a repository."""
        for server in servers:
            with contextlib.closing(server.own_client()) as direct:
                wait_until(partial(_can_begin_packages, direct, repository), f"{repository} is served")
        with cutting_proxy(*(server.port for server in servers)) as forwarder:
            self.server.register(forwarder.port)
            yield
        self.server.register(self.server.port)

    def stop(self) -> None:
        """Stop every server."""
        for server in self.servers:
            server.stop()


@contextmanager
def place(folder: Path, cluster: ControlPlane, git: RemoteServer) -> Iterator[Place]:
    """Start PostgreSQL and the first server, registered; stop them at the end."""
    install_rights(cluster)
    postgres = OwnPostgres(folder / "postgres")
    try:
        asyncio.run(_keep_promises(postgres.url))
        made = Place(folder, cluster, new_postgres(postgres.url), git)
        try:
            made.server.start()
            yield made
        finally:
            made.stop()
    finally:
        postgres.end()


async def _keep_promises(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("ALTER SYSTEM RESET fsync")
        await connection.execute("SELECT pg_reload_conf()")
    finally:
        await connection.close()


def wait_until(happened: Callable[[], bool], what: str, patience: float = PATIENCE) -> float:
    """Return the seconds until something is so.

    Raises:
        RuntimeError: it is not after ``patience`` seconds.
    """
    began = time.monotonic()
    while not happened():
        if time.monotonic() > began + patience:
            raise RuntimeError(f"not after {patience:g} s: {what}")
        time.sleep(PROBE_SECONDS)
    return time.monotonic() - began


def is_available(client: PorchClient) -> bool:
    """Tell whether kube-apiserver holds the APIService for available."""
    told = client.request("GET", API_SERVICE_PATH).object.get("status", {}).get("conditions", [])
    return any(one["type"] == "Available" and one["status"] == "True" for one in told)


def _can_begin_packages(client: PorchClient, repository: str) -> bool:
    """Tell by a dry run whether a server can begin packages in a repository."""
    body = {**PROBE, "spec": {**PROBE["spec"], "repository": repository}}
    return client.request("POST", f"{client.path('packagerevisions')}?dryRun=All", body).code == 201
