"""Certificates and authorities that change while kube-apiserver and the server run: ``kube-api.md`` 3.2, 4 and 7.2 (89).

The control plane is this module's own: other tests would not survive what is done to it. New authorities have the names of the
old ones, as kubeadm's have.
"""

import base64
import dataclasses
import itertools
import json
import shutil
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

import pytest
from aggregated_process import API_SERVICE, NAME, AggregatedProcess, install_rights
from control_plane import ControlPlane
from control_plane_keys import Authority, KeyPair
from eventually import eventually
from kubectl import Kubectl
from porch_client import PORCH, PorchClient
from steady_requests import SteadyRequests

from apiserver.auth.certificates import Files

REVISIONS = f"{PORCH}/namespaces/default/packagerevisions"
MASTER = {"X-Remote-User": "root", "X-Remote-Group": "system:masters"}
CONFIG = ("configmap", "extension-apiserver-authentication", "--namespace=kube-system")
CLIENTS, PROXIES = "client-ca-file", "requestheader-client-ca-file"
CHANGE_SECONDS = 120.0
"""kube-apiserver looks at its files when they change, and once a minute in any case."""
SETTLE_SECONDS = 10.0
"""After a change of caBundle, which kube-apiserver does not say that it has taken over; an operator waits a minute."""
Elsewhere = Callable[[Authority], Authority]
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def plane(control_plane_program: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane that may be ruined, which says when it reads a key pair again."""
    with ControlPlane(tmp_path_factory.mktemp("rotation"), arguments=["--v=2"]) as control_plane:
        install_rights(control_plane)
        yield control_plane


@pytest.fixture(scope="module")
def server(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AggregatedProcess]:
    process = AggregatedProcess(plane, tmp_path_factory.mktemp("server") / "data")
    process.start()
    yield process
    process.stop()


@pytest.fixture
def elsewhere(tmp_path: Path) -> Elsewhere:
    """Have an authority write what it signs where it overwrites nothing."""
    numbers = itertools.count()

    def moved(authority: Authority) -> Authority:
        folder = tmp_path / str(next(numbers))
        folder.mkdir()
        return dataclasses.replace(authority, folder=folder)

    return moved


def named(plane: ControlPlane, key: str) -> str:
    """Return the authorities that the cluster names under a key; "" while it names none."""
    done = Kubectl(plane.kubeconfig)("get", *CONFIG, "-o", "json")
    return str(json.loads(done.stdout)["data"][key]) if done.returncode == 0 else ""


def wait_until_told(plane: ControlPlane, key: str, number: int) -> None:
    def check() -> None:
        assert named(plane, key).count("BEGIN CERTIFICATE") == number

    eventually(check, timeout=CHANGE_SECONDS)


def have_told(plane: ControlPlane, key: str, bundle: str) -> None:
    """Have kube-apiserver name these authorities only: it adds to the ConfigMap and takes nothing away, but makes a lost one anew."""

    def check() -> None:
        now = named(plane, key).split()
        if now and now != bundle.split():  # it may not have seen its file change yet
            Kubectl(plane.kubeconfig).ok("delete", *CONFIG, "--ignore-not-found")
        assert now == bundle.split()

    eventually(check, timeout=CHANGE_SECONDS)


def answer_to(server: AggregatedProcess, keys: KeyPair | None, headers: Mapping[str, str] | None = None) -> int:
    """Return the code that a new connection past kube-apiserver gets; 0 where it does not come about."""
    client = server.direct((keys.certificate, keys.key) if keys else None)
    client.headers.update(headers or {})
    try:
        return client.request("GET", REVISIONS).code
    except OSError:
        return 0
    finally:
        client.close()


def wait_until_answered(
    server: AggregatedProcess, keys: KeyPair, code: int, headers: Mapping[str, str] | None = None
) -> None:
    def check() -> None:
        assert answer_to(server, keys, headers) == code

    eventually(check, timeout=CHANGE_SECONDS)


def listed(plane: ControlPlane) -> None:
    """Have kubectl list package revisions, as somebody whom kube-apiserver speaks for."""
    Kubectl(plane.kubeconfig).ok("get", "packagerevisions", "--as=root", "--as-group=system:masters")


def namesake(plane: ControlPlane, name: str) -> Authority:
    """Make an authority of that name, in a folder where it overwrites nothing."""
    folder = plane.folder / f"new-{name}"
    folder.mkdir()
    return Authority.new(folder, name)


def copied(pair: Path, folder: Path) -> KeyPair:
    """Copy a certificate and its key."""
    folder.mkdir()
    suffixes = (".crt", ".key")
    return KeyPair(*(Path(shutil.copy(pair.with_suffix(one), folder)) for one in suffixes))


def pairs_read(plane: ControlPlane, pair: Path) -> int:
    """Return how often kube-apiserver says that it has read a certificate and its key."""
    log = (plane.folder / "kube-apiserver.log").read_text(errors="replace").splitlines()
    return sum("Loaded a new cert/key pair" in line and f"{pair}.crt" in line for line in log)


def write_bundle(path: Path, *authorities: bytes) -> None:
    """Replace a file in one step."""
    path.with_suffix(".new").write_bytes(b"".join(authorities))
    path.with_suffix(".new").replace(path)


def test_the_front_proxys_authority_and_certificate_are_exchanged(
    plane: ControlPlane, server: AggregatedProcess
) -> None:
    pid, file, proxy = server.pid, plane.folder / "front-proxy-ca.crt", plane.folder / "front-proxy-client"
    old_keys = copied(proxy, plane.folder / "old")
    old, new = file.read_bytes(), namesake(plane, "front-proxy-ca")
    new_keys = new.client("front-proxy-client")
    kept = server.direct((old_keys.certificate, old_keys.key))
    kept.headers.update(MASTER)
    with SteadyRequests(plane) as requests:
        assert kept.request("GET", REVISIONS).code == 200
        assert answer_to(server, new_keys, MASTER) == 0

        write_bundle(file, old, new.file.read_bytes())
        wait_until_told(plane, PROXIES, 2)
        wait_until_answered(server, new_keys, 200, MASTER)
        assert answer_to(server, old_keys, MASTER) == 200
        listed(plane)

        before = pairs_read(plane, proxy)
        shutil.copy(new_keys.key, proxy.with_suffix(".key"))
        shutil.copy(new_keys.certificate, proxy.with_suffix(".crt"))

        def exchanged() -> None:
            assert pairs_read(plane, proxy) > before

        eventually(exchanged, timeout=CHANGE_SECONDS)
        listed(plane)

        write_bundle(file, new.file.read_bytes())
        have_told(plane, PROXIES, new.file.read_text())
        wait_until_answered(server, old_keys, 0, MASTER)
        assert kept.request("GET", REVISIONS).code == 401, "a connection from before is judged anew"
        assert answer_to(server, new_keys, MASTER) == 200
        listed(plane)
    kept.close()
    plane.front_proxy = new
    assert set(requests.codes) == {200}
    assert (server.pid, server.running) == (pid, True)


def test_an_authority_of_users_is_added_and_taken_away(plane: ControlPlane, server: AggregatedProcess) -> None:
    old, new = plane.ca.read_bytes(), namesake(plane, "ca")
    root = new.client("root", ("system:masters",))
    through = PorchClient(plane.url, ca=plane.ca, certificate=(root.certificate, root.key))

    def answered_through_kube_apiserver(code: int) -> None:
        through.close()  # who one is, is decided with the connection there
        assert through.request("GET", REVISIONS).code == code

    with SteadyRequests(plane) as requests:
        assert answer_to(server, root) == 0

        write_bundle(plane.ca, old, new.file.read_bytes())
        wait_until_told(plane, CLIENTS, 2)
        wait_until_answered(server, root, 200)
        eventually(lambda: answered_through_kube_apiserver(200), timeout=CHANGE_SECONDS)

        write_bundle(plane.ca, old)
        have_told(plane, CLIENTS, old.decode())
        wait_until_answered(server, root, 0)
        eventually(lambda: answered_through_kube_apiserver(401), timeout=CHANGE_SECONDS)
        listed(plane)
    through.close()
    assert set(requests.codes) == {200}


def test_the_servers_authority_and_certificate_are_exchanged(plane: ControlPlane, server: AggregatedProcess) -> None:
    files, kubectl = Files.under(server.data), Kubectl(plane.kubeconfig)
    old, new = files.ca.read_bytes(), namesake(plane, "porch-ca")
    keys = new.server("porch", (NAME,))

    def trust(bundle: bytes) -> None:
        told = f'{{"spec":{{"caBundle":"{base64.b64encode(bundle).decode()}"}}}}'
        kubectl.ok("patch", "apiservice", API_SERVICE, "--type=merge", "--patch", told)
        time.sleep(SETTLE_SECONDS)

    def shown() -> str:
        return ssl.get_server_certificate(("127.0.0.1", server.port))

    with SteadyRequests(plane) as requests:
        trust(old + new.file.read_bytes())
        listed(plane)

        shutil.copy(keys.key, files.serving_key)
        shutil.copy(keys.certificate, files.serving)

        def exchanged() -> None:
            assert shown() == keys.certificate.read_text()

        eventually(exchanged, timeout=CHANGE_SECONDS)
        listed(plane)

        trust(new.file.read_bytes())
        server.wait_until_available()
        listed(plane)
    files.ca.write_bytes(new.file.read_bytes())  # what this module's clients believe from here on
    assert set(requests.codes) == {200}


def test_nobody_gets_in_with_a_certificate_that_is_wrong_in_any_way(
    plane: ControlPlane, server: AggregatedProcess, elsewhere: Elsewhere
) -> None:
    hour, proxies, users = timedelta(hours=1), plane.front_proxy, plane.authority
    name, root = "front-proxy-client", ("root", ("system:masters",))
    wrong = {
        "expired": (elsewhere(proxies).client(name, valid=(-2 * hour, -hour)), 0),
        "not yet valid": (elsewhere(proxies).client(name, valid=(hour, 2 * hour)), 0),
        "of a user, expired": (elsewhere(users).client(*root, valid=(-2 * hour, -hour)), 0),
        "of another authority": (namesake(plane, "strangers").client(name), 0),
        "of a server": (elsewhere(proxies).server(name), 0),
        "of another name": (elsewhere(proxies).client("porch-server"), 401),
        "of a user of that name": (elsewhere(users).client(name), 403),
        "none": (None, 403),
    }

    for what, (keys, code) in wrong.items():
        assert (what, answer_to(server, keys, MASTER)) == (what, code)
    assert answer_to(server, elsewhere(proxies).client(name), MASTER) == 200


def test_a_certificate_that_expires_counts_no_more_on_a_connection_that_is_open(
    plane: ControlPlane, server: AggregatedProcess, elsewhere: Elsewhere
) -> None:
    soon = (timedelta(minutes=-5), timedelta(seconds=30))
    proxy = elsewhere(plane.front_proxy).client("front-proxy-client", valid=soon)
    user = elsewhere(plane.authority).client("root", ("system:masters",), valid=soon)
    clients = [server.direct((keys.certificate, keys.key)) for keys in (proxy, user)]
    clients[0].headers.update(MASTER)
    assert [client.request("GET", REVISIONS).code for client in clients] == [200, 200]
    addresses = [client.local_address for client in clients]

    def refused() -> None:
        assert [client.request("GET", REVISIONS).code for client in clients] == [401, 401]

    eventually(refused, timeout=CHANGE_SECONDS)
    assert [client.local_address for client in clients] == addresses, "they are the same connections"
    for client in clients:
        client.close()


def test_every_request_of_a_connection_is_somebodys_of_its_own(
    plane: ControlPlane, server: AggregatedProcess, elsewhere: Elsewhere
) -> None:
    token = Kubectl(plane.kubeconfig).ok("create", "token", "default").strip()
    account = "system:serviceaccount:default:default"
    senders = {
        "": "",
        "X-Remote-User: eve\r\n": "eve",
        "X-Remote-User: adam\r\nX-Remote-Group: devs\r\n": "adam",
        f"Authorization: Bearer {token}\r\n": account,
        "Authorization: Bearer nonsense\r\n": "",
        "X-Remote-Group: system:masters\r\n": "",
    }
    # Each after each, all sent at once: whatever one leaves behind, some other one would find.
    order = [headers for pair in itertools.permutations(senders, 2) for headers in pair]

    proxy = elsewhere(plane.front_proxy).client("front-proxy-client")
    assert users_of(server, proxy, order) == [senders[headers] for headers in order]

    carol = elsewhere(plane.authority).client("carol")
    assert users_of(server, carol, order) == ["carol"] * len(order)

    alone = {f"Authorization: Bearer {token}\r\n": account, "Authorization: Bearer nonsense\r\n": ""}
    assert users_of(server, None, order) == [alone.get(headers, "system:anonymous") for headers in order]


def users_of(server: AggregatedProcess, keys: KeyPair | None, requests: Sequence[str]) -> list[str]:
    """Send requests on one connection without waiting for answers; return whom each refusal names, "" for a 401."""
    context = ssl.create_default_context(cafile=str(server.data / "ca.crt"))
    if keys is not None:
        context.load_cert_chain(keys.certificate, keys.key)
    sent = "".join(f"GET {REVISIONS} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n" for headers in requests)
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=60) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        connection.sendall(sent.encode())
        answers = connection.makefile("rb")
        return [_user_in(answers) for _ in requests]


def _user_in(answers: BinaryIO) -> str:
    """Read one answer; return whom it refuses."""
    status = int(answers.readline().split()[1])
    length = 0
    while (line := answers.readline().strip()) != b"":
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    message = str(json.loads(answers.read(length))["message"])
    assert status in (401, 403), message
    return message.split('"')[1] if status == 403 else ""
