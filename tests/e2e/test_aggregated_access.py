"""Who a server behind an aggregator believes: the front proxy, users' certificates, tokens, and nobody else.

The cluster is a standalone server of ours, which answers reviews and has the ConfigMap that says whom to trust; the front
proxy and its certificates are the test's. What a real kube-apiserver does with such a server is in ``tests/aggregated``.
"""

import contextlib
import dataclasses
import datetime as dt
import http.client
import json
import ssl
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from control_plane_keys import Authority, KeyPair
from eventually import eventually
from kubectl import Kubectl
from porch_process import PorchProcess

REVISIONS = "/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions"
MASTER = [("X-Remote-User", "root"), ("X-Remote-Group", "system:masters")]
CONFIG = "extension-apiserver-authentication"


class Proxied(PorchProcess):
    """A server whose cluster is another one of ours."""

    def __init__(self, data: Path, cluster: PorchProcess) -> None:
        super().__init__(data, arguments=["--aggregated", "--kubeconfig", str(cluster.kubeconfig)])
        self._opened: list[http.client.HTTPSConnection] = []

    def connect(self, keys: KeyPair | None = None) -> http.client.HTTPSConnection:
        """Open a connection, with a client certificate or without; it is closed with the server at the latest."""
        context = ssl.create_default_context(cafile=str(self.data / "ca.crt"))
        if keys is not None:
            context.load_cert_chain(keys.certificate, keys.key)
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context, timeout=60)
        self._opened.append(connection)
        return connection

    def stop(self) -> float:
        """Close the connections, then stop the server."""
        for connection in self._opened:
            connection.close()
        return super().stop()

    def _is_ready(self) -> bool:
        try:
            return ask(self.connect(), "/readyz")[0] == 200
        except OSError:  # the certificate is being made, or nobody listens yet
            return False


