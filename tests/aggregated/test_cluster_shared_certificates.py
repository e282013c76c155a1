"""Servers that make their own certificates, keep them in a Secret of the cluster and tell kube-apiserver: ``kube-api.md`` 4.

What is due in months is made due: certificates that are old are put into the Secret, and one more server, which waits for
seconds only, does what the servers would do.
"""

import asyncio
import base64
import datetime as dt
import json
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aggregated_process import API_SERVICE, NAME, NAMESPACE, USER, AggregatedProcess, install_rights, objects
from control_plane import ControlPlane
from cryptography import x509
from eventually import eventually
from kubectl import Kubectl
from porch_process import ServerDied
from steady_requests import SteadyRequests

from apiserver.auth import certificates
from apiserver.auth.certificates import LOCAL_HOSTS, issue_serving, new_authority
from apiserver.auth.shared_certificates import SharedCertificates, read_shared
from apiserver.cluster.answers import ClusterUnusable
from apiserver.cluster.shared_certificates import SharedServing
from krm.client.client import connect

Object = dict[str, Any]
SECRET = "porch-certificates"
NAMES = (*LOCAL_HOSTS, NAME)
TAKEN_OVER_SECONDS = 90.0
"""Servers look at the Secret every 10 s."""
SETTLE_SECONDS = 5.0
pytestmark = pytest.mark.timeout(600)


def granted(name: str, kind: str, rule: Object, **metadata: str) -> list[Object]:
    """Return a role with one rule, bound to the server."""
    version, described = "rbac.authorization.k8s.io/v1", {"name": name, **metadata}
    return [
        {"apiVersion": version, "kind": kind, "metadata": described, "rules": [rule]},
        {
            "apiVersion": version,
            "kind": f"{kind}Binding",
            "metadata": described,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"kind": "User", "name": USER, "apiGroup": "rbac.authorization.k8s.io"}],
        },
    ]


KEEPS = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET], "verbs": ["get", "update"]}
TELLS = {
    "apiGroups": ["apiregistration.k8s.io"],
    "resources": ["apiservices"],
    "resourceNames": [API_SERVICE],
    "verbs": ["get", "patch"],
}


