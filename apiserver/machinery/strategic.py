"""Strategic merge patch, for core kinds: maps merge, lists with a merge key merge item by item.

Directives: ``$patch`` (replace, delete, merge), ``$retainKeys``, ``$deleteFromPrimitiveList/<field>``,
``$setElementOrder/<field>``. Lists without a merge key are replaced. Source: ``kube-api.md`` 2.9.
"""

import copy
from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import orjson

from krm.meta.errors import BadRequest

Json = dict[str, Any]

PRIMITIVE_SET: Final = ""
"""The merge key of a list whose items are themselves their identity (finalizers)."""
OBJECT_META_KEYS: Final[Mapping[str, str]] = {
    "metadata.ownerReferences": "uid",
    "metadata.finalizers": PRIMITIVE_SET,
}
"""Lists of every kind's metadata that merge."""

_PATCH: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_DELETE_ITEMS: Final = "$deleteFromPrimitiveList/"
_ORDER: Final = "$setElementOrder/"


def strategic_merge(target: Json, patch: Json, merge_keys: Mapping[str, str]) -> Json:
    """Return ``target`` with ``patch`` merged in; neither is changed.

    ``merge_keys`` gives the merge key per dotted path of a list; those of ObjectMeta need not be given.

    Raises:
        BadRequest: a directive is unknown or malformed, or an item lacks its merge key.
    """
    return _Merge({**OBJECT_META_KEYS, **merge_keys}).maps(target, patch, "")


class _Merge:
    """One patch being applied; knows which lists merge."""

    def __init__(self, merge_keys: Mapping[str, str]) -> None:
        self._keys = merge_keys

    def maps(self, target: Json, patch: Json, path: str) -> Json:
        directive = patch.get(_PATCH)
        if directive == "replace":
            return self._without_directives(patch, path)
        if directive == "delete":
            return {}
        if directive not in (None, "merge"):
            raise BadRequest(f"unknown $patch directive {directive!r} at {path or 'the root'}")
        merged = self._retained(target, patch, path)
        # Before the lists merge: what the same patch adds stays.
        self._delete_from_lists(merged, patch)
        for name, wanted in patch.items():
            if not name.startswith("$"):
                self._field(merged, name, wanted, f"{path}.{name}" if path else name)
        self._order_lists(merged, patch, target, path)
        return merged

    def _field(self, merged: Json, name: str, wanted: Any, path: str) -> None:
        present = merged.get(name)
        if wanted is None:
            merged.pop(name, None)
        elif isinstance(wanted, dict):
            below = self.maps(present if isinstance(present, dict) else {}, wanted, path)
            if wanted.get(_PATCH) == "delete":
                merged.pop(name, None)
            else:
                merged[name] = below
        elif isinstance(wanted, list):
            merged[name] = self._lists(present if isinstance(present, list) else [], wanted, path)
        else:
            merged[name] = wanted

    def _lists(self, target: list[Any], patch: list[Any], path: str) -> list[Any]:
        key = self._keys.get(path)
        items = [item for item in patch if _directive(item) != "replace"]
        if len(items) < len(patch):
            items = [item for item in items if _directive(item) != "delete"]
        if key is None or any(_directive(item) == "replace" for item in patch):
            return [self._without_directives(i, path) if isinstance(i, dict) else copy.deepcopy(i) for i in items]
        if key == PRIMITIVE_SET:
            return [*target, *(item for item in dict.fromkeys(map(_scalar, items)) if item not in target)]
        return self._keyed(target, items, key, path)

    def _keyed(self, target: list[Any], patch: list[Any], key: str, path: str) -> list[Any]:
        merged = list(target)
        for wanted in patch:
            if not isinstance(wanted, dict) or not isinstance(wanted.get(key), (str, int)):
                raise BadRequest(f"an item of {path} lacks its merge key {key}")
            at = next((i for i, m in enumerate(merged) if isinstance(m, dict) and m.get(key) == wanted[key]), None)
            if wanted.get(_PATCH) == "delete":
                merged = [m for m in merged if not (isinstance(m, dict) and m.get(key) == wanted[key])]
            elif at is None:
                merged.append(self.maps({}, wanted, path))
            else:
                merged[at] = self.maps(merged[at], wanted, path)
        return merged

    def _retained(self, target: Json, patch: Json, path: str) -> Json:
        if _RETAIN not in patch:
            return dict(target)
        kept = _directive_list(patch[_RETAIN], f"{path}.{_RETAIN}")
        stray = [name for name in patch if not name.startswith("$") and name not in kept and patch[name] is not None]
        if stray:
            raise BadRequest(f"fields {stray} of the patch are not in {_RETAIN}")
        return {name: value for name, value in target.items() if name in kept}

    def _delete_from_lists(self, merged: Json, patch: Json) -> None:
        for directive, unwanted in patch.items():
            if not directive.startswith(_DELETE_ITEMS):
                continue
            name = directive.removeprefix(_DELETE_ITEMS)
            gone = _directive_list(unwanted, directive)
            if isinstance(merged.get(name), list):
                merged[name] = [item for item in merged[name] if item not in gone]

    def _order_lists(self, merged: Json, patch: Json, target: Json, path: str) -> None:
        """Order the lists that merged: as a directive says, else as the patch has the items."""
        orders = {name: value for name, value in patch.items() if isinstance(value, list) and not name.startswith("$")}
        for directive, order in patch.items():
            if directive.startswith(_ORDER):
                orders[directive.removeprefix(_ORDER)] = _directive_list(order, directive)
        for name, order in orders.items():
            key = self._keys.get(f"{path}.{name}" if path else name)
            if isinstance(merged.get(name), list) and key is not None:
                live = target.get(name)
                merged[name] = _ordered(merged[name], order, live if isinstance(live, list) else [], key)

    def _without_directives(self, patch: Json, path: str) -> Json:
        return self.maps({}, {name: value for name, value in patch.items() if not name.startswith("$")}, path)


def _directive(item: Any) -> Any:
    return item.get(_PATCH) if isinstance(item, dict) else None


def _scalar(item: Any) -> Any:
    if isinstance(item, (dict, list)):
        raise BadRequest("items of a primitive list must be scalars")
    return item


def _directive_list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise BadRequest(f"{where} must be a list")
    return value


def _identities(items: list[Any], key: str) -> list[bytes]:
    return [orjson.dumps(item.get(key) if key and isinstance(item, dict) else item) for item in items]


def _ordered(items: list[Any], order: list[Any], live: list[Any], key: str) -> list[Any]:
    """Sort listed items as the patch's author wants them; one they did not name stays before what it stood before.

    Source: the order that kube-apiserver gives merged lists, observed (``tests/data/differential/patches.json``).
    """
    ranks = {identity: rank for rank, identity in reversed(list(enumerate(_identities(order, key))))}
    before = {identity: place for place, identity in reversed(list(enumerate(_identities(live, key))))}
    named = list(zip(_identities(items, key), items, strict=True))
    listed = deque(sorted((each for each in named if each[0] in ranks), key=lambda each: ranks[each[0]]))
    others = deque(each for each in named if each[0] not in ranks)
    sorted_items = []
    while listed and others:
        known = others[0][0] in before and listed[0][0] in before
        first = others if known and before[others[0][0]] < before[listed[0][0]] else listed
        sorted_items.append(first.popleft()[1])
    return [*sorted_items, *(item for _, item in others), *(item for _, item in listed)]
