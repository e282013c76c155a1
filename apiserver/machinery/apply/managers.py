"""The managers of an object's fields, as ``metadata.managedFields`` lists them. Source: ``kube-api.md`` 2.10."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from apiserver.machinery.apply import field_set
from apiserver.machinery.apply.field_set import Fields, FieldsError

Json = dict[str, Any]
Identity = tuple[str, str, str, str]
"""Manager, operation, apiVersion (of updates only) and subresource: what tells one entry from another."""

APPLY: Final = "Apply"
UPDATE: Final = "Update"
MAX_UPDATERS: Final = 10
"""Entries of operation Update; the oldest beyond are put together."""
ANCIENT: Final = "ancient-changes"
"""Who manages what the oldest of too many updaters did."""
MAX_ENTRIES: Final = 1000
"""Entries that a client may send; hundreds of appliers of one object are a mistake."""

_FIELDS_TYPE: Final = "FieldsV1"


@dataclass(frozen=True, slots=True)
class Manager:
    """One entry: who, how, when, and which fields."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""
    time: str = ""
    """When it last changed something (RFC 3339, UTC seconds); "": never."""
    fields: Fields = field(default_factory=dict)

    @property
    def identity(self) -> Identity:
        """What tells it from others; an applier is the same one in every version."""
        version = self.api_version if self.operation == UPDATE else ""
        return (self.name, self.operation, version, self.subresource)

    def owning(self, fields: Fields) -> "Manager":
        """Return it with other fields."""
        return Manager(self.name, self.operation, self.api_version, self.subresource, self.time, fields)

    def at(self, time: str) -> "Manager":
        """Return it with another time."""
        return Manager(self.name, self.operation, self.api_version, self.subresource, time, self.fields)

    def to_json(self) -> Json:
        """Return the entry."""
        entry: Json = {"manager": self.name, "operation": self.operation, "apiVersion": self.api_version}
        if not self.name:
            del entry["manager"]
        if self.time:
            entry["time"] = self.time
        entry |= {"fieldsType": _FIELDS_TYPE, "fieldsV1": self.fields}
        if self.subresource:
            entry["subresource"] = self.subresource
        return entry


Managers = dict[Identity, Manager]


class ManagersError(ValueError):
    """Not a list of managedFields entries."""


def stored_managers(entries: Iterable[Json]) -> Managers:
    """Return the managers of a stored object, whose entries this server wrote."""
    return _by_identity(_manager(entry, entry.get("fieldsV1") or {}) for entry in entries)


def given_managers(entries: Any) -> Managers:
    """Return the managers that a client lists.

    Raises:
        ManagersError: an entry is not of the form that clients are shown.
    """
    if not isinstance(entries, list) or len(entries) > MAX_ENTRIES:
        raise ManagersError(f"metadata.managedFields must be a list of at most {MAX_ENTRIES} entries")
    return _by_identity(_checked(entry) for entry in entries)


def is_reset(entries: Any) -> bool:
    """Tell whether a client asks for the managers of all fields to be forgotten."""
    return entries in ([], [{}])


def _checked(entry: Any) -> Manager:
    if not isinstance(entry, dict):
        raise ManagersError("an entry of metadata.managedFields must be an object")
    if entry.get("operation") not in (APPLY, UPDATE):
        raise ManagersError("the operation of a managedFields entry must be Apply or Update")
    if entry.get("fieldsType") != _FIELDS_TYPE:
        raise ManagersError("the fieldsType of a managedFields entry must be FieldsV1")
    texts = [entry.get(name) or "" for name in ("manager", "apiVersion", "time", "subresource")]
    if not all(isinstance(text, str) for text in texts) or not entry.get("apiVersion"):
        raise ManagersError("a managedFields entry needs an apiVersion, and names its manager, time and subresource")
    try:
        return _manager(entry, field_set.checked(entry.get("fieldsV1") or {}))
    except FieldsError as error:
        raise ManagersError(f"fieldsV1 of manager {texts[0]!r}: {error}") from error


def _manager(entry: Json, fields: Fields) -> Manager:
    return Manager(
        entry.get("manager") or "",
        entry["operation"],
        entry["apiVersion"],
        entry.get("subresource") or "",
        entry.get("time") or "",
        fields,
    )


def _by_identity(managers: Iterable[Manager]) -> Managers:
    return {manager.identity: manager for manager in managers}


def entries_of(managers: Managers) -> list[Json]:
    """Return the entries to store: appliers first, then by time and name; managers of nothing are left out."""
    kept = [manager for manager in managers.values() if manager.fields]
    kept.sort(key=lambda m: (m.operation, m.time, m.name, m.api_version, m.subresource))
    return [manager.to_json() for manager in kept]


def same_but_times(left: list[Json], right: list[Json]) -> bool:
    """Tell whether two lists of entries say the same, whenever it was."""
    return len(left) == len(right) and stored_managers(_timeless(left)) == stored_managers(_timeless(right))


def _timeless(entries: list[Json]) -> Iterable[Json]:
    return ({**entry, "time": ""} for entry in entries)


def capped(managers: Managers) -> Managers:
    """Return the managers with the oldest updaters put together, as far as there are too many; one for each version."""
    updaters = [manager for manager in managers.values() if manager.operation == UPDATE]
    if len(updaters) <= MAX_UPDATERS:
        return managers
    updaters.sort(key=lambda m: (m.time, m.name, m.api_version, m.subresource))
    found, left = dict(managers), len(updaters)
    first: dict[str, Manager] = {}
    for manager in updaters:
        if left <= MAX_UPDATERS:
            break
        version = manager.api_version
        if version not in first:
            first[version] = manager
            continue
        bucket = Manager(ANCIENT, UPDATE, version)
        present = found.get(bucket.identity)
        if present is None:
            present = found.pop(first[version].identity)
        elif manager.identity == bucket.identity:
            continue
        found.pop(manager.identity)
        found[bucket.identity] = bucket.at(manager.time).owning(field_set.union(manager.fields, present.fields))
        left -= 1
    return found
