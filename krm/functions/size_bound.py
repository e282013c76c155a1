"""A mapping that holds so many bytes and no more: what was used least recently goes first."""

from collections import OrderedDict
from typing import Generic, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

_OVERHEAD = 200
"""Bytes that an entry takes besides its value."""


class SizeBound(Generic[Key, Value]):
    """Remembers values up to a total size; not for several threads at once."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self.size = 0
        """Bytes held now, as far as they were told."""

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Value | None:
        """Return a value, None when it is not (or no longer) there."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: Key, value: Value, size: int) -> None:
        """Remember a value of ``size`` bytes; one that is larger than the whole bound is not kept."""
        self._drop(key)
        size += _OVERHEAD
        if size > self._max_bytes:
            return
        self._entries[key] = value, size
        self.size += size
        while self.size > self._max_bytes:
            self._drop(next(iter(self._entries)))

    def _drop(self, key: Key) -> None:
        _, size = self._entries.pop(key, (None, 0))
        self.size -= size
