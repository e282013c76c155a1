"""Roles and bindings as stored kinds whose writes must not give away more than their author has.

Source: ``kube-api.md`` 3.6 (escalation check).
"""

import copy
from collections.abc import Callable
from typing import Any

from apiserver.auth.escalation import EscalationCheck
from apiserver.machinery.definition import Definition, Json
from apiserver.machinery.rest import Change, Scope, User, WriteOptions
from apiserver.resources.objects import NamespaceCheck, StoredObjects
from apiserver.resources.rbac.kinds import (
    cluster_role_binding_definition,
    cluster_role_definition,
    role_binding_definition,
    role_definition,
)
from storage.interfaces import Entry, ObjectStore

Check = Callable[[User, Json, str], None]
"""(author, object, its namespace or "") → nothing, or raises Forbidden or NotFound."""

_COLLECTOR_FIELDS = ("finalizers", "ownerReferences", "managedFields", "resourceVersion")
"""Metadata that the garbage collector must be able to change whatever rights it has."""


class GuardedObjects(StoredObjects):
    """All verbs of one stored kind; ``check`` is asked about every object that a create or an update would store."""

    def __init__(
        self, definition: Definition, store: ObjectStore, check: Check, namespace_check: NamespaceCheck | None = None
    ) -> None:
        super().__init__(definition, store, namespace_check=namespace_check)
        self._check = check

    async def create(self, scope: Scope, wanted: Json, options: WriteOptions) -> Entry:
        self._check(scope.user, wanted, scope.namespace or "")
        return await super().create(scope, wanted, options)

    async def update(self, scope: Scope, name: str, change: Change, options: WriteOptions) -> tuple[Entry, bool]:
        def checked(current: Json) -> Json:
            # A change may work in place; what is compared must be what was there.
            before = copy.deepcopy(current)
            wanted = change(current)
            # A missing object is created, and create checks by itself.
            if before and not _is_for_the_collector(before, wanted):
                self._check(scope.user, wanted, scope.namespace or "")
            return wanted

        return await super().update(scope, name, checked, options)


def guarded_kinds(store: ObjectStore, check: EscalationCheck, namespace_check: NamespaceCheck) -> list[GuardedObjects]:
    """Return the four kinds: ClusterRole, Role, ClusterRoleBinding, RoleBinding."""
    return [
        GuardedObjects(cluster_role_definition(), store, check.check_role),
        GuardedObjects(role_definition(), store, check.check_role, namespace_check),
        GuardedObjects(cluster_role_binding_definition(), store, check.check_binding),
        GuardedObjects(role_binding_definition(), store, check.check_binding, namespace_check),
    ]


def _is_for_the_collector(current: Json, wanted: Json) -> bool:
    """Tell whether a change touches nothing but finalizers and owners."""
    return _without_collector_fields(current) == _without_collector_fields(wanted)


def _without_collector_fields(obj: Json) -> dict[str, Any]:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _COLLECTOR_FIELDS}
    return {**obj, "metadata": metadata}
