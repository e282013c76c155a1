"""Kustomize's resource map holds every identity once. Source: ``kpt.md`` 4.4, last sentence."""

from collections.abc import Iterable

from krm.functions.resource import Resource
from krm.package.resource_identity import identity_of


class TwinError(ValueError):
    """Two resources have the same identity."""


def refuse_twins(items: Iterable[Resource]) -> None:
    """Make sure that every resource has an identity of its own.

    Raises:
        TwinError: two have the same group, version, kind, namespace and name.
    """
    seen = set()
    for item in items:
        now = identity_of(item.data)
        key = (str(item.data.get("apiVersion")), now.kind, now.namespace, now.name)
        if key in seen:
            name = f"{now.namespace}/{now.name}" if now.namespace else now.name
            raise TwinError(f"may not add resource with an already registered id: {now.kind} {name}")
        seen.add(key)
