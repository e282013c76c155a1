"""Fixtures of the end-to-end tests: Git remotes over HTTP, a server process, and kubectl.

A module of tests shares one Git server and one Porch; each test has a namespace of its own, so tests do not see each
other's packages.
"""

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import remotes
from aggregated_replicas import aggregated_replicas
from cluster_release import install_release
from control_plane import PROGRAM, ControlPlane
from git_server import Faults, GitServer, git_server
from hypothesis import HealthCheck, settings
from kubectl import Kubectl
from long_watch import TEN_MINUTES, LongWatch
from long_watch import long_watch as opened_long_watch
from manifests import Register, namespace_object, register_remotes
from porch_client import PorchClient
from porch_process import PorchProcess
from remotes import PUSHER, Remote
from upstream_client import UpstreamClient

# The same examples in every run: what fails in one fails in all. `make fuzz` looks for others.
# No example has a deadline, and making them may take its time: how fast the machine is just now is not what they are about.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", UNHURRIED, derandomize=True)
settings.register_profile("search", UNHURRIED, derandomize=False)
settings.load_profile("same")

SYNC_SECONDS = "2"
"""How often the server under test looks at its remotes, so that tests of foreign pushes stay short."""

IN_CLUSTER = "aggregated"
"""Folder of the tests whose server is always one of a cluster."""

CLUSTER_SECONDS = 600.0
"""A test of a server in a cluster may take so long, since the first one starts a control plane and a module's first the servers."""

WIDGETS = Path(__file__).parent / "clients" / "widgets.yaml"
"""A custom resource for other people's clients."""

