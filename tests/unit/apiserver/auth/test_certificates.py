"""Certificates of the data directory: what a start makes, what the next one keeps, what it refuses."""

import base64
import datetime as dt
import ipaddress
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from apiserver.auth import certificates
from apiserver.auth.bootstrap_token import is_still_good
from apiserver.auth.certificates import Files, UnusableCertificate, ensure_certificates, issue_client, load_authority
from apiserver.auth.issuing import NotIssued, user_kubeconfig
from apiserver.auth.kubeconfig import token_in

PORT = 9443


def contents(data: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in data.iterdir()}


def read(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def changed(before: dict[str, bytes], after: dict[str, bytes]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def at(moment: dt.datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "_now", lambda: moment)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "porch" / "data"


@pytest.fixture
def files(data: Path) -> Files:
    return ensure_certificates(data, PORT)


def test_a_first_start_makes_every_file_and_leaves_nothing_else(data: Path, files: Files) -> None:
    assert {path.name for path in data.iterdir()} == {
        "ca.crt",
        "ca.key",
        "tls.crt",
        "tls.key",
        "admin.crt",
        "admin.key",
        "kubeconfig",
        "bootstrap-token.json",
    }
    assert files == Files.under(data)


@pytest.mark.parametrize("name", ["ca.key", "tls.key", "admin.key", "kubeconfig", "bootstrap-token.json"])
def test_what_gives_access_is_readable_by_its_owner_only(data: Path, files: Files, name: str) -> None:
    assert stat.S_IMODE((data / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(data.stat().st_mode) == 0o700


def test_a_ca_key_that_others_may_read_is_closed_again(data: Path, files: Files) -> None:
    files.ca_key.chmod(0o644)

    ensure_certificates(data, PORT)

    assert stat.S_IMODE(files.ca_key.stat().st_mode) == 0o600


def test_a_second_start_reuses_everything(data: Path, files: Files) -> None:
    before = {path: path.stat().st_mtime_ns for path in data.iterdir()}

    ensure_certificates(data, PORT)

    assert {path: path.stat().st_mtime_ns for path in data.iterdir()} == before


def test_the_ca_is_p256_lives_ten_years_and_signs_only_leaves(files: Files) -> None:
    ca = read(files.ca)
    constraints = ca.extensions.get_extension_for_class(x509.BasicConstraints)
    key = ca.public_key()

    assert isinstance(key, ec.EllipticCurvePublicKey)
    assert isinstance(key.curve, ec.SECP256R1)
    assert constraints.critical
    assert constraints.value == x509.BasicConstraints(ca=True, path_length=0)
    assert 3649 <= (ca.not_valid_after_utc - dt.datetime.now(dt.UTC)).days <= 3650


def test_the_serving_certificate_names_this_machine_and_serves_only(files: Files) -> None:
    serving = read(files.serving)
    names = serving.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert set(names) == {
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        x509.IPAddress(ipaddress.ip_address("::1")),
    }
    assert list(serving.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value) == [
        ExtendedKeyUsageOID.SERVER_AUTH
    ]
    serving.verify_directly_issued_by(read(files.ca))


def test_the_admin_is_in_the_group_of_masters(files: Files) -> None:
    admin = read(files.admin)
    subject = {attribute.oid: attribute.value for attribute in admin.subject}
    key = load_pem_private_key(files.admin_key.read_bytes(), None)

    assert subject == {NameOID.COMMON_NAME: "admin", NameOID.ORGANIZATION_NAME: "system:masters"}
    assert admin.public_key() == key.public_key()
    admin.verify_directly_issued_by(read(files.ca))


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        pytest.param(240, set[str](), id="before-two-thirds-kept"),
        pytest.param(
            250, {"tls.crt", "tls.key", "admin.crt", "admin.key", "kubeconfig"}, id="after-two-thirds-renewed"
        ),
    ],
)
def test_leaves_are_renewed_after_two_thirds_of_their_life(
    data: Path, files: Files, monkeypatch: pytest.MonkeyPatch, days: int, expected: set[str]
) -> None:
    before = contents(data)
    at(dt.datetime.now(dt.UTC) + dt.timedelta(days=days), monkeypatch)

    ensure_certificates(data, PORT)

    assert changed(before, contents(data)) == expected


def test_a_leaf_never_outlives_its_ca(data: Path, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    at(dt.datetime.now(dt.UTC) + dt.timedelta(days=3600), monkeypatch)

    ensure_certificates(data, PORT)

    assert read(files.serving).not_valid_after_utc == read(files.ca).not_valid_after_utc


def test_a_damaged_leaf_is_made_again(data: Path, files: Files) -> None:
    files.serving.write_bytes(b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
    before = contents(data)

    ensure_certificates(data, PORT)

    assert changed(before, contents(data)) == {"tls.crt", "tls.key"}
    read(files.serving).verify_directly_issued_by(read(files.ca))


def test_a_start_killed_between_key_and_certificate_is_completed(data: Path, files: Files) -> None:
    """The CA's key is written first, so a key alone is a first start that did not finish."""
    key = files.ca_key.read_bytes()
    for path in data.iterdir():
        if path != files.ca_key:
            path.unlink()

    ensure_certificates(data, PORT)

    assert files.ca_key.read_bytes() == key
    read(files.admin).verify_directly_issued_by(read(files.ca))


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        pytest.param(lambda files: files.ca.write_bytes(b"x"), "missing or damaged", id="certificate-damaged"),
        pytest.param(lambda files: files.ca_key.unlink(), "missing or damaged", id="key-lost"),
        pytest.param(
            lambda files: files.ca_key.write_bytes(files.admin_key.read_bytes()), "belong together", id="other-key"
        ),
    ],
)
def test_a_ca_that_clients_trust_is_never_replaced_silently(data: Path, files: Files, spoil: Any, says: str) -> None:
    spoil(files)
    before = contents(data)

    with pytest.raises(UnusableCertificate, match=says) as refusal:
        ensure_certificates(data, PORT)

    assert "remove both" in str(refusal.value)
    assert contents(data) == before


def test_an_expired_ca_is_refused_with_what_to_do(data: Path, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    at(dt.datetime.now(dt.UTC) + dt.timedelta(days=3651), monkeypatch)

    with pytest.raises(UnusableCertificate, match="has expired"):
        ensure_certificates(data, PORT)


def test_a_new_ca_signs_everything_anew(data: Path, files: Files) -> None:
    files.ca.unlink()
    files.ca_key.unlink()

    ensure_certificates(data, PORT)

    read(files.serving).verify_directly_issued_by(read(files.ca))
    read(files.admin).verify_directly_issued_by(read(files.ca))
    config = yaml.safe_load(files.kubeconfig.read_bytes())
    assert certificates_in(config)["certificate-authority-data"] == files.ca.read_bytes()


def certificates_in(config: Any) -> dict[str, bytes]:
    import base64

    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    return {key: base64.b64decode(value) for key, value in {**cluster, **user}.items() if key.endswith("-data")}


def test_the_kubeconfig_embeds_the_credentials_and_points_at_the_port(files: Files) -> None:
    config = yaml.safe_load(files.kubeconfig.read_bytes())

    assert config["current-context"] == "porch"
    assert config["contexts"][0]["context"]["namespace"] == "default"
    assert config["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:9443"
    assert certificates_in(config) == {
        "certificate-authority-data": files.ca.read_bytes(),
        "client-certificate-data": files.admin.read_bytes(),
        "client-key-data": files.admin_key.read_bytes(),
    }


def test_another_port_changes_the_kubeconfig_only(data: Path, files: Files) -> None:
    before = contents(data)

    ensure_certificates(data, 9444)

    assert changed(before, contents(data)) == {"kubeconfig"}
    assert b"https://127.0.0.1:9444" in files.kubeconfig.read_bytes()


def test_a_namespace_chosen_by_the_owner_survives_a_restart(data: Path, files: Files) -> None:
    config = yaml.safe_load(files.kubeconfig.read_bytes())
    config["contexts"][0]["context"]["namespace"] = "team-a"
    files.kubeconfig.write_text(yaml.safe_dump(config))

    ensure_certificates(data, PORT)

    assert yaml.safe_load(files.kubeconfig.read_bytes())["contexts"][0]["context"]["namespace"] == "team-a"


@pytest.mark.parametrize(
    ("host", "server"),
    [
        pytest.param("10.1.2.3", "https://10.1.2.3:9443", id="address"),
        pytest.param("porch.example", "https://porch.example:9443", id="name"),
        pytest.param("0.0.0.0", "https://127.0.0.1:9443", id="wildcard"),  # noqa: S104 # that is the case
        pytest.param("::", "https://127.0.0.1:9443", id="wildcard-6"),
        pytest.param("::1", "https://[::1]:9443", id="ipv6"),
    ],
)
def test_the_address_listened_on_is_certified_and_used(data: Path, host: str, server: str) -> None:
    files = ensure_certificates(data, PORT, host)
    config = yaml.safe_load(files.kubeconfig.read_bytes())
    names = read(files.serving).extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert config["clusters"][0]["cluster"]["server"] == server
    assert (host in {str(name.value) for name in names}) == (host not in {"0.0.0.0", "::"})  # noqa: S104 # as above


def test_a_client_certificate_carries_name_and_groups(files: Files) -> None:
    pem, _ = issue_client(load_authority(files), "alice", ["team-a", "approvers"])
    subject = x509.load_pem_x509_certificate(pem).subject

    assert [a.value for a in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == ["alice"]
    assert [a.value for a in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)] == ["team-a", "approvers"]


class TestTheTokenOfTheKubeconfig:
    def test_it_has_a_user_and_a_context_of_its_own(self, files: Files) -> None:
        config = yaml.safe_load(files.kubeconfig.read_bytes())

        assert [user["name"] for user in config["users"]] == ["porch-admin", "porch-token"]
        assert [context["name"] for context in config["contexts"]] == ["porch", "porch-token"]
        assert config["current-context"] == "porch"
        assert is_still_good(files.token_record, config["users"][1]["user"]["token"])

    def test_a_revoked_or_lost_one_is_made_anew(self, data: Path, files: Files) -> None:
        before = token_in(files.kubeconfig.read_bytes())
        files.token_record.unlink()
        ensure_certificates(data, PORT)
        second = token_in(files.kubeconfig.read_bytes())
        files.kubeconfig.unlink()
        ensure_certificates(data, PORT)
        third = token_in(files.kubeconfig.read_bytes())

        assert len({before, second, third}) == 3
        assert is_still_good(files.token_record, third)
        assert not is_still_good(files.token_record, before)

    @pytest.mark.parametrize(
        "content", [b"", b"{", b"[]", b"users: 3", b"\xff", b"users: [{name: porch-token, user: {}}]"]
    )
    def test_a_file_without_one_has_none(self, content: bytes) -> None:
        assert token_in(content) == ""


class TestIssuing:
    def test_another_user_gets_a_kubeconfig_with_a_certificate(self, data: Path, files: Files) -> None:
        config = yaml.safe_load(user_kubeconfig(data, "bob", ["team-a"], dt.timedelta(days=2)))
        pem = base64.b64decode(config["users"][0]["user"]["client-certificate-data"])
        certificate = x509.load_pem_x509_certificate(pem)

        assert config["clusters"][0]["cluster"]["server"] == f"https://127.0.0.1:{PORT}"
        assert config["current-context"] == "porch"
        assert [user["name"] for user in config["users"]] == ["bob"]
        assert certificate.subject.rfc4514_string() == "CN=bob,O=team-a"
        assert certificate.not_valid_after_utc - dt.datetime.now(dt.UTC) < dt.timedelta(days=2)

    @pytest.mark.parametrize("names", [("", ()), ("x" * 65, ()), ("bob", ("",))])
    def test_a_name_that_no_certificate_can_hold_is_refused(
        self, data: Path, files: Files, names: tuple[str, tuple[str, ...]]
    ) -> None:
        with pytest.raises(NotIssued, match="1 to 64 characters"):
            user_kubeconfig(data, *names)

    def test_where_no_server_was_started_nothing_is_issued(self, tmp_path: Path) -> None:
        with pytest.raises(NotIssued, match="not the data directory of a server that was started"):
            user_kubeconfig(tmp_path, "bob", ())
