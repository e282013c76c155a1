"""What headers say of a user, and whose headers are looked at; the network's part is in ``tests/e2e/test_aggregated_access.py``."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from control_plane_keys import Authority
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiserver.auth.authenticate import CertificateAuthenticator
from apiserver.auth.chain import AuthenticatorChain
from apiserver.auth.cluster_trust import ClusterTrust, UnusableTrust, read_trust
from apiserver.auth.front_proxy import FrontProxyAuthenticator, HeadersForgotten, VouchedCertificates
from apiserver.machinery.rest import User
from krm.meta.errors import Unauthorized

Headers = list[tuple[bytes, bytes]]


class Place:
    """Two authorities, and what a cluster says of them."""

    def __init__(self, folder: Path) -> None:
        self.front, self.clients = Authority.new(folder, "front"), Authority.new(folder, "clients")
        self.data = {
            "client-ca-file": self.clients.file.read_text(),
            "requestheader-client-ca-file": self.front.file.read_text(),
            "requestheader-allowed-names": '["front-proxy-client"]',
            "requestheader-username-headers": '["X-Remote-User", "X-Other-User"]',
            "requestheader-uid-headers": '["X-Remote-Uid"]',
            "requestheader-group-headers": '["X-Remote-Group"]',
            "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
        }
        self.trust = read_trust(self.data)
        self.proxy = self.front.client("front-proxy-client").certificate.read_text()
        self.alice = self.clients.client("alice", ("devs",)).certificate.read_text()

    def chain(self, now: dt.timedelta = dt.timedelta()) -> AuthenticatorChain:
        def clock() -> dt.datetime:
            return dt.datetime.now(dt.UTC) + now

        def trust() -> ClusterTrust:
            return self.trust

        return AuthenticatorChain(
            [
                FrontProxyAuthenticator(trust, clock),
                VouchedCertificates(CertificateAuthenticator(clock), trust, clock),
            ],
            anonymous=True,
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def scope(certificate: str | None, *headers: tuple[str, str]) -> dict[str, Any]:
    """Build the part of an ASGI scope that is looked at."""
    sent = [(name.lower().encode(), value.encode()) for name, value in headers]
    tls = {} if certificate is None else {"tls": {"client_cert_chain": (certificate,)}}
    return {"type": "http", "headers": sent, "extensions": tls}


async def test_headers_of_the_front_proxy_name_user_groups_uid_and_extra(place: Place) -> None:
    asked = scope(
        place.proxy,
        ("X-Remote-User", "jané"),
        ("X-Remote-Group", "devs"),
        ("X-Remote-Group", ""),
        ("X-Remote-Group", "ops"),
        ("X-Remote-Uid", "7"),
        ("X-Remote-Extra-Scopes", "a"),
        ("X-Remote-Extra-scopes", "b"),
        ("X-Remote-Extra-example.com%2Fkey", "c"),
    )

    user = await place.chain().authenticate(asked)

    groups = ("devs", "ops", "system:authenticated")
    extra = {"scopes": ("a", "b"), "example.com/key": ("c",)}
    assert user == User("jané", groups, "7", extra)


async def test_the_first_header_that_names_somebody_counts(place: Place) -> None:
    asked = scope(place.proxy, ("X-Remote-User", ""), ("X-Other-User", "other"), ("X-Other-User", "third"))

    user = await place.chain().authenticate(asked)

    assert user is not None
    assert user.name == "other"


async def test_an_anonymous_user_of_the_front_proxy_is_not_an_authenticated_one(place: Place) -> None:
    asked = scope(place.proxy, ("X-Remote-User", "system:anonymous"), ("X-Remote-Group", "system:unauthenticated"))

    assert await place.chain().authenticate(asked) == User("system:anonymous", ("system:unauthenticated",))


async def test_headers_of_everybody_else_mean_nothing(place: Place) -> None:
    forged = (("X-Remote-User", "root"), ("X-Remote-Group", "system:masters"))

    nobody = await place.chain().authenticate(scope(None, *forged))
    alice = await place.chain().authenticate(scope(place.alice, *forged))

    assert nobody == User("system:anonymous", ("system:unauthenticated",))
    assert alice is not None
    assert (alice.name, alice.groups) == ("alice", ("devs", "system:authenticated"))


async def test_a_front_proxy_that_names_nobody_is_nobody(place: Place) -> None:
    with pytest.raises(Unauthorized):
        await place.chain().authenticate(scope(place.proxy))


async def test_another_name_of_the_right_authority_is_refused(place: Place) -> None:
    other = place.front.client("somebody-else").certificate.read_text()

    with pytest.raises(Unauthorized):
        await place.chain().authenticate(scope(other, ("X-Remote-User", "root")))


async def test_of_several_names_in_a_certificate_the_last_counts_as_for_kube_apiserver(place: Place) -> None:
    """Who signs requests for certificates looks at the same one; another would be a name that nobody approved."""
    subject = [x509.NameAttribute(NameOID.COMMON_NAME, name) for name in ("front-proxy-client", "eve")]
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    pretender = place.front._issue("pretender", x509.Name(subject), usage).certificate.read_text()
    user = place.clients._issue("both", x509.Name(subject), usage).certificate.read_text()

    with pytest.raises(Unauthorized):
        await place.chain().authenticate(scope(pretender, ("X-Remote-User", "root")))
    known = await place.chain().authenticate(scope(user))

    assert known is not None
    assert known.name == "eve"


async def test_any_name_will_do_where_the_cluster_says_so(place: Place) -> None:
    place.trust = read_trust({**place.data, "requestheader-allowed-names": "[]"})
    other = place.front.client("somebody-else").certificate.read_text()

    user = await place.chain().authenticate(scope(other, ("X-Remote-User", "eve")))

    assert user is not None
    assert user.name == "eve"


async def test_a_certificate_for_servers_is_not_one_of_a_client(place: Place) -> None:
    serving = place.front.server("front-proxy-client").certificate.read_text()

    with pytest.raises(Unauthorized):
        await place.chain().authenticate(scope(serving, ("X-Remote-User", "root")))


async def test_a_certificate_that_expires_while_its_connection_is_open_is_refused(place: Place) -> None:
    asked = scope(place.proxy, ("X-Remote-User", "eve"))
    now = [dt.datetime.now(dt.UTC)]
    proxy = FrontProxyAuthenticator(lambda: place.trust, lambda: now[0])
    assert await proxy.authenticate(asked)

    now[0] += dt.timedelta(days=2)

    assert await proxy.authenticate(asked) is None
    with pytest.raises(Unauthorized):
        await place.chain(dt.timedelta(days=2)).authenticate(asked)


async def test_an_authority_that_is_taken_away_vouches_for_nobody(place: Place) -> None:
    asked, chain = scope(place.proxy, ("X-Remote-User", "eve")), place.chain()
    assert await chain.authenticate(asked)

    place.trust = read_trust({**place.data, "requestheader-client-ca-file": place.clients.file.read_text()})

    with pytest.raises(Unauthorized):
        await chain.authenticate(asked)


async def test_headers_that_are_not_text_are_refused(place: Place) -> None:
    asked = scope(place.proxy)
    asked["headers"] = [(b"x-remote-user", b"\xff")]

    with pytest.raises(Unauthorized):
        await place.chain().authenticate(asked)


async def test_no_header_that_names_a_user_is_left_for_others(place: Place) -> None:
    asked = scope(place.proxy, ("X-Remote-User", "eve"), ("X-Other-User", "eve"), ("Accept", "*/*"))

    await HeadersForgotten(place.chain(), lambda: place.trust).authenticate(asked)

    assert asked["headers"] == [(b"accept", b"*/*")]


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("client-ca-file", "no certificate", "client-ca-file: no certificates in PEM"),
        ("requestheader-client-ca-file", "-----BEGIN", "requestheader-client-ca-file: no certificates"),
        ("requestheader-allowed-names", "front-proxy-client", "requestheader-allowed-names: .* is not JSON"),
        ("requestheader-allowed-names", '{"a": 1}', "is not a list of strings"),
        ("requestheader-username-headers", "[1]", "is not a list of strings"),
        ("requestheader-extra-headers-prefix", '[""]', "are not names of headers"),
    ],
    ids=["no certificate", "broken", "no JSON", "no list", "numbers", "every header"],
)
def test_what_cannot_be_understood_is_not_guessed(place: Place, key: str, value: str, says: str) -> None:
    with pytest.raises(UnusableTrust, match=says):
        read_trust({**place.data, key: value})


def test_a_cluster_without_a_front_proxy_trusts_none(place: Place) -> None:
    assert read_trust({"client-ca-file": place.data["client-ca-file"]}).proxy is None
    assert read_trust({}) == ClusterTrust()
