"""Kustomize's resource map holds every identity once. Source: ``kpt.md`` 4.4, last sentence."""

from collections.abc import Iterable

from krm.functions.catalog.resource_ids import ResourceId, current_id
from krm.functions.resource import Resource


class TwinError(ValueError):
    """Two resources have the same identity."""


def refuse_twins(items: Iterable[Resource]) -> None:
    """Make sure that every resource has an identity of its own.

    Raises:
        TwinError: two have the same group, version, kind, namespace and name.
    """
    seen: set[ResourceId] = set()
    for item in items:
        known = current_id(item.data)
        if known in seen:
            raise TwinError(f"may not add resource with an already registered id: {known}")
        seen.add(known)
