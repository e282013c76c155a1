"""Secrets become credentials, or a sentence that says what is wrong with them."""

import base64
import ipaddress
from pathlib import Path
from typing import Any

import orjson
import pytest

from apiserver.engine.remote_access import MAX_KNOWN_HOSTS, AccessOptions, CredentialsProblem, RemoteAccess
from storage.git.errors import RemoteUnavailable, UnsafeAddress
from storage.git.network import NetworkPolicy
from storage.git.remote import Credentials, SshKey
from storage.interfaces import ObjectKey, StoreUnavailable

URL = "https://git.example/r"
CANARY = "canary-3141592653"


class Secrets:
    """The part of an object store that is asked."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], bytes] = {}
        self.away = False

    def put(self, name: str, type_: str, namespace: str = "ns", /, **data: bytes | str) -> None:
        encoded = {
            key.replace("__", "-").replace("ca_crt", "ca.crt"): base64.b64encode(
                value.encode() if isinstance(value, str) else value
            ).decode()
            for key, value in data.items()
        }
        self.raw(name, {"type": type_, "data": encoded}, namespace)

    def raw(self, name: str, body: dict[str, Any], namespace: str = "ns") -> None:
        self.kept[namespace, name] = orjson.dumps(body)

    async def get_fresh(self, key: ObjectKey, *, not_older_than: int | None = None) -> Any:
        if self.away:
            raise StoreUnavailable("the cluster does not answer")
        body = self.kept.get((key.namespace, key.name))

        class Entry:
            pass

        entry = Entry()
        entry.body = body  # type: ignore[attr-defined] # of an entry, only the body is looked at
        return entry if body is not None else None


@pytest.fixture
def secrets() -> Secrets:
    return Secrets()


def access(secrets: Secrets, **options: Any) -> RemoteAccess:
    return RemoteAccess(secrets, AccessOptions(**options))  # type: ignore[arg-type] # see Secrets


async def test_each_kind_of_secret_becomes_its_kind_of_credentials(secrets: Secrets) -> None:
    secrets.put("basic", "kubernetes.io/basic-auth", username="u", password="p")
    secrets.put("bearer", "Opaque", bearerToken="token\n")
    secrets.put("ssh", "kubernetes.io/ssh-auth", ssh__privatekey="key", known_hosts="hosts")

    found = {
        name: (await access(secrets).remote("ns", URL, name)).credentials for name in ("", "basic", "bearer", "ssh")
    }

    assert found == {
        "": None,
        "basic": Credentials("u", "p"),
        "bearer": Credentials("", "token"),
        "ssh": SshKey(b"key", b"hosts"),
    }


@pytest.mark.parametrize(
    ("type_", "data", "says"),
    [
        ("kubernetes.io/basic-auth", {"username": CANARY}, "needs the keys username and password"),
        ("kubernetes.io/basic-auth", {"username": "u", "password": b"\xff" + CANARY.encode()}, "its password is not text"),
        ("Opaque", {"token": CANARY}, "bearer Token secret.Data key must be set as bearerToken"),
        ("Opaque", {"bearerToken": CANARY + "\r\nX-Injected: 1"}, "not one line of printable characters"),
        ("Opaque", {"bearerToken": " \n"}, "not one line of printable characters"),
        ("kubernetes.io/ssh-auth", {"identity": CANARY}, "needs the key ssh-privatekey"),
        ("kubernetes.io/ssh-auth", {"ssh__privatekey": CANARY * 1000}, "its ssh-privatekey is over 8192 bytes"),
        ("kpt.dev/workload-identity-auth", {}, "type kpt.dev/workload-identity-auth is not supported"),
        ("kubernetes.io/tls", {"tls.key": CANARY}, "no resolver for secret with type kubernetes.io/tls"),
    ],
    ids=["no password", "not text", "no token", "injected header", "empty token", "no key", "huge key", "workload identity", "type"],
)  # fmt: skip
async def test_a_secret_of_no_use_says_what_to_fix_and_not_what_it_holds(
    secrets: Secrets, type_: str, data: dict[str, bytes | str], says: str
) -> None:
    secrets.put("s", type_, **data)

    with pytest.raises(CredentialsProblem) as refused:
        await access(secrets).remote("ns", URL, "s")

    assert str(refused.value).startswith("cannot resolve credentials in a secret ns/s: ")
    assert says in str(refused.value)
    assert CANARY not in repr(refused.value)
    assert refused.value.__cause__ is None


@pytest.mark.parametrize("data", [{"password": "not base64!"}, {"password": 5}, {"password": None}])
async def test_data_that_is_no_data_is_refused(secrets: Secrets, data: dict[str, Any]) -> None:
    secrets.raw("s", {"type": "kubernetes.io/basic-auth", "data": data})

    with pytest.raises(CredentialsProblem, match="not base64"):
        await access(secrets).remote("ns", URL, "s")


async def test_secrets_of_other_namespaces_are_not_looked_at(secrets: Secrets) -> None:
    secrets.put("s", "kubernetes.io/basic-auth", "other", username="u", password=CANARY)

    with pytest.raises(CredentialsProblem, match="failed to obtain credential from secret ns/s: it does not exist"):
        await access(secrets).remote("ns", URL, "s")


async def test_certificates_come_from_the_secret_or_from_the_bundle_of_the_namespace(secrets: Secrets) -> None:
    secrets.put("plain", "kubernetes.io/basic-auth", username="u", password="p")
    secrets.put("own", "kubernetes.io/basic-auth", username="u", password="p", ca_crt="own")
    without = await access(secrets).remote("ns", URL, "plain")
    secrets.put("ns-ca-bundle", "Opaque", ca_crt="bundle")
    remotes = {name: (await access(secrets).remote("ns", URL, name)).ca for name in ("", "plain", "own")}

    assert without.ca is None
    assert remotes == {"": b"bundle", "plain": b"bundle", "own": b"own"}
    assert (await access(secrets).remote("other", URL, "")).ca is None
    secrets.put("ns-ca-bundle", "Opaque", pem="bundle")
    with pytest.raises(CredentialsProblem, match=r"ns/ns-ca-bundle must hold PEM certificates under the key ca\.crt"):
        await access(secrets).remote("ns", URL, "")


async def test_known_hosts_of_the_server_stand_in_for_those_that_the_secret_lacks(
    secrets: Secrets, tmp_path: Path
) -> None:
    file = tmp_path / "known_hosts"
    secrets.put("ssh", "kubernetes.io/ssh-auth", ssh__privatekey="key")
    secrets.put("own", "kubernetes.io/ssh-auth", ssh__privatekey="key", known_hosts="own")
    reached = access(secrets, known_hosts=file)
    url = "git@git.example:r"

    with pytest.raises(CredentialsProblem, match="No such file"):
        await reached.remote("ns", url, "ssh")
    file.write_bytes(b"first")
    first = (await reached.remote("ns", url, "ssh")).credentials
    file.write_bytes(b"second")

    assert first == SshKey(b"key", b"first")
    assert (await reached.remote("ns", url, "ssh")).credentials == SshKey(b"key", b"second")
    assert (await reached.remote("ns", url, "own")).credentials == SshKey(b"key", b"own")
    file.write_bytes(b"#" * (MAX_KNOWN_HOSTS + 1))
    with pytest.raises(CredentialsProblem, match="over 1048576 bytes"):
        await reached.remote("ns", url, "ssh")


async def test_directories_of_the_machine_can_be_forbidden(secrets: Secrets) -> None:
    with pytest.raises(UnsafeAddress, match="not allowed at this server"):
        await access(secrets, local=False).remote("ns", "file:///srv/r.git", "")

    assert (await access(secrets).remote("ns", "file:///srv/r.git", "")).is_local


async def test_the_clones_of_the_server_are_nobodys_remotes(secrets: Secrets, tmp_path: Path) -> None:
    clones = tmp_path / "clones"
    clones.mkdir()
    (tmp_path / "link").symlink_to(clones)
    reached = access(secrets, private=(clones,))

    for path in ("clones/other-1.git", "link/other-1.git", "clon%65s/other-1.git"):
        with pytest.raises(UnsafeAddress, match="keeps for itself"):
            await reached.remote("ns", f"file://{tmp_path}/{path}", "")
    assert (await reached.remote("ns", f"file://{tmp_path}/clones-2/r.git", "")).is_local


async def test_the_policy_of_the_server_goes_with_every_remote(secrets: Secrets) -> None:
    policy = NetworkPolicy((ipaddress.ip_network("10.0.0.0/8"),))

    assert (await access(secrets, network=policy, timeout=7).remote("ns", URL, "")).network is policy


async def test_a_secret_that_cannot_be_read_now_is_a_matter_of_trying_again(secrets: Secrets) -> None:
    secrets.away = True

    with pytest.raises(RemoteUnavailable, match="secret ns/s: cannot be read now: the cluster does not answer"):
        await access(secrets).remote("ns", URL, "s")
