"""Porch in a cluster as it is run there: several servers on one PostgreSQL behind one address, and the controllers beside them.

An ExternalName has one address, so a forwarder of the tests' own stands before the servers; kube-apiserver's connections go to
them in turn. Source: issue 9, "Done when".
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from aggregated_process import CONTROLLERS, NAME, NAMESPACE, AggregatedProcess
from control_plane import ControlPlane
from controllers_process import ControllersProcess, controllers_process
from cutting_proxy import cutting_proxy
from patient_client import PatientClient
from porch_process import PorchProcess

from apiserver.auth.certificates import LOCAL_HOSTS, ensure_serving

LEASE_SECONDS = 2.0
"""How long a replica that died keeps its turns."""
AUTHORITY = ("ca.crt", "ca.key")
"""What the replicas have in common: kube-apiserver trusts one authority."""


class AggregatedReplicas(AggregatedProcess):
    """The first of several servers, with the ``others``; starting, stopping, killing and restarting it is done to all of them.

    Everything else (``pid``, ``port``, ``data``, :meth:`direct`) is the first one's. Whoever wants one to go does it to one of
    ``others``.
    """

    controllers: ControllersProcess
    """The controllers, for all namespaces and with a Lease."""

    def __init__(
        self,
        cluster: ControlPlane,
        folder: Path,
        database: str,
        *,
        count: int = 2,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        shared = {"PORCH_DATABASE_URL": database, "PORCH_REPLICA_LEASE": str(LEASE_SECONDS), **(environment or {})}
        first, *more = (folder / f"replica-{number}" for number in range(count))
        super().__init__(cluster, first, arguments=arguments, environment=shared)
        self.database = database
        self.others = [AggregatedProcess(cluster, data, arguments=arguments, environment=shared) for data in more]
        self.address = self.port
        """The port that leads to any of them."""

    @property
    def ports(self) -> list[int]:
        """The port of each."""
        return [member.port for member in self.members]

    def start(self) -> None:
        """Start those that do not run; return when kube-apiserver reaches one."""
        self._share_authority()
        with ThreadPoolExecutor() as pool:
            list(pool.map(AggregatedProcess.run, [one for one in self.members if not one.running]))
        self.register(self.address)

    def stop(self) -> float:
        """Stop all; return how long the slowest took, in seconds."""
        with ThreadPoolExecutor() as pool:
            others = pool.map(AggregatedProcess.stop, self.others)
            return max(super().stop(), *others)

    def kill(self) -> None:
        """End all with SIGKILL."""
        super().kill()
        for other in self.others:
            if other.running:
                other.kill()

    @property
    def members(self) -> list[AggregatedProcess]:
        """Each of them, the first one first; only to be spoken to."""
        return [self, *self.others]

    def renew(self) -> None:
        """Kill and start each of them, one after the other, so that there is always one that serves."""
        for member in self.members:
            PorchProcess.kill(member)
            member.run()

    def client(self, namespace: str = "default", *, timeout: float = 60.0, anonymous: bool = False) -> PatientClient:
        """Return a client of kube-apiserver with the administrator's certificate, or with none."""
        certificate = None if anonymous else self.cluster.client_certificate
        return PatientClient(
            self.cluster.url, ca=self.cluster.ca, certificate=certificate, namespace=namespace, timeout=timeout
        )

    def metrics(self) -> str:
        """Return what all of them count, one after the other."""
        return "".join([super().metrics(), *(other.metrics() for other in self.others)])

    def _share_authority(self) -> None:
        ensure_serving(self.data, (*LOCAL_HOSTS, NAME))
        for other in self.others:
            other.data.mkdir(exist_ok=True)
            for name in AUTHORITY:
                shutil.copy(self.data / name, other.data / name)


@contextmanager
def aggregated_replicas(
    cluster: ControlPlane,
    folder: Path,
    database: str,
    *,
    count: int = 2,
    environment: Mapping[str, str] | None = None,
) -> Iterator[AggregatedReplicas]:
    """Run servers and controllers until the block ends; then the cluster knows of no such API any more."""
    servers = AggregatedReplicas(cluster, folder, database, count=count, environment=environment)
    led = {"PORCH_CONTROLLERS_LEADER_ELECTION": "true", "PORCH_CONTROLLERS_LEASE_NAMESPACE": NAMESPACE}
    with cutting_proxy(*servers.ports) as proxy:
        servers.address = proxy.port
        try:
            servers.start()
            log = folder / "controllers.log"
            with controllers_process(cluster.kubeconfig_of(CONTROLLERS), "", log, led) as servers.controllers:
                yield servers
        finally:
            servers.stop()
            servers.unregister()
