"""Objects that deltas build on, remembered between reads; one budget for all packs of the process.

A server with a thousand repositories reads a little of each: a cache per pack would hold a thousand times its budget.
"""

import itertools
import threading
from collections import OrderedDict

ROOM = 4 << 20
"""Bytes held at most."""
_SMALL = 1 << 16
"""Bytes; larger objects are kept only if there is room for ten of them."""

_Place = tuple[int, int]


class DeltaBases:
    """Objects by pack and offset, least recently used out first; safe from many threads."""

    def __init__(self, room: int = ROOM) -> None:
        self._room = room
        self._held = 0
        self._bases: OrderedDict[_Place, tuple[int, bytes]] = OrderedDict()
        self._packs = itertools.count()
        self._lock = threading.Lock()

    def new_pack(self) -> int:
        """Return a number that no other pack has; what is kept under it leaves by age."""
        return next(self._packs)

    def get(self, pack: int, offset: int) -> tuple[int, bytes] | None:
        """Return the type number and bytes of an object, if they are remembered."""
        place = (pack, offset)
        if place not in self._bases:
            return None
        with self._lock:
            found = self._bases.get(place)
            if found is not None:
                self._bases.move_to_end(place)
            return found

    def keep(self, pack: int, offset: int, number: int, data: bytes) -> None:
        """Remember an object that may be the base of the next one."""
        if len(data) > max(_SMALL, self._room // 10):
            return
        place = (pack, offset)
        with self._lock:
            if place not in self._bases:
                self._held += len(data)
                self._bases[place] = (number, data)
            while self._held > self._room:
                self._held -= len(self._bases.popitem(last=False)[1][1])


SHARED = DeltaBases()
"""The process's own."""
