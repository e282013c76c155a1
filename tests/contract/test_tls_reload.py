"""Certificates that change while serving: what new connections get, and what a half-finished change does."""

import contextlib
import datetime as dt
import ssl
from pathlib import Path

import pytest
from control_plane_keys import Authority
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from apiserver.auth.authorities import Authorities
from apiserver.auth.certificates import (
    LOCAL_HOSTS,
    Files,
    ensure_certificates,
    issue_client,
    issue_serving,
    load_authority,
)
from apiserver.tls import ReloadingTls


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return ensure_certificates(tmp_path / "data", 9443)


@pytest.fixture
def tls(files: Files) -> ReloadingTls:
    return ReloadingTls(files, lambda: None)


def served(tls: ReloadingTls, client: ssl.SSLContext) -> tuple[bytes | None, bytes | None]:
    """Shake hands in memory; return the server's and the client's certificate as the other side saw them."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server_side = tls.context.wrap_bio(to_server, to_client, server_side=True)
    client_side = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    for _ in range(4):
        for side in (client_side, server_side):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    return client_side.getpeercert(binary_form=True), server_side.getpeercert(binary_form=True)


def client_of(files: Files, folder: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(files.ca))
    if folder is not None:
        (folder / "client.pem").write_bytes(b"".join(issue_client(load_authority(files), "bob")))
        context.load_cert_chain(folder / "client.pem")
    return context


def der(path: Path) -> bytes:
    return x509.load_pem_x509_certificate(path.read_bytes()).public_bytes(Encoding.DER)


def test_new_connections_get_the_new_certificate(files: Files, tls: ReloadingTls, tmp_path: Path) -> None:
    before = served(tls, client_of(files))[0]
    certificate, key = issue_serving(load_authority(files), LOCAL_HOSTS)
    files.serving_key.write_bytes(key)
    files.serving.write_bytes(certificate)

    assert tls.look()
    shown, known = served(tls, client_of(files, tmp_path))
    assert before != shown == der(files.serving)
    assert known == der(tmp_path / "client.pem"), "client certificates are still asked for"
    assert not tls.look(), "nothing changed since"


def test_half_a_change_leaves_the_old_pair_in_force(files: Files, tls: ReloadingTls) -> None:
    before = served(tls, client_of(files))[0]
    certificate, key = issue_serving(load_authority(files), LOCAL_HOSTS)

    files.serving.write_bytes(certificate)
    half = tls.look()
    kept = served(tls, client_of(files))[0]
    files.serving_key.write_bytes(key)

    assert not half
    assert kept == before
    assert tls.look()
    assert served(tls, client_of(files))[0] == der(files.serving)


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_a_lost_or_damaged_file_changes_nothing(files: Files, tls: ReloadingTls, content: bytes | None) -> None:
    before = served(tls, client_of(files))[0]
    if content is None:
        files.serving.unlink()
    else:
        files.serving.write_bytes(content)

    assert not tls.look()
    assert served(tls, client_of(files))[0] == before


def test_a_certificate_of_another_ca_is_refused_after_a_change_too(
    files: Files, tls: ReloadingTls, tmp_path: Path
) -> None:
    foreign = ensure_certificates(tmp_path / "foreign", 9443)
    certificate, key = issue_serving(load_authority(files), LOCAL_HOSTS)
    files.serving_key.write_bytes(key)
    files.serving.write_bytes(certificate)
    assert tls.look()
    client = client_of(files)
    client.load_cert_chain(foreign.admin, foreign.admin_key)

    with pytest.raises(ssl.SSLError):
        served(tls, client)


def test_no_client_gets_in_by_a_session_whose_authority_has_gone(files: Files, tmp_path: Path) -> None:
    root = Authority.new(tmp_path, "root")
    pair, trusted = root.client("alice"), [root.file.read_text()]
    tls = ReloadingTls(files, lambda: None, lambda: trusted[0])
    client = client_of(files)
    client.load_cert_chain(pair.certificate, pair.key)
    session = connected(tls, client, None)
    connected(tls, client, session)

    trusted[0] = Authority.new(tmp_path, "other").file.read_text()
    assert tls.look()

    with pytest.raises(ssl.SSLError):
        connected(tls, client, session)


def connected(tls: ReloadingTls, client: ssl.SSLContext, session: ssl.SSLSession | None) -> ssl.SSLSession | None:
    """Shake hands and send a byte, after which a client has everything that it may take up again; return that."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server_side = tls.context.wrap_bio(to_server, to_client, server_side=True)
    client_side = client.wrap_bio(to_client, to_server, server_hostname="localhost", session=session)
    for _ in range(4):
        for side in (client_side, server_side):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    server_side.write(b"x")
    assert client_side.read(1) == b"x"
    assert not server_side.session_reused
    return client_side.session


def test_a_cluster_may_trust_an_authority_without_its_root(files: Files, tmp_path: Path) -> None:
    """Its certificates are believed by kube-apiserver, too; what else the root signed is not."""
    root = Authority.new(tmp_path, "root")
    named = root.intermediate("named")
    trusted = named.file.read_text()
    tls = ReloadingTls(files, lambda: None, lambda: trusted)
    of_named, of_root = named.client("alice"), root.client("bob")

    client = client_of(files)
    client.load_cert_chain(of_named.certificate, of_named.key)
    assert served(tls, client)[1] == der(of_named.certificate)
    assert Authorities(trusted).vouch_for([of_named.certificate.read_text()], dt.datetime.now(dt.UTC))

    stranger = client_of(files)
    stranger.load_cert_chain(of_root.certificate, of_root.key)
    with pytest.raises(ssl.SSLError):
        served(tls, stranger)
