"""Packs on disk: read objects of one pack, and write the index of a received pack.

dulwich supplies delta application and index writing; the walk over entries is ours because every size
a pack declares must be checked before memory is spent on it, and because many threads read one pack.
"""

import hashlib
import mmap
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from dulwich.pack import apply_delta, write_pack_index_v2

from storage.git.delta_bases import SHARED, DeltaBases
from storage.git.errors import CorruptObject, LimitExceeded
from storage.git.objects import Kind
from storage.git.packindex import PackIndex

OFS_DELTA = 6
REF_DELTA = 7
KINDS: dict[int, Kind] = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
KIND_NUMBERS: dict[Kind, int] = {kind: number for number, kind in KINDS.items()}

_HEADER = 12
_TRAILER = 20
_MEMORY = 2
"""Delta bases held at once while indexing, in units of the largest object allowed."""


@dataclass(frozen=True, slots=True)
class PackLimits:
    """Bounds of received data: bytes of a pack, bytes of one inflated object, links of a delta chain, objects."""

    pack: int = 2 << 30
    object: int = 256 << 20
    depth: int = 4095
    objects: int = 20_000_000


class Entry(NamedTuple):
    """One entry of a pack: type number, inflated bytes, its delta base (offset or raw id), where it ends."""

    number: int
    data: bytes
    base: int | bytes | None
    end: int


class PackFile:
    """One pack and its index, mapped; reads are safe from many threads."""

    def __init__(self, base: Path, limits: PackLimits, bases: DeltaBases = SHARED) -> None:
        self.base = base
        self.size = base.with_suffix(".pack").stat().st_size
        self._limits = limits
        self._map = _mapped(base.with_suffix(".pack"))
        self._index = PackIndex(base.with_suffix(".idx"))
        self._bases = bases
        self._number = bases.new_pack()
        if self._index.pack_checksum != self._map[-_TRAILER:]:
            raise CorruptObject(f"pack {base.name} and its index do not belong together")
        self.count = self._index.count
        self.offset = self._index.offset
        """Returns where the object with a raw id lies; None if it is not in this pack."""

    def read_at(self, offset: int) -> tuple[Kind, bytes]:
        """Return kind and bytes of the object at an offset, deltas resolved.

        Raises:
            CorruptObject: the pack is broken there.
            LimitExceeded: an object or a delta chain is over its bound.
        """
        deltas: list[tuple[int, bytes]] = []
        while True:
            held = self._bases.get(self._number, offset)
            if held is not None:
                number, data = held
                break
            entry = read_entry(self._map, offset, self._limits)
            if entry.base is None:
                number, data = entry.number, entry.data
                if deltas:
                    self._bases.keep(self._number, offset, number, data)
                break
            deltas.append((offset, entry.data))
            if len(deltas) > self._limits.depth:
                raise LimitExceeded(f"a delta chain is longer than {self._limits.depth}")
            base = self.offset(entry.base) if isinstance(entry.base, bytes) else entry.base
            if base is None or base == offset:
                raise CorruptObject("a delta has no base")
            offset = base
        for place, delta in reversed(deltas):
            data = patched(data, delta, self._limits)
            self._bases.keep(self._number, place, number, data)
        return KINDS[number], data

    def ids(self) -> Iterator[tuple[bytes, int]]:
        """Yield (raw id, offset) of every object."""
        return self._index.entries()


def read_entry(buffer: mmap.mmap, offset: int, limits: PackLimits) -> Entry:
    """Read the entry at an offset without resolving its delta.

    Raises:
        CorruptObject: it is broken.
        LimitExceeded: it declares more bytes than allowed.
    """
    end = len(buffer) - _TRAILER
    try:
        byte = buffer[offset]
        number, size, shift, at = (byte >> 4) & 7, byte & 15, 4, offset + 1
        while byte & 0x80:
            byte = buffer[at]
            size |= (byte & 0x7F) << shift
            shift += 7
            at += 1
        if size > limits.object:
            raise LimitExceeded(f"an object of {size} bytes is over the limit of {limits.object}")
        base: int | bytes | None = None
        if number == OFS_DELTA:
            base, at = _base_offset(buffer, offset, at)
        elif number == REF_DELTA:
            base, at = buffer[at : at + _TRAILER], at + _TRAILER
        elif number not in KINDS:
            raise CorruptObject(f"a pack entry has the unknown type {number}")
    except IndexError as error:
        raise CorruptObject("a pack ends in the middle of an entry") from error
    data, stop = _inflate(buffer, at, size, end)
    return Entry(number, data, base, stop)


def patched(base: bytes, delta: bytes, limits: PackLimits) -> bytes:
    """Apply a delta after checking the size it promises.

    Raises:
        CorruptObject: the delta does not fit its base.
        LimitExceeded: the result would be over the limit.
    """
    if _promised(delta) > limits.object:
        raise LimitExceeded(f"a delta builds an object over the limit of {limits.object} bytes")
    try:
        return b"".join(apply_delta(base, delta))
    except Exception as error:
        raise CorruptObject("a delta does not fit its base") from error


def index_pack(path: Path, limits: PackLimits) -> None:
    """Check the pack at ``path`` completely and write its index beside it.

    Raises:
        CorruptObject: checksum, entries or deltas are broken, or a base is missing.
        LimitExceeded: an object, a chain or the number of objects is over its bound.
    """
    buffer = _mapped(path)
    try:
        if len(buffer) < _HEADER + _TRAILER or buffer[:4] != b"PACK" or buffer[4:8] not in (b"\0\0\0\2", b"\0\0\0\3"):
            raise CorruptObject("what the remote sent is no pack")
        body = memoryview(buffer)[:-_TRAILER]
        checksum = hashlib.sha1(body, usedforsecurity=False).digest()
        body.release()
        if checksum != buffer[-_TRAILER:]:
            raise CorruptObject("a pack's checksum is wrong")
        rows = _Indexing(buffer, limits).rows()
        rows.sort()
        with path.with_suffix(".idx").open("wb") as file:
            write_pack_index_v2(file, rows, checksum)
            file.flush()
            os.fsync(file.fileno())
    finally:
        buffer.close()


