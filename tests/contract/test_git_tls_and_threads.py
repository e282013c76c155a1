import datetime as dt
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from control_plane_keys import Authority
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from git_server import GitServer, create_repository, git_server

from krm.package.contents import File
from storage.git.clone import Clone, RefUpdate
from storage.git.commits import Identity, build_commit
from storage.git.errors import RemoteUnavailable, UnsafeAddress
from storage.git.remote import Remote
from storage.git.trees import write_package

WHO = Identity("test", "test@example.com")


def certificate(folder: Path) -> tuple[Path, bytes]:
    """Write key and certificate of a self-signed server at the loopback; returns the file and the PEM to trust."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = dt.datetime.now(dt.UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    signed = (
        builder.not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = signed.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = folder / "server.pem"
    file.write_bytes(private + pem)
    return file, pem


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[tuple[GitServer, bytes]]:
    file, pem = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    create_repository(tmp_path / "r.git")
    with git_server(tmp_path, tls=context) as server:
        yield server, pem


def test_a_remote_is_trusted_through_the_bundle_given_and_only_so(
    secure: tuple[GitServer, bytes], tmp_path: Path
) -> None:
    server, pem = secure
    clone = Clone.open(tmp_path / "clone")

    with pytest.raises(RemoteUnavailable) as refused:
        clone.list_remote(Remote(f"{server.url}/r", timeout=30))

    assert refused.value.problem.startswith("TLS failed")
    assert list(clone.list_remote(Remote(f"{server.url}/r", ca=pem, timeout=30))) == ["refs/heads/main"]
    with pytest.raises(UnsafeAddress):
        clone.list_remote(Remote(f"{server.url}/r", ca=b"junk", timeout=30))


def test_a_bundle_may_hold_an_authority_without_its_root(tmp_path: Path) -> None:
    root = Authority.new(tmp_path, "root")
    named = root.intermediate("named")
    pair, context = named.server("git"), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    create_repository(tmp_path / "r.git")
    clone = Clone.open(tmp_path / "clone")

    with git_server(tmp_path, tls=context) as server:
        assert list(clone.list_remote(Remote(f"{server.url}/r", ca=named.file.read_bytes(), timeout=30)))
        with pytest.raises(RemoteUnavailable, match="TLS failed"):
            clone.list_remote(Remote(f"{server.url}/r", ca=root.intermediate("other").file.read_bytes(), timeout=30))


def test_readers_see_every_object_while_packs_come_and_go(tmp_path: Path) -> None:
    repository = create_repository(tmp_path / "r.git")
    remote = Remote(f"file://{repository}", timeout=20)
    clone, other = Clone.open(tmp_path / "reading"), Clone.open(tmp_path / "writing")
    for each in (clone, other):
        each.fetch(remote, each.list_remote(remote))
    known = [clone.refs["refs/heads/main"]]
    done = threading.Event()

    def read() -> int:
        count = 0
        while not done.is_set():
            for oid in known:
                clone.read(clone.commit(oid).tree)
                count += 1
        return count

    with ThreadPoolExecutor(4) as threads:
        readers = [threads.submit(read) for _ in range(4)]
        try:
            for number in range(12):
                tree, objects = write_package({"a": File(b"%d" % number)})
                commit = build_commit(tree, (known[0],), WHO, "x", 1_700_000_000 + number)
                update = RefUpdate(f"refs/heads/drafts/p/w{number}", None, commit.oid)
                other.push(remote, [update], [*objects, commit])
                clone.fetch(remote, clone.list_remote(remote))
                clone.add_objects(write_package({"b": File(b"%d" % number)})[1])
                known.append(commit.oid)
                clone.consolidate(force=number % 3 == 2)
        finally:
            done.set()

    assert min(reader.result() for reader in readers) > 0
    assert len(known) == 13
