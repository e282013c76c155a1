"""Namespaces: like other stored objects, but deletion only marks them until everything in them is gone.

``spec.finalizers`` holds a namespace beside ``metadata.finalizers``; ``NamespaceDeletion`` in
``namespace_deletion.py`` empties it and then lets go. Source: ``kube-api.md`` 2.13 and 2.14.
"""

import copy
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from apiserver.machinery.apply.ownership import Ownership
from apiserver.machinery.rest import Change, DeleteOptions, Scope, WriteOptions
from apiserver.resources.core import (
    NAME_LABEL,
    NAMESPACE_FINALIZER,
    namespace_definition,
    spec_finalizer_problems,
)
from apiserver.resources.objects import StoredObjects
from apiserver.resources.writing import check_revision, has_finalizers, is_terminating
from krm.meta.conditions import timestamp
from krm.meta.errors import Conflict, Forbidden, Invalid, NotFound
from storage.bodies import decode, encode_body, with_revision
from storage.interfaces import Entry, Mutation, ObjectKey, ObjectStore, Op, StaleWrite

Json = dict[str, Any]

RESOURCE: Final = "namespaces"
PROTECTED: Final = ("default", "kube-system", "kube-public")
"""Created at start and never deleted."""
MAX_ATTEMPTS: Final = 20
"""Tries of a change that other writers keep overtaking, before the client is told to try again."""


class Namespaces(StoredObjects):
    """The ``namespaces`` resource."""

    def __init__(self, store: ObjectStore) -> None:
        super().__init__(namespace_definition(), store, held=is_held, marked=_mark_phase)

    async def delete(self, scope: Scope, name: str, options: DeleteOptions) -> tuple[Entry, bool]:
        """Mark the namespace Terminating; it is gone only later.

        Raises:
            Forbidden: it is one of ``PROTECTED``.
            Conflict: a precondition does not hold.
            NotFound: there is none of this name.
        """
        if name in PROTECTED:
            raise Forbidden.of(self.definition.resource, name, "this namespace may not be deleted")
        return await super().delete(scope, name, options)


class NamespaceFinalize:
    """The ``finalize`` subresource: replaces ``spec.finalizers``, and removes a namespace that nothing holds."""

    def __init__(self, store: ObjectStore) -> None:
        self.definition = replace(namespace_definition(), patchable=False)
        self._store = store

    async def update(self, scope: Scope, name: str, change: Change, options: WriteOptions) -> tuple[Entry, bool]:
        """Take ``spec.finalizers`` from the changed object and nothing else.

        Raises:
            Conflict: the change is for another revision, or for another namespace of this name.
            Invalid: a finalizer's name is none.
            NotFound: there is no such namespace.
        """

        def finalized(namespace: Json) -> Json | None:
            wanted = change(copy.deepcopy(namespace))
            check_revision(self.definition, namespace, wanted)
            if causes := list(spec_finalizer_problems(wanted, numbered=True)):
                raise Invalid.of(self.definition.kind, "", name, causes)
            finalizers = (wanted.get("spec") or {}).get("finalizers") or []
            return {**namespace, "spec": {"finalizers": finalizers} if finalizers else {}}

        entry = await change_namespace(self._store, name, finalized, dry_run=options.dry_run, actor=scope.user.name)
        if entry is None:
            raise NotFound.of(self.definition.resource, name)
        return entry, False


async def create_protected_namespaces(store: ObjectStore, *names: str) -> None:
    """Create the namespaces that always exist, and ``names``; those that are there stay as they are."""
    ownership = Ownership(namespace_definition())
    for name in (*PROTECTED, *names):
        key = ObjectKey(RESOURCE, "", name)
        if store.get(key) is not None:
            continue
        namespace = new_namespace(name)
        ownership.created(namespace, WriteOptions(field_manager="kube-apiserver"))
        uid = namespace["metadata"]["uid"]
        try:
            await store.write([Mutation(key, Op.CREATE, 0, uid, encode_body(namespace), actor="system:apiserver")])
        except StaleWrite:
            # Another replica was first.
            continue


def new_namespace(name: str) -> Json:
    """Return a fresh Active namespace."""
    metadata = {
        "name": name,
        "uid": str(uuid.uuid4()),
        "creationTimestamp": timestamp(),
        "labels": {NAME_LABEL: name},
    }
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": metadata,
        "spec": {"finalizers": [NAMESPACE_FINALIZER]},
        "status": {"phase": "Active"},
    }


def is_held(namespace: Json) -> bool:
    """Tell whether finalizers, those of the contents included, keep the namespace."""
    return bool((namespace.get("spec") or {}).get("finalizers")) or has_finalizers(namespace)


async def change_namespace(
    store: ObjectStore,
    name: str,
    change: Callable[[Json], Json | None],
    *,
    actor: str,
    dry_run: bool = False,
) -> Entry | None:
    """Apply ``change`` to the stored namespace until no other writer comes between; None leaves it as it is.

    A Terminating namespace that no finalizer holds any more is removed. Returns the namespace as it is
    now, or as it was last when that removed it; None when there is none.

    Raises:
        Conflict: other writers kept coming between.
    """
    key = ObjectKey(RESOURCE, "", name)
    for _ in range(MAX_ATTEMPTS):
        entry = await store.get_fresh(key)
        if entry is None:
            return None
        present = decode(entry)
        wanted = change(copy.deepcopy(present))
        if wanted is None or wanted == present:
            return entry
        op = Op.DELETE if is_terminating(wanted) and not is_held(wanted) else Op.UPDATE
        body = encode_body(wanted)
        if dry_run:
            return Entry(
                key, entry.rv, entry.create_rv, entry.uid, with_revision(body, entry.rv), entry.labels, entry.fields
            )
        try:
            return (await store.write([Mutation(key, op, entry.rv, entry.uid, body, actor=actor)]))[0]
        except StaleWrite:
            continue
    raise Conflict.of(namespace_definition().resource, name)


def _mark_phase(namespace: Json) -> None:
    namespace["metadata"].pop("deletionGracePeriodSeconds", None)
    namespace["status"] = {**(namespace.get("status") or {}), "phase": "Terminating"}
