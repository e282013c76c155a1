"""kube-apiserver and the server: found, lost and found again; who is believed; what users are told. ``kube-api.md`` 7.2 (12, 88)."""

import contextlib
import dataclasses
import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from aggregated_process import NAME, AggregatedProcess
from control_plane import ControlPlane
from control_plane_keys import Authority
from eventually import eventually
from kubectl import Kubectl
from porch_client import PORCH, PorchClient

from apiserver.auth.certificates import LOCAL_HOSTS, ensure_serving

REVISIONS = f"{PORCH}/namespaces/default/packagerevisions"
FORGED = {"X-Remote-User": "root", "X-Remote-Group": "system:masters"}


@pytest.fixture
def admin(porch_server: AggregatedProcess) -> Kubectl:
    return Kubectl(porch_server.kubeconfig)


def pair(cluster: ControlPlane, name: str) -> tuple[Path, Path]:
    """Return certificate and key that the control plane wrote."""
    return cluster.folder / f"{name}.crt", cluster.folder / f"{name}.key"


def test_the_group_is_discovered_with_every_kind(admin: Kubectl) -> None:
    printed = admin.ok("api-resources", "--cached=false", "--api-group=porch.kpt.dev", "-o", "name").split()

    assert set(printed) >= {
        "packagerevisions.porch.kpt.dev",
        "packagerevisionresources.porch.kpt.dev",
        "packages.porch.kpt.dev",
    }

    def explained() -> None:  # kube-apiserver asks for the schemas some time after it found the group
        done = admin("explain", "packagerevision.spec.lifecycle")
        assert done.returncode == 0, done.stderr

    eventually(explained, timeout=90)


def test_the_rest_of_the_cluster_works_while_the_server_is_away(
    admin: Kubectl, porch_server: AggregatedProcess
) -> None:
    porch_server.kill()
    try:
        porch_server.wait_until_available(available=False)

        assert admin.ok("get", "namespaces", "-o", "name")
        assert admin.ok("get", "repositories", "-A") is not None
        with contextlib.closing(porch_server.client()) as client:
            assert client.request("GET", REVISIONS).code == 503
    finally:
        porch_server.restart()  # waits until it is available again, a minute at most


def test_users_keep_their_names_and_rights_through_the_aggregator(admin: Kubectl) -> None:
    refused = admin("get", "packagerevisions", "--as=eve", "--as-group=devs")
    assert refused.returncode == 1
    assert 'User "eve" cannot list resource "packagerevisions" in API group "porch.kpt.dev"' in refused.stderr

    admin.ok("create", "rolebinding", "eve-views", "--clusterrole=view", "--user=eve")
    admin.ok("create", "clusterrole", "sees-revisions", "--verb=list", "--resource=packagerevisions.porch.kpt.dev")
    admin.ok("create", "rolebinding", "eve-sees", "--clusterrole=sees-revisions", "--user=eve")

    def allowed() -> None:  # what was refused is refused for ten seconds
        assert admin("get", "packagerevisions", "--as=eve").returncode == 0

    eventually(allowed, timeout=60)
    # The cluster is asked about what a list is narrowed to, and understands the question.
    narrowed = ("--selector=team in (a,b),!old,owner,tier!=x", "--field-selector=spec.lifecycle=Draft")
    admin.ok("get", "packagerevisions", "--as=eve", *narrowed)


def test_service_accounts_may_what_they_are_bound_to(admin: Kubectl, porch_server: AggregatedProcess) -> None:
    token = admin.ok("create", "token", "default").strip()
    direct = porch_server.direct(None)
    direct.headers["Authorization"] = f"Bearer {token}"

    answer = direct.request("GET", REVISIONS)

    assert answer.code == 403
    assert 'User "system:serviceaccount:default:default"' in answer.message
    direct.close()


