import hashlib
import shutil
import zlib
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from storage.git.errors import CorruptObject, DiskFull, LimitExceeded, ObjectMissing
from storage.git.objects import GitObject, blob, git_object
from storage.git.objectstore import ObjectStore
from storage.git.packfile import PackLimits
from storage.git.packwriter import write_pack

LIMITS = PackLimits(pack=1 << 20, object=1 << 16, depth=60)


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    (tmp_path / "pack").mkdir()
    return ObjectStore(tmp_path, git=None, limits=LIMITS)


def sealed(body: bytes, count: int) -> bytes:
    data = b"PACK\0\0\0\2" + count.to_bytes(4, "big") + body
    return data + hashlib.sha1(data, usedforsecurity=False).digest()


def header(number: int, size: int) -> bytes:
    first, size = (number << 4) | (size & 15), size >> 4
    out = bytearray([first])
    while size:
        out[-1] |= 0x80
        out.append(size & 0x7F)
        size >>= 7
    return bytes(out)


def entry(number: int, data: bytes, *, size: int | None = None, base: bytes = b"") -> bytes:
    return header(number, len(data) if size is None else size) + base + zlib.compress(data)


def receive(store: ObjectStore, pack: bytes) -> None:
    def fill(sink: Callable[[bytes], None]) -> None:
        sink(pack)

    store.receive(fill)


def test_a_sound_pack_is_readable(store: ObjectStore) -> None:
    receive(store, sealed(entry(3, b"hello") + entry(3, b""), 2))

    assert store.read(blob(b"hello").oid) == blob(b"hello")
    assert store.read(blob(b"").oid) == blob(b"")
    with pytest.raises(ObjectMissing):
        store.read("0" * 40)


@pytest.mark.parametrize(("count", "files"), [(20, 1), (1000, 2)], ids=["small", "large"])
def test_a_small_pack_holds_one_file_open_and_a_large_one_its_index_too(
    count: int, files: int, store: ObjectStore
) -> None:
    contents = [b"file %d" % number for number in range(count)]
    before = len(list(Path("/proc/self/fd").iterdir()))

    receive(store, sealed(b"".join(entry(3, data) for data in contents), count))

    assert len(list(Path("/proc/self/fd").iterdir())) - before == files
    assert all(store.read(blob(data).oid).data == data for data in contents)


