"""The index of one pack (version 2), mapped or, when it is small, read: it says where the object with an id lies.

dulwich's index is read entry by entry from Python. Here the fan-out table narrows an id to its first byte's run and
one byte search in C finds it, which is four times faster and holds no lock.
"""

import mmap
import struct
from collections.abc import Iterator
from pathlib import Path

from storage.git.errors import CorruptObject

_MAGIC = b"\xfftOc\0\0\0\2"
_FANOUT = struct.Struct(">256I")
_OFFSET = struct.Struct(">I")
_LARGE = struct.Struct(">Q")
_NAME = 20
_TAIL = 40
SMALL = 16 << 10
"""Bytes up to which an index is read into memory. A mapping holds an open file, of which a clone in use has one for each pack
already; a thousand clones would use up what a process may open."""


class PackIndex:
    """Ids and offsets of one pack.

    Raises:
        CorruptObject: the file is no sound version 2 index.
    """

    def __init__(self, path: Path) -> None:
        self._map = _contents(path)
        if self._map[:8] != _MAGIC or len(self._map) < 8 + _FANOUT.size + _TAIL:
            raise CorruptObject(f"index {path.name} has an unknown form")
        self._ends = _FANOUT.unpack_from(self._map, 8)
        self.count: int = self._ends[255]
        self._names = 8 + _FANOUT.size
        self._offsets = self._names + self.count * (_NAME + 4)
        self._large = self._offsets + self.count * 4
        if list(self._ends) != sorted(self._ends) or self._large + _TAIL > len(self._map):
            raise CorruptObject(f"index {path.name} is malformed")

    @property
    def pack_checksum(self) -> bytes:
        """The checksum of the pack this is the index of."""
        return self._map[-_TAIL:-_NAME]

    def offset(self, raw: bytes) -> int | None:
        """Return where the object with this raw id lies; None if it is not in the pack."""
        first = raw[0]
        at = self._names + (self._ends[first - 1] if first else 0) * _NAME
        end = self._names + self._ends[first] * _NAME
        while (at := self._map.find(raw, at, end)) >= 0:
            place, skew = divmod(at - self._names, _NAME)
            if skew == 0:
                return self._offset(place)
            at += 1  # the bytes of an id may also straddle two others
        return None

    def entries(self) -> Iterator[tuple[bytes, int]]:
        """Yield (raw id, offset) of every object, in order of id."""
        for place in range(self.count):
            start = self._names + place * _NAME
            yield self._map[start : start + _NAME], self._offset(place)

    def _offset(self, place: int) -> int:
        (offset,) = _OFFSET.unpack_from(self._map, self._offsets + place * 4)
        if offset & 0x80000000:
            where = self._large + (offset & 0x7FFFFFFF) * 8
            if where + 8 > len(self._map) - _TAIL:
                raise CorruptObject("an index points outside itself")
            (offset,) = _LARGE.unpack_from(self._map, where)
        return int(offset)


def _contents(path: Path) -> bytes | mmap.mmap:
    with path.open("rb") as file:
        start = file.read(SMALL + 1)
        if len(start) <= SMALL:
            return start
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
