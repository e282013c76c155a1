"""Write packs of our own: objects in a sensible order, similar trees as deltas of each other.

A registered repository's root tree has an entry per package and changes with every approval; without deltas ten
thousand approvals would keep gigabytes of nearly equal trees.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import IO, NamedTuple

from dulwich.object_format import DEFAULT_OBJECT_FORMAT
from dulwich.pack import UnpackedObject, create_delta, pack_object_header

from storage.git.objects import GitObject
from storage.git.packfile import KIND_NUMBERS, OFS_DELTA

MAX_CHAIN = 40
"""Links of a delta chain; each costs a read later."""

WORTH_A_DELTA = 512
"""Bytes of a tree below which a delta saves nothing."""

_LEVEL = 1
"""zlib: ids do not compress, and packs are written while people wait for the processor."""


class Written(NamedTuple):
    """A pack as written: its checksum, and (raw id, offset, CRC of the stored bytes) of each object, for its index."""

    checksum: bytes
    rows: list[tuple[bytes, int, int]]


def write_pack(file: IO[bytes], oids: Sequence[str], read: Callable[[str], GitObject]) -> Written:
    """Write a pack (version 2) with each object once.

    Trees are ordered by size, largest first, and stored as differences from the one before where that is smaller.
    """
    rows: list[tuple[bytes, int, int]] = []
    sizes: list[tuple[int, int, str]] = []
    for oid in oids:
        item = read(oid)
        sizes.append((KIND_NUMBERS[item.kind], -len(item.data), oid))
    digest = hashlib.sha1(usedforsecurity=False)
    at = 0

    def put(data: bytes) -> None:
        nonlocal at
        file.write(data)
        digest.update(data)
        at += len(data)

    put(b"PACK" + (2).to_bytes(4, "big") + len(oids).to_bytes(4, "big"))
    before: tuple[int, bytes] | None = None
    links = 0
    for number, _, oid in sorted(sizes):
        data = read(oid).data
        start = at
        delta = _delta(before[1], data) if before and number == KIND_NUMBERS["tree"] and links < MAX_CHAIN else None
        if delta is None or before is None:
            header = pack_object_header(number, None, len(data), DEFAULT_OBJECT_FORMAT)
            stored = bytes(header) + zlib.compress(data, _LEVEL)
            links = 0
        else:
            header = pack_object_header(OFS_DELTA, start - before[0], len(delta), DEFAULT_OBJECT_FORMAT)
            stored = bytes(header) + zlib.compress(delta, _LEVEL)
            links += 1
        put(stored)
        rows.append((bytes.fromhex(oid), start, zlib.crc32(stored)))
        before = (start, data) if number == KIND_NUMBERS["tree"] else None
    file.write(digest.digest())
    return Written(digest.digest(), sorted(rows))


def records(objects: Sequence[GitObject]) -> Iterator[UnpackedObject]:
    """Give objects in the form in which dulwich writes packs to a remote.

    The root trees of one push differ in an entry or two, and each has an entry per package: all but the first travel as
    their difference from it.
    """
    base: GitObject | None = None
    for item in objects:
        delta = _delta(base.data, item.data) if base is not None and item.kind == "tree" else None
        if item.kind == "tree" and delta is None and (base is None or len(item.data) > len(base.data)):
            base = item
        yield UnpackedObject(
            KIND_NUMBERS[item.kind] if delta is None else OFS_DELTA,
            delta_base=None if delta is None or base is None else bytes.fromhex(base.oid),
            decomp_chunks=[item.data if delta is None else delta],
            decomp_len=len(item.data if delta is None else delta),
            sha=bytes.fromhex(item.oid),
        )


def _delta(base: bytes, data: bytes) -> bytes | None:
    """Return the delta if it saves at least half."""
    if min(len(base), len(data)) < WORTH_A_DELTA:
        return None
    delta = b"".join(create_delta(base, data))
    return delta if len(delta) * 2 < len(data) else None
