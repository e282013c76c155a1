"""Certificates that servers share: what is due, and what is left alone. Their way through a cluster is in ``tests/aggregated``."""

import datetime as dt
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from cryptography import x509

from apiserver.auth import certificates
from apiserver.auth.certificates import UnusableCertificate, issue_serving
from apiserver.auth.shared_certificates import SharedCertificates, read_shared, renewed

NAMES = ("localhost", "porch-server.porch-system.svc")
SETTLE = dt.timedelta(minutes=5)


@contextmanager
def days_ago(days: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as past:
        past.setattr(certificates, "_now", lambda: dt.datetime.now(dt.UTC) - dt.timedelta(days=days))
        yield


def next_of(
    known: SharedCertificates | None, *, published: bool = False, names: tuple[str, ...] = NAMES
) -> SharedCertificates:
    return renewed(known, names, published=published, settle=SETTLE)


def made(days: int) -> SharedCertificates:
    """Return what was made so long ago."""
    with days_ago(days):
        return next_of(None)


def read_again(known: SharedCertificates) -> dict[str, bytes]:
    read = read_shared(known.data)
    assert read is not None
    return read.data


def test_a_first_look_makes_everything_and_a_second_one_nothing() -> None:
    first = next_of(None)

    assert next_of(first, published=True) is first
    assert read_again(first) == first.data
    assert first.bundle == first.data["ca.crt"]
    leaf = x509.load_pem_x509_certificate(first.leaf[0])
    life = leaf.not_valid_after_utc - leaf.not_valid_before_utc
    assert dt.timedelta(days=365) <= life < dt.timedelta(days=366)


def test_a_leaf_is_renewed_after_two_thirds_of_its_life_and_for_other_names() -> None:
    young = made(240)
    assert next_of(young) is young
    due = made(245)
    again = next_of(due)
    assert again.leaf != due.leaf
    assert (again.authority, again.bundle) == (due.authority, due.bundle)

    other = next_of(young, names=(*NAMES, "another.name"))
    assert other.leaf != young.leaf


def test_a_successor_signs_only_once_it_has_been_published() -> None:
    old = next_of(made(2450))  # its leaf is renewed first
    begun = next_of(old)
    assert begun.successor is not None
    assert begun.leaf == old.leaf
    assert next_of(begun) is begun

    signed = next_of(begun, published=True)
    assert signed.authority == begun.successor
    assert signed.bundle == begun.bundle, "nothing new to tell"
    assert next_of(signed, published=True) is signed, "the old one is trusted until every server shows the new one"

    with days_ago(1):
        leaf = issue_serving(signed.authority, NAMES)
    alone = next_of(replace(signed, leaf=leaf))
    assert alone.bundle == alone.data["ca.crt"] != signed.bundle
    assert read_again(alone) == alone.data


def test_an_authority_that_has_ended_is_replaced_at_once() -> None:
    ended = made(3700)

    new = next_of(ended)

    assert new.authority != ended.authority
    assert new.predecessor == b""


@pytest.mark.parametrize("spoilt", ["ca.crt", "ca.key"])
def test_what_is_damaged_is_not_guessed(spoilt: str) -> None:
    data = next_of(None).data

    for content in (b"", b"nonsense", next_of(None).data[spoilt]):
        with pytest.raises(UnusableCertificate):
            read_shared({**data, spoilt: content})


def test_a_lost_leaf_is_made_again() -> None:
    known = next_of(None)

    read = read_shared({key: value for key, value in known.data.items() if not key.startswith("tls.")})

    assert read is not None
    assert next_of(read).bundle == known.bundle
    assert next_of(read).leaf[0].startswith(b"-----BEGIN CERTIFICATE")


def test_an_empty_secret_holds_nothing() -> None:
    assert read_shared({}) is None