HOSTILE = {
    "no pack at all": b"hello",
    "wrong checksum": sealed(entry(3, b"x"), 1)[:-1] + b"?",
    "declares less than it inflates to": sealed(entry(3, b"x" * 5000, size=5), 1),
    "declares more than it inflates to": sealed(entry(3, b"x", size=500), 1),
    "declares too much": sealed(entry(3, b"x", size=1 << 40), 1),
    "a size that never ends": sealed(b"\xbf" + b"\xff" * 500, 1),
    "more objects than there are": sealed(entry(3, b"x"), 9),
    "fewer objects than there are": sealed(entry(3, b"x") + entry(3, b"y"), 1),
    "four billion objects": sealed(entry(3, b"x"), 0xFFFFFFFF),
    "unknown type": sealed(entry(5, b"x"), 1),
    "not zlib": sealed(header(3, 5) + b"garbage....", 1),
    "a delta of itself": sealed(entry(7, b"\1\1\1x", base=blob(b"x").oid.encode()[:20]), 1),
    "a delta before the pack": sealed(entry(6, b"\1\1\1x", base=b"\x7f"), 1),
    "a delta of distance zero": sealed(entry(6, b"\1\1\1x", base=b"\0"), 1),
    "a delta that promises too much": sealed(
        (one := entry(3, b"x")) + entry(6, b"\1\xff\xff\xff\xff\x7f\x90\1", base=bytes([len(one)])), 2
    ),
    "a delta that copies from beyond its base": sealed(
        one + entry(6, b"\1\x05\x91\x40\x05", base=bytes([len(one)])), 2
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pack_is_refused_and_leaves_nothing(store: ObjectStore, tmp_path: Path, name: str) -> None:
    with pytest.raises((CorruptObject, LimitExceeded)):
        receive(store, HOSTILE[name])

    assert list((tmp_path / "pack").iterdir()) == []
    assert store.pack_count == 0


def test_a_zlib_bomb_stops_at_the_object_limit(store: ObjectStore) -> None:
    bomb = zlib.compress(b"\0" * (100 << 20), 9)

    with pytest.raises((CorruptObject, LimitExceeded)):
        receive(store, sealed(header(3, 60_000) + bomb, 1))


def test_a_delta_chain_that_is_too_long_is_refused(store: ObjectStore) -> None:
    body, offsets = entry(3, b"x0"), [12]
    for number in range(1, 90):
        offsets.append(12 + len(body))
        body += entry(6, b"\2\2\2" + b"%02d" % number, base=bytes([offsets[-1] - offsets[-2]]))

    with pytest.raises(LimitExceeded):
        receive(store, sealed(body, 90))


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=60, deadline=None
)
@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_pack_with_flipped_bytes_is_a_typed_error(store: ObjectStore, flips: list[tuple[int, int]]) -> None:
    body = bytearray(entry(3, b"base" * 20) + entry(2, b"") + entry(6, b"\x50\4\4abcd", base=b"\x1c"))
    for place, value in flips:
        body[place % len(body)] = value

    # Any other error fails the test.
    with suppress(CorruptObject, LimitExceeded):
        receive(store, sealed(bytes(body), 3))


def test_our_packs_are_read_back_whole_and_similar_trees_cost_little(store: ObjectStore) -> None:
    rows = [b"40000 pkg%04d\0" % n + hashlib.sha1(b"%d" % n, usedforsecurity=False).digest() for n in range(1000)]
    trees: list[GitObject] = []
    for number in range(50):
        rows[number * 7] = rows[number * 7][:14] + b"%020d" % number
        trees.append(git_object("tree", b"".join(rows)))
    objects = {item.oid: item for item in [*trees, *(blob(b"%d" % n) for n in range(100))]}
    file = BytesIO()

    write_pack(file, list(objects), objects.__getitem__)
    receive(store, file.getvalue())

    assert all(store.read(oid) == item for oid, item in objects.items())
    assert len(file.getvalue()) < 5 * len(trees[0].data)


def test_a_full_disk_says_so_and_leaves_nothing(
    store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system call is the only thing replaced: a tmpfs needs rights that not every machine gives."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("storage.git.objectstore.os.fsync", full)
    with pytest.raises(DiskFull):
        receive(store, sealed(entry(3, b"hello"), 1))
    monkeypatch.setattr("storage.git.objectstore._write", full)
    with pytest.raises(DiskFull):
        store.add([blob(b"x")])

    assert list((tmp_path / "pack").iterdir()) == []
    assert not store.has(blob(b"x").oid)


@pytest.mark.parametrize("sound", [True, False])
def test_git_indexes_large_packs_and_what_it_refuses_python_explains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sound: bool
) -> None:
    (tmp_path / "objects" / "pack").mkdir(parents=True)
    (tmp_path / "refs").mkdir()
    (tmp_path / "HEAD").write_text("ref: refs/heads/main\n")
    monkeypatch.setattr("storage.git.objectstore.GIT_INDEXES_ABOVE", 0)
    with_git = ObjectStore(tmp_path / "objects", git=shutil.which("git"), limits=LIMITS)
    if not sound:
        with pytest.raises(CorruptObject):
            receive(with_git, HOSTILE["not zlib"])
        return
    # Only git can have written the index now.
    monkeypatch.delattr("storage.git.objectstore.index_pack")

    receive(with_git, sealed(entry(3, b"hello"), 1))

    assert with_git.read(blob(b"hello").oid) == blob(b"hello")
    assert len(list((tmp_path / "objects" / "pack").iterdir())) == 2
