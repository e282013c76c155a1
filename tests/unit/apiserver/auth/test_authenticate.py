"""From the certificate in an ASGI scope to a user."""

import datetime as dt
from typing import Any

import pytest

from apiserver.auth.authenticate import CertificateAuthenticator
from apiserver.auth.certificates import Authority, ensure_certificates, issue_client, load_authority


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return load_authority(ensure_certificates(tmp_path_factory.mktemp("data"), 9443))


def scope_of(*chain: bytes) -> dict[str, Any]:
    return {"type": "http", "extensions": {"tls": {"client_cert_chain": tuple(pem.decode() for pem in chain)}}}


async def test_common_name_and_organisations_become_name_and_groups(authority: Authority) -> None:
    pem, _ = issue_client(authority, "alice", ["team-a", "team-b"])

    user = await CertificateAuthenticator().authenticate(scope_of(pem))

    assert user is not None
    assert user.name == "alice"
    assert user.groups == ("team-a", "team-b", "system:authenticated")
    assert user.extra["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256=")


@pytest.mark.parametrize(
    "scope",
    [
        pytest.param({"type": "http"}, id="plain-http"),
        pytest.param({"type": "http", "extensions": {}}, id="no-tls-extension"),
        pytest.param({"type": "http", "extensions": {"tls": {}}}, id="extension-without-chain"),
        pytest.param({"type": "http", "extensions": {"tls": {"client_cert_chain": ()}}}, id="no-certificate"),
        pytest.param(
            {"type": "http", "state": {"tls_peer_der": b"x"}, "headers": [(b"x-remote-user", b"admin")]},
            id="claims-elsewhere",
        ),
    ],
)
async def test_without_a_certificate_there_is_no_user(scope: dict[str, Any]) -> None:
    """What is missing must never count as trusted."""
    assert await CertificateAuthenticator().authenticate(scope) is None


async def test_only_the_leaf_of_a_chain_counts(authority: Authority) -> None:
    alice, _ = issue_client(authority, "alice")
    bob, _ = issue_client(authority, "bob")

    user = await CertificateAuthenticator().authenticate(scope_of(alice, bob))

    assert user is not None
    assert user.name == "alice"


async def test_an_empty_name_is_nobody(authority: Authority) -> None:
    """X.509 forbids an empty common name, so a certificate without one comes as close as can be."""
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    from apiserver.auth.certificates import _issue

    nameless = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters")])
    pem, _ = _issue(authority, nameless, ExtendedKeyUsageOID.CLIENT_AUTH)

    assert await CertificateAuthenticator().authenticate(scope_of(pem)) is None


async def test_a_certificate_that_expires_on_an_open_connection_stops_counting(authority: Authority) -> None:
    """The handshake checked validity once; a connection may live longer."""
    moment = dt.datetime.now(dt.UTC)
    authenticator = CertificateAuthenticator(now=lambda: moment)
    pem, _ = issue_client(authority, "alice")
    assert await authenticator.authenticate(scope_of(pem)) is not None

    moment += dt.timedelta(days=366)

    assert await authenticator.authenticate(scope_of(pem)) is None


async def test_a_verdict_is_read_once_per_certificate(authority: Authority) -> None:
    authenticator = CertificateAuthenticator()
    pem, _ = issue_client(authority, "alice")

    first = await authenticator.authenticate(scope_of(pem))

    assert await authenticator.authenticate(scope_of(pem)) is first