class _Indexing:
    """One pass over the entries, then the deltas from their bases outwards."""

    def __init__(self, buffer: mmap.mmap, limits: PackLimits) -> None:
        self._buffer = buffer
        self._limits = limits
        self._rows: list[tuple[bytes, int, int | None]] = []
        self._roots: list[tuple[int, int]] = []
        self._waiting: dict[int | bytes, list[int]] = {}
        self._crcs: dict[int, int] = {}

    def rows(self) -> list[tuple[bytes, int, int | None]]:
        """Return (raw id, offset, CRC-32) of every object."""
        count = int.from_bytes(self._buffer[8:12], "big")
        if count > self._limits.objects:
            raise LimitExceeded(f"a pack of {count} objects is over the limit of {self._limits.objects}")
        offset = _HEADER
        plain: dict[int, bytes] = {}
        for _ in range(count):
            entry = read_entry(self._buffer, offset, self._limits)
            self._crcs[offset] = zlib.crc32(self._buffer[offset : entry.end])
            if entry.base is None:
                plain[offset] = self._add(offset, entry.number, entry.data)
                self._roots.append((offset, entry.number))
            else:
                self._waiting.setdefault(entry.base, []).append(offset)
            offset = entry.end
        if offset != len(self._buffer) - _TRAILER:
            raise CorruptObject("a pack has bytes after its last entry")
        for place, number in self._roots:
            if place in self._waiting or plain[place] in self._waiting:
                self._resolve(place, number, plain[place])
        if self._waiting:
            raise CorruptObject(f"{len(self._waiting)} deltas of a pack have no base")
        return self._rows

    def _add(self, offset: int, number: int, data: bytes) -> bytes:
        digest = hashlib.sha1(b"%s %d\0" % (KINDS[number].encode(), len(data)), usedforsecurity=False)
        digest.update(data)
        raw = digest.digest()
        self._rows.append((raw, offset, self._crcs[offset]))
        return raw

    def _resolve(self, root: int, number: int, raw: bytes) -> None:
        """Resolve every delta above one plain object, depth first, holding one chain's bases only."""
        data = read_entry(self._buffer, root, self._limits).data
        stack = [(data, self._children(root, raw), 0)]
        held = len(data)
        while stack:
            base, children, depth = stack[-1]
            child = children.pop() if children else None
            if not children:
                # The last child needs its base only once more; a long chain so holds one object at a time.
                stack.pop()
                held -= len(base)
            if child is None:
                continue
            made = patched(base, read_entry(self._buffer, child, self._limits).data, self._limits)
            stack.append((made, self._children(child, self._add(child, number, made)), depth + 1))
            held += len(made)
            if depth >= self._limits.depth or held > _MEMORY * self._limits.object:
                raise LimitExceeded("the deltas of a pack are chained or branch too deeply")

    def _children(self, offset: int, raw: bytes) -> list[int]:
        return self._waiting.pop(offset, []) + self._waiting.pop(raw, [])


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        try:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError as error:
            raise CorruptObject(f"{path.name} is empty") from error


def _base_offset(buffer: mmap.mmap, offset: int, at: int) -> tuple[int, int]:
    byte = buffer[at]
    at += 1
    distance = byte & 0x7F
    while byte & 0x80:
        byte = buffer[at]
        at += 1
        distance = ((distance + 1) << 7) | (byte & 0x7F)
    if not 0 < distance <= offset - _HEADER:
        raise CorruptObject("a delta points outside its pack")
    return offset - distance, at


def _inflate(buffer: mmap.mmap, at: int, size: int, end: int) -> tuple[bytes, int]:
    """Inflate exactly ``size`` bytes; returns them and where their stream stops."""
    engine = zlib.decompressobj()
    window = min(size + (size >> 8) + 64, 1 << 20)
    room = size + 1  # one more, to notice a stream that is longer than it says
    if window < 1 << 16:
        # Nearly every object: one call, nothing left over.
        piece = buffer[at : at + window]
        try:
            data = engine.decompress(piece, room)
        except zlib.error as error:
            raise CorruptObject("an object does not inflate") from error
        if engine.eof and len(data) == size:
            return data, at + len(piece) - len(engine.unused_data)
        engine = zlib.decompressobj()
    parts: list[bytes] = []
    position = at
    pending = b""
    try:
        while not engine.eof:
            if not pending:
                if position >= end:
                    raise CorruptObject("a pack ends in the middle of an object")
                pending = buffer[position : min(position + window, end)]
                position += len(pending)
            part = engine.decompress(pending, room)
            room -= len(part)
            parts.append(part)
            pending = engine.unconsumed_tail
            if room <= 0:
                raise CorruptObject("an object is longer than it says")
    except zlib.error as error:
        raise CorruptObject("an object does not inflate") from error
    if room != 1:
        raise CorruptObject("an object is shorter than it says")
    return b"".join(parts) if len(parts) > 1 else parts[0], position - len(engine.unused_data)


def _promised(delta: bytes) -> int:
    """Return the result size that stands second in a delta's head."""
    at = 0
    while at < len(delta) and delta[at] & 0x80:
        at += 1
    at, size, shift = at + 1, 0, 0
    while at < len(delta) and shift < 64:  # noqa: PLR2004 -- more bits than any size has
        size |= (delta[at] & 0x7F) << shift
        shift += 7
        if not delta[at] & 0x80:
            break
        at += 1
    return size