class Keys:
    """Certificates of two authorities that the cluster names, and of one that it does not.

    Each has a name of its own, by which OpenSSL finds it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.front, self.clients, self.foreign = (self.authority(name) for name in ("front", "clients", "foreign"))

    def authority(self, name: str) -> Authority:
        (self._folder / name).mkdir(parents=True, exist_ok=True)
        return Authority.new(self._folder / name, name)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory, keys: Keys) -> Iterator[tuple[PorchProcess, Proxied]]:
    """The server that stands for the cluster, and the one that trusts whom it names."""
    folder = tmp_path_factory.mktemp("aggregated")
    cluster = PorchProcess(folder / "cluster")
    with contextlib.ExitStack() as running:
        running.callback(cluster.stop)
        cluster.start()
        trust(cluster, keys.front, keys.clients)
        server = Proxied(folder / "server", cluster)
        running.callback(server.stop)
        server.start()
        yield cluster, server


@pytest.fixture
def server(servers: tuple[PorchProcess, Proxied]) -> Proxied:
    return servers[1]


def trust(cluster: PorchProcess, front: Authority, clients: Authority) -> None:
    """Have the cluster name its authorities."""
    Kubectl(cluster.kubeconfig, "kube-system").apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": CONFIG, "namespace": "kube-system"},
            "data": {
                "client-ca-file": clients.file.read_text(),
                "requestheader-client-ca-file": front.file.read_text(),
                "requestheader-allowed-names": '["front-proxy-client"]',
                "requestheader-username-headers": '["X-Remote-User"]',
                "requestheader-group-headers": '["X-Remote-Group"]',
                "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
            },
        }
    )


def ask(
    connection: http.client.HTTPSConnection, path: str = REVISIONS, headers: Sequence[tuple[str, str]] = ()
) -> tuple[int, Any]:
    """Send one GET on a connection and leave it open; return code and answer."""
    connection.putrequest("GET", path)
    for name, value in headers:
        connection.putheader(name, value)
    try:
        connection.endheaders()
        response = connection.getresponse()
        body = response.read()
    except OSError:
        connection.close()
        raise
    with contextlib.suppress(ValueError):
        return response.status, json.loads(body)
    return response.status, body


def user_in(answer: Any) -> str:
    """Return whom a refusal says it refuses."""
    return str(answer["message"]).split('"')[1]


def test_headers_without_a_certificate_make_nobody_anybody(server: Proxied) -> None:
    code, answer = ask(server.connect(), headers=MASTER)

    assert (code, user_in(answer)) == (403, "system:anonymous")


def test_the_front_proxy_is_believed_and_each_request_for_itself(server: Proxied, keys: Keys) -> None:
    proxy = server.connect(keys.front.client("front-proxy-client"))
    told = [("X-Remote-User", "eve"), ("X-Remote-Group", "devs")]

    assert ask(proxy, headers=MASTER)[0] == 200
    assert user_in(ask(proxy, headers=told)[1]) == "eve"
    assert ask(proxy)[0] == 401, "the next request on the connection names nobody"
    assert ask(proxy, headers=MASTER)[0] == 200
    anonymous = [("X-Remote-User", "system:anonymous"), ("X-Remote-Group", "system:unauthenticated")]
    assert user_in(ask(proxy, headers=anonymous)[1]) == "system:anonymous"
    assert ask(proxy, "/apis", anonymous)[0] == 403, "an anonymous user has not become an authenticated one"


def test_somebody_whom_a_directory_puts_into_hundreds_of_groups_is_known(server: Proxied, keys: Keys) -> None:
    """The front proxy sends a header for each."""
    groups = [("X-Remote-Group", f"cn=team-{number},ou=groups,dc=example") for number in range(600)]
    proxy = server.connect(keys.front.client("front-proxy-client"))

    code, answer = ask(proxy, headers=[("X-Remote-User", "eve"), *groups])

    assert (code, user_in(answer)) == (403, "eve")
    assert ask(proxy, headers=[("X-Remote-User", "eve"), *groups, ("X-Remote-Group", "system:masters")])[0] == 200


def test_the_right_authority_with_another_name_is_refused(server: Proxied, keys: Keys) -> None:
    assert ask(server.connect(keys.front.client("somebody-else")), headers=MASTER)[0] == 401


def test_a_user_named_like_the_front_proxy_is_only_a_user(server: Proxied, keys: Keys) -> None:
    connection = server.connect(keys.clients.client("front-proxy-client"))

    code, answer = ask(connection, headers=MASTER)

    assert (code, user_in(answer)) == (403, "front-proxy-client")


def test_certificates_of_users_name_them_and_their_groups(server: Proxied, keys: Keys) -> None:
    assert user_in(ask(server.connect(keys.clients.client("alice", ("devs",))))[1]) == "alice"
    assert ask(server.connect(keys.clients.client("root", ("system:masters",))))[0] == 200


def test_certificates_may_come_with_those_between_them_and_the_authority(server: Proxied, keys: Keys) -> None:
    department = keys.clients.intermediate("department")
    pair = department.client("bob", ("devs",))
    pair.certificate.write_bytes(pair.certificate.read_bytes() + department.file.read_bytes())

    assert user_in(ask(server.connect(pair))[1]) == "bob"


def test_certificates_of_nobody_we_know_do_not_get_in(server: Proxied, keys: Keys) -> None:
    own = Authority(
        server.data,
        "ca",
        *_own_authority(server.data),
    )
    folder = keys.foreign.folder
    for authority in (keys.foreign, dataclasses.replace(own, folder=folder)):
        with pytest.raises(OSError):  # noqa: PT011 # the handshake ends in one of several ways
            ask(server.connect(authority.client("root", ("system:masters",))), headers=MASTER)


def test_a_certificate_that_has_expired_does_not_get_in(
    server: Proxied, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("control_plane_keys.LIFE", dt.timedelta(minutes=-1))
    expired = keys.front.client("front-proxy-client")

    with pytest.raises(OSError):  # noqa: PT011 # the handshake ends in one of several ways
        ask(server.connect(expired), headers=MASTER)


def test_tokens_are_those_that_the_cluster_knows(servers: tuple[PorchProcess, Proxied]) -> None:
    cluster, server = servers
    token = Kubectl(cluster.kubeconfig).ok("create", "token", "default").strip()

    code, answer = ask(server.connect(), headers=[("Authorization", f"Bearer {token}")])

    assert (code, user_in(answer)) == (403, "system:serviceaccount:default:default")
    assert ask(server.connect(), headers=[("Authorization", "Bearer nonsense")])[0] == 401


def test_what_roles_of_the_cluster_allow_is_allowed(servers: tuple[PorchProcess, Proxied], keys: Keys) -> None:
    cluster, server = servers
    kubectl = Kubectl(cluster.kubeconfig)
    kubectl.ok("create", "rolebinding", "viewers", "--clusterrole=view", "--user=viewer")

    code, _ = ask(server.connect(keys.clients.client("viewer")))

    assert code == 200
    assert ask(server.connect(keys.clients.client("viewer")), REVISIONS.replace("default", "other"))[0] == 403


def test_only_package_kinds_are_served(server: Proxied, keys: Keys) -> None:
    admin = server.connect(keys.clients.client("root", ("system:masters",)))

    groups = [group["name"] for group in ask(admin, "/apis")[1]["groups"]]

    assert groups == ["porch.kpt.dev"]
    assert ask(admin, "/api/v1/namespaces/default/secrets")[0] == 404


def test_authorities_are_exchanged_while_serving(servers: tuple[PorchProcess, Proxied], keys: Keys) -> None:
    cluster, server = servers
    new = keys.authority("new-front")
    old_pair, new_pair = keys.front.client("front-proxy-client"), new.client("front-proxy-client")
    open_before = server.connect(old_pair)
    assert ask(open_before, headers=MASTER)[0] == 200
    trust(cluster, new, keys.clients)
    try:

        def taken_over() -> None:
            try:
                assert ask(server.connect(new_pair), headers=MASTER)[0] == 200
            except OSError as error:
                raise AssertionError(error) from error

        eventually(taken_over, timeout=60)

        assert ask(open_before, headers=MASTER)[0] == 401, "the old authority vouches for nobody any more"
        with pytest.raises(OSError):  # noqa: PT011 # the handshake ends in one of several ways
            ask(server.connect(old_pair), headers=MASTER)
    finally:
        trust(cluster, keys.front, keys.clients)


def _own_authority(data: Path) -> tuple[Any, Any]:
    """Return the certificate and key of the authority that the server made for its own serving certificate."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key((data / "ca.key").read_bytes(), None)
    return x509.load_pem_x509_certificate((data / "ca.crt").read_bytes()), key