@pytest.fixture(scope="module")
def plane(control_plane_program: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane in which the servers may do this, with an empty Secret."""
    with ControlPlane(tmp_path_factory.mktemp("self-managed")) as control_plane:
        install_rights(control_plane)
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": NAMESPACE}}
        Kubectl(control_plane.kubeconfig, "").apply(
            secret,
            *granted("porch-certificates", "Role", KEEPS, namespace=NAMESPACE),
            *granted("porch-certificates", "ClusterRole", TELLS),
        )
        yield control_plane


class SelfManaged(AggregatedProcess):
    """A server whose certificate is that of the Secret."""

    def __init__(self, cluster: ControlPlane, data: Path, secret: str = SECRET) -> None:
        super().__init__(cluster, data, environment={"PORCH_TLS_SECRET": f"{NAMESPACE}/{secret}"})

    def register(self, port: int) -> None:
        """Tell the cluster where the API is, and not whom to trust: that is for the server to tell."""
        service, api = objects(port, b"")
        del api["spec"]["caBundle"]
        Kubectl(self.kubeconfig, "").apply(service, api)
        self.wait_until_available()

    def _is_ready(self) -> bool:
        authority = kept_in(self.cluster)
        if authority is not None:  # what the tests' clients believe
            (self.data / "ca.crt").write_bytes(authority.bundle)
        return authority is not None and super()._is_ready()

    @property
    def shown(self) -> str:
        """The certificate that a client gets to see."""
        return ssl.get_server_certificate(("127.0.0.1", self.port))


@pytest.fixture(scope="module")
def servers(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SelfManaged]]:
    """Two servers; kube-apiserver knows of the first."""
    folder = tmp_path_factory.mktemp("servers")
    both = [SelfManaged(plane, folder / str(number)) for number in range(2)]
    try:
        both[0].start()
        both[1].run()
        yield both
    finally:
        for server in both:
            server.stop()


def kept_in(plane: ControlPlane) -> SharedCertificates | None:
    done = Kubectl(plane.kubeconfig, NAMESPACE)("get", "secret", SECRET, "-o", "json")
    data = json.loads(done.stdout).get("data") or {} if done.returncode == 0 else {}
    return read_shared({key: base64.b64decode(value) for key, value in data.items()})


def kept(plane: ControlPlane) -> SharedCertificates:
    found = kept_in(plane)
    assert found is not None
    return found


def read(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


@contextmanager
def days_ago(days: int) -> Iterator[None]:
    """Make certificates as they would have been made then."""
    with pytest.MonkeyPatch.context() as past:
        past.setattr(certificates, "_now", lambda: dt.datetime.now(dt.UTC) - dt.timedelta(days=days))
        yield


def put(plane: ControlPlane, content: SharedCertificates) -> None:
    data = {key: base64.b64encode(value).decode() for key, value in content.data.items()}
    described = {"name": SECRET, "namespace": NAMESPACE}
    replaced = {"apiVersion": "v1", "kind": "Secret", "metadata": described, "data": data}
    Kubectl(plane.kubeconfig, NAMESPACE).ok("replace", "-f", "-", stdin=replaced)


def trusted(plane: ControlPlane) -> bytes:
    service = Kubectl(plane.kubeconfig).json("get", "apiservice", API_SERVICE)
    return base64.b64decode(service["spec"]["caBundle"])


def wait_until_shown(servers: list[SelfManaged], leaf: bytes) -> None:
    def check() -> None:
        assert [server.shown.strip() for server in servers] == [leaf.decode().strip()] * len(servers)

    eventually(check, timeout=TAKEN_OVER_SECONDS)


def look(plane: ControlPlane, data: Path, *steps: Callable[[], Awaitable[None] | None], secret: str = SECRET) -> None:
    """Have one more server look after the certificates: once before each step, and once in the end."""

    async def looks() -> None:
        async with connect(plane.kubeconfig_of(USER), agent="test") as client:
            shared = SharedServing(client, NAMESPACE, secret, NAMES, data, settle=SETTLE_SECONDS)
            await shared.start()
            for step in steps:
                if (waiting := step()) is not None:
                    await waiting
                await shared.look()

    asyncio.run(looks())


async def settled() -> None:
    await asyncio.sleep(SETTLE_SECONDS + 0.1)  # what is waited for is time itself


def listed(plane: ControlPlane) -> None:
    assert Kubectl(plane.kubeconfig)("get", "packagerevisions").returncode == 0


def test_servers_make_a_certificate_that_kube_apiserver_trusts(plane: ControlPlane, servers: list[SelfManaged]) -> None:
    found = kept(plane)
    assert trusted(plane) == found.bundle
    wait_until_shown(servers, found.leaf[0])
    for server in servers:
        assert (server.data / "tls.key").stat().st_mode & 0o777 == 0o600
        assert not (server.data / "ca.key").exists(), "the authority's key is in the Secret only"
    listed(plane)


def test_a_certificate_that_nears_its_end_is_renewed(plane: ControlPlane, servers: list[SelfManaged]) -> None:
    found = kept(plane)
    with SteadyRequests(plane) as requests:
        with days_ago(250):
            put(plane, replace(found, leaf=issue_serving(found.authority, NAMES)))

        def renewed() -> bytes:
            leaf = kept(plane).leaf[0]
            assert not certificates.is_due(read(leaf))
            return leaf

        wait_until_shown(servers, eventually(renewed, timeout=TAKEN_OVER_SECONDS))
        listed(plane)
    assert set(requests.codes) == {200}
    assert kept(plane).bundle == found.bundle, "by the same authority"


def test_an_authority_that_nears_its_end_is_exchanged_step_by_step(
    plane: ControlPlane, servers: list[SelfManaged], tmp_path: Path
) -> None:
    with days_ago(2500):
        old = new_authority()
    ageing = SharedCertificates(old, issue_serving(old, NAMES))
    put(plane, ageing)
    wait_until_shown(servers, ageing.leaf[0])
    # To put another authority there is no exchange, so there is a gap until kube-apiserver has discovered the API again.
    eventually(lambda: listed(plane), timeout=TAKEN_OVER_SECONDS)

    with SteadyRequests(plane) as requests:
        look(plane, tmp_path)
        begun = kept(plane)
        assert begun.successor is not None
        assert (begun.authority.certificate, begun.leaf) == (old.certificate, ageing.leaf)
        assert trusted(plane) == begun.bundle
        listed(plane)

        look(plane, tmp_path, settled)
        signed = kept(plane)
        assert signed.authority.certificate == begun.successor.certificate
        assert trusted(plane) == signed.bundle == begun.bundle, "both are trusted while servers show one or the other"
        wait_until_shown(servers, signed.leaf[0])
        listed(plane)

        look(plane, tmp_path, settled)
        assert kept(plane).predecessor == b""
        assert trusted(plane) == kept(plane).bundle
        assert trusted(plane).count(b"BEGIN CERTIFICATE") == 1
        listed(plane)
    assert set(requests.codes) == {200}


@pytest.mark.parametrize("spec", [{"caBundle": None}, {"caBundle": None, "insecureSkipTLSVerify": True}])
def test_what_somebody_takes_out_of_the_apiservice_is_told_again(
    plane: ControlPlane, servers: list[SelfManaged], tmp_path: Path, spec: Object
) -> None:
    Kubectl(plane.kubeconfig).ok(
        "patch", "apiservice", API_SERVICE, "--type=merge", "--patch", json.dumps({"spec": spec})
    )

    look(plane, tmp_path)

    assert trusted(plane) == kept(plane).bundle
    servers[0].wait_until_available()
    eventually(lambda: listed(plane), timeout=TAKEN_OVER_SECONDS)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        ((), "is missing; create it without data"),
        (("--from-literal=password=x",), "delete what it holds"),
        (("--from-literal=ca.crt=x", "--from-literal=ca.key=x"), "delete what it holds"),
    ],
)
def test_a_secret_that_is_not_for_this_is_left_as_it_is(
    plane: ControlPlane, tmp_path: Path, made: tuple[str, ...], says: str
) -> None:
    kubectl = Kubectl(plane.kubeconfig, NAMESPACE)
    if made:
        kubectl.ok("create", "secret", "generic", "other", *made)
    before = kubectl("get", "secret", "other", "-o", "yaml").stdout

    with pytest.raises(ClusterUnusable, match=says):
        look(plane, tmp_path, secret="other")

    assert kubectl("get", "secret", "other", "-o", "yaml").stdout == before
    kubectl.ok("delete", "secret", "other", "--ignore-not-found")


def test_a_server_that_may_not_write_the_secret_says_so(plane: ControlPlane, tmp_path: Path) -> None:
    kubectl = Kubectl(plane.kubeconfig, NAMESPACE)
    kubectl.ok("create", "secret", "generic", "unwritable")
    other = SelfManaged(plane, tmp_path / "data", "unwritable")

    with pytest.raises(ServerDied, match=r"unwritable.*needs get and update on it"):
        other.run()
