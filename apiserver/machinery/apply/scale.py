"""Who manages the number of replicas, seen from the Scale of an object and from the object.

A Scale has no managers of its own: it shows those of the one field that it stands for. Source: ``kube-api.md`` 2.10
and 2.13.
"""

from collections.abc import Sequence
from typing import Any, Final

from apiserver.machinery.apply import field_set
from apiserver.machinery.apply.field_set import Fields

Json = dict[str, Any]

SCALE_VERSION: Final = "autoscaling/v1"
_REPLICAS: Final[Fields] = {"f:spec": {"f:replicas": {}}}


def scale_entries(entries: Sequence[Json], path: Sequence[str]) -> list[Json]:
    """Return the managedFields of the Scale of an object; ``path`` leads to the object's own number."""
    wanted = _field_at(path)
    managing = [entry for entry in entries if field_set.intersection(entry["fieldsV1"], wanted)]
    return [{**entry, "apiVersion": SCALE_VERSION, "fieldsV1": _REPLICAS} for entry in managing]


def object_entries(entries: Sequence[Json], scale: Sequence[Json], path: Sequence[str], api_version: str) -> list[Json]:
    """Return the managedFields of an object after its Scale got others: who manages the number now, and all else."""
    wanted, managing = _field_at(path), {_who(entry): entry for entry in scale}
    found: list[Json] = []
    for entry in entries:
        manages = bool(field_set.intersection(entry["fieldsV1"], wanted))
        if not manages or _who(entry) in managing:
            found.append(entry)
        elif left := field_set.difference(entry["fieldsV1"], wanted):
            found.append({**entry, "fieldsV1": left})
        if manages:
            managing.pop(_who(entry), None)
    return found + [{**entry, "apiVersion": api_version, "fieldsV1": wanted} for entry in managing.values()]


def _who(entry: Json) -> tuple[str, str, str]:
    return entry.get("manager") or "", entry["operation"], entry.get("subresource") or ""


def _field_at(path: Sequence[str]) -> Fields:
    fields: Fields = {}
    for name in reversed(path):
        fields = {field_set.field(name): fields}
    return fields
