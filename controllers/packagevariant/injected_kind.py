"""One kind of object in one namespace that packages take configuration from: who reads it, and what is kept of it.

Of an object that some variant's selector names, the copied field is kept; of all others the name, which tells that there are
objects of the kind.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from controllers.runtime.kind_watches import Key, WatchedKind
from controllers.runtime.served_kinds import ObjectType
from krm.variants.injection import field_of
from krm.variants.mutation import Listing

Json = dict[str, Any]

UNASKED: Final = b""
"""Text of an object that no selector names."""


@dataclass(frozen=True, slots=True)
class Injectable:
    """An object that can be injected."""

    namespace: str
    name: str
    resource_version: str
    text: bytes
    """JSON of its identity and the field that is copied; empty where nobody asks for it."""

    @classmethod
    def of(cls, body: Json, type_: ObjectType, *, asked: bool) -> "Injectable":
        """Read an object as it is on the wire; objects in lists may lack apiVersion and kind."""
        meta = body["metadata"]
        namespace, name = meta.get("namespace", ""), meta["name"]
        kept: Json = {"apiVersion": type_[0], "kind": type_[1], "metadata": {"namespace": namespace, "name": name}}
        copied = field_of(*type_)
        if copied in body:
            kept[copied] = body[copied]
        return cls(namespace, name, meta.get("resourceVersion", ""), orjson.dumps(kept) if asked else UNASKED)


@dataclass(slots=True, eq=False)
class InjectedKind(WatchedKind):
    """The objects of one kind in one namespace, and which variants were told of them."""

    told: set[Key] = field(default_factory=set)
    """Those who asked and have been told what there is, and have to hear of changes."""
    fetched: dict[str, Injectable] = field(default_factory=dict)
    """Objects that somebody asked for only after they had been listed; an event of one takes its place."""

    def left(self, key: Key) -> None:
        """Take that a variant no longer has an injection point of the kind."""
        WatchedKind.left(self, key)  # slots make the class anew, which the short form of super() does not know
        self.told.discard(key)

    def known(self, name: str) -> Injectable | None:
        """Return an object by name."""
        one = self.informer.get(self.namespace, name) if self.informer else None
        return one if one is None or one.text else self.fetched.get(name, one)

    def changed(self, old: Injectable | None, new: Injectable | None) -> bool:
        """Take an event; tell whether it changed what a variant that selects the object is told."""
        fetched = self.fetched.pop((new or old).name, old)  # type: ignore[union-attr]  # one of the two is there
        if old is None or new is None:
            return True
        return (old if old.text or fetched is None else fetched).text != new.text

    def listing(self, names: Iterable[str]) -> Listing:
        """Return the objects of these names; where there are only others, one of them stands for all."""
        if self.refusal or self.informer is None:
            return Listing(error=self.refusal)
        found = {name: orjson.loads(one.text) for name in names if (one := self.known(name)) and one.text}
        other = next(iter(self.informer.values()), None)
        if found or other is None:
            return Listing(objects=found)
        return Listing(objects={other.name: {"metadata": {"namespace": self.namespace, "name": other.name}}})

    def reading(self, names: Iterable[str]) -> tuple[object, ...]:
        """Return what a variant reads of the kind: equal as long as it would be told the same."""
        if self.informer is None:
            return self.type, self.refusal
        found = tuple((name, one.text) for name in sorted(names) if (one := self.known(name)))
        return self.type, found, bool(found) or not self.is_empty

    @property
    def is_empty(self) -> bool:
        """Whether there is no object of the kind."""
        return self.informer is None or not len(self.informer)

    def first_or_last(self, old: Injectable | None, new: Injectable | None) -> bool:
        """Tell whether an event made the first object of the kind, or took the last one."""
        if self.informer is None or (old is None) == (new is None):
            return False
        return len(self.informer) == (1 if new else 0)

    def close(self) -> None:
        """Stop to watch; what was kept is dropped."""
        WatchedKind.close(self)
        self.fetched.clear()
