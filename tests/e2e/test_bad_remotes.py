"""Repositories that cannot be used: each says why in its Ready condition, holds nobody up and can be deleted."""

import datetime as dt
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import remotes
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from eventually import eventually
from git_server import GitServer
from kubectl import Kubectl
from manifests import Object, Register, credentials, repository
from porch_client import PorchClient
from remotes import Remote


def ready(kubectl: Kubectl, name: str) -> Object:
    """Return the Ready condition of a repository; fails while there is none."""
    conditions = kubectl.json("get", "repository", name).get("status", {}).get("conditions", [])
    assert conditions, "no condition yet"
    found: Object = conditions[0]
    assert found["type"] == "Ready"
    return found


def becomes_an_error(kubectl: Kubectl, name: str, *words: str) -> None:
    def check() -> None:
        condition = ready(kubectl, name)
        assert (condition["status"], condition["reason"]) == ("False", "Error")
        missing = [word for word in words if word.lower() not in condition["message"].lower()]
        assert not missing, condition["message"]

    eventually(check)
    assert kubectl("delete", "repository", name).returncode == 0


@pytest.fixture
def deaf_port() -> Iterator[int]:
    """A port that takes connections and never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken: list[socket.socket] = []
        threading.Thread(target=_take, args=(server, taken), daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)  # wakes the thread, which close alone does not
    for connection in taken:
        connection.close()


def _take(server: socket.socket, taken: list[socket.socket]) -> None:
    while True:
        try:
            taken.append(server.accept()[0])
        except OSError:
            return


def test_a_remote_that_hangs_holds_nobody_up_and_can_be_deleted(
    kubectl: Kubectl, porch: PorchClient, register: Register, empty_remote: Remote, deaf_port: int
) -> None:
    kubectl.apply(repository("deaf", f"http://127.0.0.1:{deaf_port}/deaf.git", login=""))
    started = time.monotonic()

    register(deployments=empty_remote)
    created = porch.create_revision("deployments", "app")
    listed = porch.revisions("spec.repository=deployments")

    assert created.code == 201
    assert len(listed) == 1
    assert time.monotonic() - started < 30, "much less than the minute after which a remote is given up"
    assert ready(kubectl, "deaf")["reason"] in {"Reconciling", "Error"}
    kubectl.ok("delete", "repository", "deaf")
    assert "NotFound" in kubectl("get", "repository", "deaf").stderr


def test_a_remote_that_refuses_connections_says_so(kubectl: Kubectl) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    kubectl.apply(repository("refusing", f"http://127.0.0.1:{port}/x.git", login=""))

    becomes_an_error(kubectl, "refusing", "refused")


def test_an_unknown_host_says_so(kubectl: Kubectl) -> None:
    kubectl.apply(repository("unknown", "http://nowhere.invalid/x.git", login=""))

    becomes_an_error(kubectl, "unknown", "nowhere.invalid")


def test_a_server_that_is_not_git_says_so(kubectl: Kubectl, porch_server: object, git_http: GitServer) -> None:
    (git_http.root / "page.git").mkdir(exist_ok=True)
    kubectl.apply(repository("page", f"{git_http.url}/page.git", login=""))

    becomes_an_error(kubectl, "page", "page.git")


def test_a_missing_repository_says_so(kubectl: Kubectl, git_http: GitServer) -> None:
    kubectl.apply(repository("missing", f"{git_http.url}/missing.git", login=""))

    becomes_an_error(kubectl, "missing", "missing.git")


def test_a_missing_branch_is_named(kubectl: Kubectl, empty_remote: Remote) -> None:
    kubectl.apply(repository("branchless", empty_remote.url, branch="release", login=""))

    becomes_an_error(kubectl, "branchless", "branch", "release")


@pytest.mark.parametrize("address", ["ext::sh%20-c%20true", "git://127.0.0.1/x.git", "-oProxyCommand=true"])
def test_an_address_that_is_not_http_or_a_file_says_which_are(address: str, kubectl: Kubectl) -> None:
    done = kubectl("apply", "-f", "-", stdin=repository("odd", address, login=""))
    if done.returncode:
        assert "https" in done.stderr
    else:
        becomes_an_error(kubectl, "odd", "https")


def test_an_empty_remote_is_ready_and_takes_the_first_package(
    kubectl: Kubectl, porch: PorchClient, git_http: GitServer, register: Register
) -> None:
    path = remotes.init_bare(git_http.root / f"bare-{kubectl.namespace}.git")
    remote = Remote(path, f"{git_http.url}/{path.name}")
    kubectl.apply(credentials())
    body = repository("deployments", remote.url)
    body["spec"]["git"]["createBranch"] = True

    kubectl.apply(body)
    kubectl.ok("wait", "--for=condition=Ready", "repository/deployments", "--timeout=60s")

    assert porch.create_revision("deployments", "app").code == 201


@pytest.fixture
def self_signed(tmp_path: Path) -> Iterator[int]:
    """The port of a TLS server whose certificate nobody signed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*_certificate(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=_shake_hands, args=(server, context), daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def _shake_hands(server: socket.socket, context: ssl.SSLContext) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        try:
            context.wrap_socket(connection, server_side=True).close()
        except OSError:
            connection.close()


def _certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + dt.timedelta(days=1))
    certificate = builder.sign(key, hashes.SHA256())
    paths = folder / "self.crt", folder / "self.key"
    paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, *private))
    return paths


def test_a_bad_certificate_says_so(kubectl: Kubectl, self_signed: int) -> None:
    kubectl.apply(repository("untrusted", f"https://127.0.0.1:{self_signed}/x.git", login=""))

    becomes_an_error(kubectl, "untrusted", "certificate")


def test_a_repository_recovers_when_its_remote_does(kubectl: Kubectl, git_http: GitServer) -> None:
    path = git_http.root / f"late-{kubectl.namespace}.git"
    kubectl.apply(repository("late", f"{git_http.url}/{path.name}", login=""))
    eventually(lambda: _is_error(kubectl, "late"))

    remotes.blueprints_remote(path)

    kubectl.ok("wait", "--for=condition=Ready", "repository/late", "--timeout=60s")
    assert len(kubectl.ok("get", "packagerevisions", "-o", "name").split()) == 16


def _is_error(kubectl: Kubectl, name: str) -> None:
    assert ready(kubectl, name)["reason"] == "Error"
