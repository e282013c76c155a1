"""Who manages what after a write other than apply: a create, an update, a patch. Source: ``kube-api.md`` 2.10."""

from typing import Any

from apiserver.machinery.apply import field_set
from apiserver.machinery.apply.compare import Comparison, compare
from apiserver.machinery.apply.managers import Manager, Managers, capped
from apiserver.machinery.apply.typed import Type

Json = dict[str, Any]


def updated(old: Json, new: Json, managers: Managers, writer: Manager, type_: Type) -> Managers:
    """Return the managers after ``writer`` made ``new`` of ``old``.

    What it added or changed is its own, and nobody else's; what it removed is nobody's. Its entry gets its time only
    if it changed something. The oldest of too many updaters are put together.
    """
    changes = compare(old, new, type_)
    found = bereaved(managers, changes)
    taken = changes.taken
    if taken:
        present = found.get(writer.identity)
        fields = taken if present is None else field_set.union(present.fields, taken)
        found[writer.identity] = writer.owning(field_set.ordered(fields))
    return capped(found)


def bereaved(managers: Managers, changes: Comparison) -> Managers:
    """Return the managers without the paths that somebody else now gave a value to, or removed."""
    lost = field_set.union(changes.taken, changes.removed)
    if not lost:
        return dict(managers)
    found: Managers = {}
    for identity, manager in managers.items():
        left = field_set.difference(manager.fields, lost)
        if left:
            found[identity] = manager.owning(left)
    return found
