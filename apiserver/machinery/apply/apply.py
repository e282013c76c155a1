"""Server-side apply: a configuration merged into the live object, what its manager no longer applies removed.

Pure functions of decoded objects. Source: ``kube-api.md`` 2.10.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from apiserver.machinery.apply import field_set
from apiserver.machinery.apply.compare import compare
from apiserver.machinery.apply.field_set import Fields
from apiserver.machinery.apply.fields_of import fields_of, with_declared
from apiserver.machinery.apply.managers import Manager, Managers
from apiserver.machinery.apply.merge import merge, remove
from apiserver.machinery.apply.typed import Type
from apiserver.machinery.apply.update import bereaved

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """A field that somebody else manages and an apply would change."""

    manager: Manager
    path: tuple[str, ...]


class ApplyConflict(Exception):
    """An apply without force would change fields of others."""

    def __init__(self, conflicts: list[FieldConflict]) -> None:
        super().__init__(f"{len(conflicts)} conflicts")
        self.conflicts = conflicts


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of an apply."""

    obj: Json
    managers: Managers


def apply(
    live: Json, config: Json, managers: Managers, applier: Manager, type_: Type, *, force: bool, allowed: Fields
) -> Applied:
    """Apply a configuration; nothing that is given is changed.

    Repeating it changes nothing. ``force`` takes fields from their managers; without, only those in ``allowed``. The
    applier's entry gets its time only if the object changed.

    Raises:
        ApplyConflict: it would change the values of fields that others manage.
    """
    owned = field_set.ordered(fields_of(config, type_))
    previous = managers.get(applier.identity)
    others = {identity: manager for identity, manager in managers.items() if identity != applier.identity}
    claims = [owned, *(manager.fields for manager in others.values())]
    merged = merge(live, config, type_)
    if previous is not None and field_set.difference(previous.fields, owned):
        merged = _pruned(merged, previous.fields, claims, type_)
    changes = compare(live, merged, type_)
    conflicts = [] if force else list(_conflicts(others, changes.taken))
    if any(not _within(conflict.path, allowed) for conflict in conflicts):
        raise ApplyConflict([conflict for conflict in conflicts if not _within(conflict.path, allowed)])
    found = bereaved(others, changes)
    time = applier.time if merged != live else previous.time if previous else ""
    found[applier.identity] = applier.owning(owned).at(time)
    return Applied(merged, found)


def _conflicts(managers: Managers, taken: Fields) -> Iterator[FieldConflict]:
    for manager in managers.values():
        for path in field_set.leaves(field_set.intersection(manager.fields, taken)):
            yield FieldConflict(manager, path)


def _within(path: tuple[str, ...], fields: Fields) -> bool:
    """Tell whether a path is in a set."""
    at: Fields | None = fields
    for step in path:
        at = at.get(step) if at else None
        if at is None:
            return False
    return at is not None and bool(path) and field_set.owned(at)


def _pruned(merged: Json, previous: Fields, claims: list[Fields], type_: Type) -> Json:
    """Remove what the applier applied the last time and nobody claims now.

    A map or list that it applied goes with all that is in it, but for what somebody claims, and for what nobody ever
    applied: that was set by others before ownership was recorded.
    """
    last = with_declared(previous, type_)
    pruned = remove(merged, last, type_)
    present = with_declared(fields_of(merged, type_), type_)
    claimed: Fields = {}
    for claim in claims:
        claimed = field_set.union(claimed, with_declared(claim, type_))
    left = with_declared(fields_of(pruned, type_), type_)
    pruned = remove(merged, field_set.difference(present, field_set.union(left, claimed)), type_)
    left = with_declared(fields_of(pruned, type_), type_)
    gone = field_set.intersection(field_set.difference(present, left), last)
    return remove(merged, gone, type_)
