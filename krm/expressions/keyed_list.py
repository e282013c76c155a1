"""Lists whose items have identities, as ``x-kubernetes-list-type`` set and map declare: their order does not count."""

from typing import Any


class KeyedList(list[Any]):
    """A list in which no two items have one identity: the values of ``keys``, or, without keys, the item itself."""

    __slots__ = ("keys",)

    def __init__(self, items: list[Any], keys: tuple[str, ...] = ()) -> None:
        super().__init__(items)
        self.keys = keys

    def identity(self, item: Any) -> Any:
        """Return what an item is known by; hashable."""
        if self.keys and isinstance(item, dict):
            return tuple(_frozen(item.get(key)) for key in self.keys)
        return _frozen(item)

    def by_identity(self, items: list[Any]) -> dict[Any, Any]:
        """Return items of this or another list by what they are known by here."""
        return {self.identity(item): item for item in items}

    def joined(self, items: list[Any]) -> "KeyedList":
        """Return the list with further items: known ones take the place of those that were there."""
        return KeyedList(list((self.by_identity(self) | self.by_identity(items)).values()), self.keys)


def _frozen(value: Any) -> Any:
    if isinstance(value, dict):
        return frozenset((key, _frozen(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    return (bool, value) if isinstance(value, bool) else value
