"""Stored bodies take their revision by splicing; sealed ones open only for their own object."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from storage.bodies import encode_body, with_revision
from storage.interfaces import ObjectKey
from storage.sealing import KEY_BYTES, SealBroken, Sealer, load_or_create_key

KEY = ObjectKey("secrets", "ns", "name")
texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.none() | st.booleans() | texts | st.lists(texts, max_size=3) | st.dictionaries(texts, texts, max_size=3)


@settings(max_examples=50, deadline=None)
@given(
    metadata=st.dictionaries(texts, values, min_size=1, max_size=4),
    more=st.dictionaries(texts, values, max_size=4),
    kind=texts.filter(bool),
    rv=st.integers(1, 2**62),
)
def test_the_revision_is_the_only_difference(
    metadata: dict[str, object], more: dict[str, object], kind: str, rv: int
) -> None:
    metadata.pop("resourceVersion", None)
    metadata["name"] = "x"
    obj = more | {"kind": kind, "apiVersion": 'a"metadata":{', "metadata": metadata}
    body = encode_body(obj | {"metadata": metadata | {"resourceVersion": "old"}})

    assert json.loads(body) == obj
    assert json.loads(with_revision(body, rv)) == obj | {"metadata": metadata | {"resourceVersion": str(rv)}}
    assert list(json.loads(body))[:3] == ["apiVersion", "kind", "metadata"]


@pytest.mark.parametrize(
    "obj",
    [
        {"apiVersion": "v1", "kind": "A", "metadata": {}},
        {"apiVersion": "v1", "kind": "A", "metadata": {"resourceVersion": "1"}},
        {"apiVersion": "v1", "metadata": {"name": "a"}},
        {"kind": "A", "metadata": {"name": "a"}},
    ],
    ids=["empty-metadata", "revision-only", "no-kind", "no-version"],
)
def test_what_could_not_take_a_revision_is_refused(obj: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="needs apiVersion"):
        encode_body(obj)


def test_a_sealed_body_opens_for_its_object_alone() -> None:
    sealer = Sealer(b"k" * KEY_BYTES)
    sealed = sealer.seal(KEY, b"swordfish")

    assert sealer.open(KEY, sealed) == b"swordfish"
    assert sealer.seal(KEY, b"swordfish") != sealed
    for other in (ObjectKey("secrets", "ns", "x"), ObjectKey("secrets", "x", "name"), ObjectKey("x", "ns", "name")):
        with pytest.raises(SealBroken):
            sealer.open(other, sealed)


@pytest.mark.parametrize("at", [0, 1, 5, 17, -1])
def test_a_changed_byte_is_noticed(at: int) -> None:
    sealer = Sealer(b"k" * KEY_BYTES)
    sealed = bytearray(sealer.seal(KEY, b"swordfish"))
    sealed[at] ^= 1
    with pytest.raises(SealBroken):
        sealer.open(KEY, bytes(sealed))


@pytest.mark.parametrize("sealed", [b"", b"\x01", b'{"plain":1}'])
def test_what_is_not_sealed_is_refused(sealed: bytes) -> None:
    with pytest.raises(SealBroken):
        Sealer(b"k" * KEY_BYTES).open(KEY, sealed)


def test_a_rotated_key_still_opens_and_no_longer_seals() -> None:
    old, new = Sealer(b"o" * KEY_BYTES), Sealer(b"n" * KEY_BYTES, [b"o" * KEY_BYTES])

    assert new.open(KEY, old.seal(KEY, b"x")) == b"x"
    with pytest.raises(SealBroken):
        old.open(KEY, new.seal(KEY, b"x"))


def test_a_key_file_is_made_once_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "key"
    key = load_or_create_key(path)

    assert len(key) == KEY_BYTES
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_or_create_key(path) == key
    assert list(tmp_path.iterdir()) == [path]


def test_a_key_file_that_others_read_or_that_is_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "key"
    load_or_create_key(path)
    path.chmod(0o644)
    with pytest.raises(ValueError, match="0600"):
        load_or_create_key(path)
    path.chmod(0o600)
    path.write_bytes(b"short")
    with pytest.raises(ValueError, match="must hold"):
        load_or_create_key(path)


def test_a_key_has_32_bytes() -> None:
    with pytest.raises(ValueError, match="32"):
        Sealer(b"short")