_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let the same tests run against a server without a cluster, or one behind a real kube-apiserver."""
    parser.addoption("--cluster", action="store_true", help="put the server under test behind a real kube-apiserver")
    parser.addoption(
        "--watch-seconds", type=float, default=TEN_MINUTES, help="how long one watch is kept open beside those tests"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Name the marks of tests that make sense in one mode only; each says why."""
    for mode, other in (("standalone", "a server of a cluster"), ("clustered", "a server without a cluster")):
        config.addinivalue_line("markers", f"{mode}(reason): not about {other}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is about the other mode. What waits long comes last: it has been waiting from the beginning."""
    other = "standalone" if config.getoption("--cluster") else "clustered"
    left_out = [item for item in items if any(mark.args[0] for mark in item.iter_markers(other))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    items.sort(key=_waits_long)
    for item in items:
        if _is_clustered(item) and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(CLUSTER_SECONDS))


def _is_clustered(item: pytest.Item) -> bool:
    """Tell whether the server under test is one of a cluster."""
    return bool(item.config.getoption("--cluster")) or IN_CLUSTER in item.path.parts


def _waits_long(item: pytest.Item) -> bool:
    return "long_watch" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def control_plane_program() -> None:
    """Skip what needs a control plane where none has been built."""
    if not PROGRAM.exists():
        pytest.skip("there is no control plane here: make controlplane builds it, with Go")


@pytest.fixture(scope="session")
def long_watch(
    control_plane_program: None, tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[LongWatch]:
    """A watch that was opened when the run began."""
    with opened_long_watch(tmp_path_factory.mktemp("long-watch"), pytestconfig.getoption("--watch-seconds")) as watch:
        yield watch


@pytest.fixture(scope="session", autouse=True)
def _begun_early(request: pytest.FixtureRequest) -> None:
    """Begin at once what the last tests of the run wait for."""
    if any(map(_waits_long, request.session.items)):
        request.getfixturevalue("long_watch")


@pytest.fixture(scope="session")
def cluster(control_plane_program: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A real control plane in which the chart is installed."""
    with ControlPlane(tmp_path_factory.mktemp("cluster")) as control_plane:
        install_release(control_plane, tmp_path_factory.mktemp("helm"))
        yield control_plane


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a PostgreSQL that all tests of a run share; it is started when the first of them asks."""
    from embedded_postgres import OwnPostgres  # not for tests that need none: it takes half a second to import

    server = OwnPostgres(tmp_path_factory.mktemp("pg"))
    yield server.url
    # A regular shutdown would first write out databases that nobody needs any more.
    server.end()


@pytest.fixture(scope="module")
def git_http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    """A Git server over HTTP: reading is open, pushing needs the credentials of ``PUSHER``."""
    with git_server(tmp_path_factory.mktemp("remotes"), ":".join(PUSHER)) as server:
        yield server


@pytest.fixture(scope="module")
def test_blueprints_remote(git_http: GitServer) -> Remote:
    """Upstream's test-blueprints: six packages, ten tagged revisions."""
    return remote_at(git_http, "test-blueprints", remotes.blueprints_remote)


@pytest.fixture(scope="module")
def nephio_catalog_remote(git_http: GitServer) -> Remote:
    """Nephio's catalog: 65 packages, each tagged as its first revision."""
    return remote_at(git_http, "nephio-catalog", remotes.catalog_remote)


@pytest.fixture
def empty_remote(git_http: GitServer) -> Remote:
    """A remote of the test's own with one commit on main."""
    return remote_at(git_http, f"empty-{next(_numbers)}", remotes.empty_remote)


def remote_at(server: GitServer, name: str, make: Callable[[Path], Path]) -> Remote:
    """Make a repository below the Git server's root."""
    return Remote(make(server.root / f"{name}.git"), f"{server.url}/{name}.git")


@pytest.fixture
def faults(git_http: GitServer) -> Iterator[Faults]:
    """What the Git server does wrong during the test."""
    yield git_http.faults
    git_http.faults = Faults()


@pytest.fixture(scope="module")
def porch_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PorchProcess]:
    """A running server; whatever a test does to it, it is stopped in the end. In a cluster it is two of them, and the controllers."""
    folder, environment = tmp_path_factory.mktemp("porch"), {"PORCH_SYNC_INTERVAL": SYNC_SECONDS}
    if _is_clustered(request.node):
        from embedded_postgres import new_postgres  # as above

        database = new_postgres(request.getfixturevalue("postgres_server"))
        with aggregated_replicas(
            request.getfixturevalue("cluster"), folder, database, environment=environment
        ) as servers:
            yield servers
        return
    server = PorchProcess(folder / "data", environment=environment)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def namespace(porch_server: PorchProcess) -> Iterator[str]:
    """A namespace made for the test and deleted after it."""
    name = f"test-{next(_numbers)}"
    client = porch_server.client(name)
    client.request("POST", "/api/v1/namespaces", namespace_object(name))
    client.close()
    yield name
    client = porch_server.client(name)  # the test may have restarted the server
    client.request("DELETE", f"/api/v1/namespaces/{name}")
    client.close()


@pytest.fixture
def kubectl(porch_server: PorchProcess, namespace: str, tmp_path: Path) -> Kubectl:
    """kubectl as the administrator, in the test's namespace."""
    return Kubectl(porch_server.kubeconfig, namespace, str(tmp_path / "kubectl-cache"))


@pytest.fixture
def server_kubectl(porch_server: PorchProcess, namespace: str, tmp_path: Path) -> Kubectl:
    """kubectl as the administrator at the server itself, whatever stands before it."""
    return Kubectl(porch_server.own_kubeconfig, namespace, str(tmp_path / "own-kubectl-cache"))


@pytest.fixture
def porch(porch_server: PorchProcess, namespace: str) -> Iterator[PorchClient]:
    """A plain HTTPS client in the test's namespace."""
    client = porch_server.client(namespace)
    yield client
    client.close()


@pytest.fixture
def register(porch: PorchClient) -> Register:
    """Register remotes as repositories of the test's namespace and wait until they are Ready.

    ``register(blueprints=remote, deployments=other, deployment=("deployments",))``.
    """

    def apply(*, deployment: tuple[str, ...] = (), **named: Remote) -> None:
        register_remotes(porch, named, deployment)

    return apply


@pytest.fixture
def suite(porch_server: PorchProcess, namespace: str) -> Iterator[UpstreamClient]:
    """The client of upstream's suite of scenarios, in the test's namespace."""
    client = UpstreamClient(porch_server, namespace)
    yield client
    client.close()


@pytest.fixture
def porch_test(empty_remote: Remote) -> Remote:
    """The repository porch-test of upstream's suite, made anew for each scenario."""
    return empty_remote


@pytest.fixture(scope="module")
def client_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A server for other people's clients: its administrator's kubeconfig.

    The environment variable ``CLIENTS_KUBECONFIG`` may name another server's: run against a real kube-apiserver, the
    tests show that they ask for nothing that Kubernetes does not do.
    """
    if named := os.environ.get("CLIENTS_KUBECONFIG"):
        yield Path(named)
        return
    server = PorchProcess(tmp_path_factory.mktemp("clients") / "data")
    server.start()
    yield server.kubeconfig
    server.stop()


@pytest.fixture(scope="module")
def widgets(client_server: Path) -> None:
    """The custom resource Widget is served."""
    kubectl = Kubectl(client_server)
    kubectl.ok("apply", "-f", str(WIDGETS))
    kubectl.ok("wait", "--for=condition=Established", "--timeout=60s", "crd/widgets.clients.porch.test")


@pytest.fixture
def client_kubectl(client_server: Path) -> Iterator[Kubectl]:
    """kubectl as the administrator, in a namespace of the test's own."""
    kubectl = Kubectl(client_server, f"clients-{os.getpid()}-{next(_numbers)}")
    kubectl.create(namespace_object(kubectl.namespace))
    yield kubectl
    kubectl.ok("delete", "namespace", kubectl.namespace, "--wait=false")