@pytest.fixture
def directly(porch_server: AggregatedProcess) -> Iterator[dict[str, PorchClient]]:
    """Clients past kube-apiserver, each with headers that say it speaks for an administrator."""
    cluster = porch_server.cluster
    impostor = cluster.authority.client("front-proxy-client-of-users")
    named_alike = _named_like_the_front_proxy(cluster)
    clients = {
        "nobody": porch_server.direct(None),
        "front proxy": porch_server.direct(pair(cluster, "front-proxy-client")),
        "user": porch_server.direct((impostor.certificate, impostor.key)),
        "user named alike": porch_server.direct(named_alike),
        "other name": porch_server.direct(_pair_of(cluster, "not-the-front-proxy")),
    }
    for client in clients.values():
        client.headers.update(FORGED)
    yield clients
    for client in clients.values():
        client.close()


def test_only_the_front_proxy_speaks_for_others(directly: dict[str, PorchClient]) -> None:
    answers = {who: client.request("GET", REVISIONS) for who, client in directly.items()}

    codes = {who: answer.code for who, answer in answers.items()}
    assert codes == {"nobody": 403, "front proxy": 200, "user": 403, "user named alike": 403, "other name": 401}
    assert 'User "system:anonymous"' in answers["nobody"].message
    assert 'User "front-proxy-client-of-users"' in answers["user"].message
    assert 'User "front-proxy-client"' in answers["user named alike"].message


def test_one_request_on_a_connection_says_nothing_about_the_next(directly: dict[str, PorchClient]) -> None:
    proxy = directly["front proxy"]
    assert proxy.request("GET", REVISIONS).code == 200

    proxy.headers.clear()
    assert proxy.request("GET", REVISIONS).code == 401
    proxy.headers["X-Remote-User"] = "eve-of-the-next-request"
    answer = proxy.request("GET", REVISIONS)

    assert answer.code == 403
    assert 'User "eve-of-the-next-request"' in answer.message


def test_headers_that_a_user_forges_do_not_get_past_kube_apiserver(porch_server: AggregatedProcess) -> None:
    keys = porch_server.cluster.authority.client("mallory")
    client = PorchClient(porch_server.cluster.url, ca=porch_server.cluster.ca, certificate=(keys.certificate, keys.key))
    client.headers.update(FORGED)

    answer = client.request("GET", REVISIONS)

    assert answer.code == 403
    assert 'User "mallory"' in answer.message
    client.close()


def test_certificates_of_strangers_do_not_get_in(porch_server: AggregatedProcess, tmp_path: Path) -> None:
    keys = Authority.new(tmp_path, "strangers").client("front-proxy-client")
    client = porch_server.direct((keys.certificate, keys.key))
    client.headers.update(FORGED)

    with pytest.raises((OSError, ssl.SSLError)):
        client.request("GET", REVISIONS)
    client.close()


def test_the_certificate_of_the_server_is_exchanged_without_a_restart(
    admin: Kubectl, porch_server: AggregatedProcess
) -> None:
    pid, before = porch_server.pid, ssl.get_server_certificate(("127.0.0.1", porch_server.port))
    (porch_server.data / "tls.crt").unlink()
    ensure_serving(porch_server.data, (*LOCAL_HOSTS, NAME))

    def exchanged() -> None:
        assert ssl.get_server_certificate(("127.0.0.1", porch_server.port)) != before

    eventually(exchanged)
    assert porch_server.pid == pid
    porch_server.wait_until_available()
    assert json.loads(admin.ok("get", "packagerevisions", "-o", "json"))["items"] == []


def _pair_of(cluster: ControlPlane, name: str) -> tuple[Path, Path]:
    keys = cluster.front_proxy.client(name)
    return keys.certificate, keys.key


def _named_like_the_front_proxy(cluster: ControlPlane) -> tuple[Path, Path]:
    """Return a certificate of the users' authority for the front proxy's name, in a folder where it overwrites nothing."""
    folder = cluster.folder / "alike"
    folder.mkdir(exist_ok=True)
    keys = dataclasses.replace(cluster.authority, folder=folder).client("front-proxy-client")
    return keys.certificate, keys.key
