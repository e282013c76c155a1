"""``packagerevisions`` and ``packagerevisions/approval``: reads from the watch cache, writes through the engine.

Source: ``porch-api.md`` 1.2 to 4.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from apiserver.engine.recording import REVISIONS
from apiserver.engine.service import PackageService
from apiserver.machinery.apply.managers import APPLY
from apiserver.machinery.apply.ownership import Ownership
from apiserver.machinery.rest import (
    Change,
    DeleteOptions,
    GetOptions,
    Item,
    ItemList,
    ItemWatch,
    ListOptions,
    Scope,
    WatchOptions,
    WriteOptions,
)
from apiserver.resources.objects import NamespaceCheck
from apiserver.resources.porch import package_revision_definition
from apiserver.resources.reading import item_or_404, list_entries, open_watch, storage_errors
from apiserver.resources.revision_metadata import check_metadata, checked, warn_of_finalizers
from apiserver.resources.revision_ownership import recorded, without_bypass
from apiserver.resources.revision_selectors import select_revisions
from apiserver.resources.writing import check_preconditions, collector_finalizers
from apiserver.rules.gate_bypass import VERB, take_bypass
from apiserver.rules.lifecycle import Door
from apiserver.rules.revision_changes import CLIENT_METADATA
from krm.api.revision_name import RevisionName
from krm.meta.errors import BadRequest, NotFound
from storage.bodies import decode
from storage.interfaces import Entry, ObjectStore

Json = dict[str, Any]


def namespace_of(scope: Scope) -> str:
    """Return the namespace of a request for a namespaced object; the routes guarantee that there is one."""
    assert scope.namespace is not None  # noqa: S101  (an invariant of the routes, not a check of input)
    return scope.namespace


async def _may_bypass(options: WriteOptions) -> bool:
    """Tell whether the author of a change may leave unmet gates behind (``decisions.md`` 14)."""
    return options.may is not None and await options.may(VERB)


class PackageRevisions:
    """The main resource."""

    def __init__(self, store: ObjectStore, service: PackageService, namespace_check: NamespaceCheck) -> None:
        self.definition = package_revision_definition()
        self._store = store
        self._service = service
        self._namespace_check = namespace_check
        self._ownership = Ownership(self.definition)

    async def get(self, scope: Scope, name: str, options: GetOptions) -> Item:
        """Return the stored revision."""
        return await item_or_404(self._store, self.definition, scope, name, options)

    async def list(self, scope: Scope, options: ListOptions) -> ItemList:
        """List revisions from the watch cache."""
        return await list_entries(self._store, self.definition, scope, options, select_revisions)

    async def watch(self, scope: Scope, options: WatchOptions) -> ItemWatch:
        """Watch revisions, exactly from the revision asked for."""
        return await open_watch(self._store, self.definition, scope, options, select_revisions)

    async def create(self, scope: Scope, wanted: Json, options: WriteOptions) -> Item:
        """Create a draft; the name is composed, whatever the client sent."""
        namespace = namespace_of(scope)
        with storage_errors(self.definition, "create"):
            await self._namespace_check(self.definition, namespace, (wanted.get("metadata") or {}).get("name") or "")
        take_bypass(wanted)
        check_metadata(self.definition, wanted, (wanted.get("metadata") or {}).get("name") or "", options)
        warn_of_finalizers(self.definition, wanted, options)
        owned = wanted.get("metadata") or {}  # of the rest nothing is kept, so nobody manages it
        wanted["metadata"] = {key: owned[key] for key in CLIENT_METADATA if key in owned}
        self._ownership.created(wanted, options)
        if managers := without_bypass(wanted["metadata"].get("managedFields")):
            wanted["metadata"]["managedFields"] = managers
        return await self._service.create(
            namespace, wanted, scope.user.name, dry_run=options.dry_run, warn=options.warnings.append
        )

    async def update(self, scope: Scope, name: str, change: Change, options: WriteOptions) -> tuple[Item, bool]:
        """Change metadata, package metadata, gates, conditions, or the lifecycle; an apply may create a draft."""
        change = checked(change, self.definition, name, options)
        record = recorded(change, self._ownership, options, Door.MAIN)
        try:
            entry = await self._service.update(
                namespace_of(scope),
                name,
                record,
                scope.user.name,
                Door.MAIN,
                dry_run=options.dry_run,
                may_bypass=partial(_may_bypass, options),
                warn=options.warnings.append,
            )
        except NotFound as error:
            if options.operation != APPLY or error.kind != REVISIONS.resource:
                raise
            return await self._create_applied(scope, name, change, options), True
        return entry, False

    async def _create_applied(self, scope: Scope, name: str, change: Change, options: WriteOptions) -> Item:
        if options.before_create:
            await options.before_create()
        wanted = change({})
        spec = wanted.get("spec") or {}
        parts = [spec.get(part) or "" for part in ("repository", "packageName", "workspaceName")]
        composed = RevisionName(*parts).object_name
        if composed != name:
            raise BadRequest(f"the name of the object ({composed}) does not match the name on the URL ({name})")
        return await self.create(scope, wanted, options)

    async def delete(self, scope: Scope, name: str, options: DeleteOptions) -> tuple[Item, bool]:
        """Delete a draft, a proposal, or a revision whose deletion is proposed."""

        def check(entry: Entry) -> None:
            check_preconditions(self.definition, decode(entry), options)

        def finalizers(present: Sequence[str]) -> list[str]:
            return collector_finalizers(present, options.propagation)

        return await self._service.delete(
            namespace_of(scope), name, check, scope.user.name, dry_run=options.dry_run, finalizers=finalizers
        )


class PackageRevisionApproval:
    """The ``approval`` subresource: the only way a revision becomes Published."""

    def __init__(self, revisions: PackageRevisions, service: PackageService) -> None:
        self.definition = revisions.definition
        self._revisions = revisions
        self._service = service
        self._ownership = Ownership(self.definition, "approval")

    async def get(self, scope: Scope, name: str, options: GetOptions) -> Item:
        """Return the revision as its parent resource shows it."""
        return await self._revisions.get(scope, name, options)

    async def update(self, scope: Scope, name: str, change: Change, options: WriteOptions) -> tuple[Item, bool]:
        """Apply the lifecycle of the changed object; every other field is ignored."""
        record = recorded(change, self._ownership, options, Door.APPROVAL)
        entry = await self._service.update(
            namespace_of(scope),
            name,
            record,
            scope.user.name,
            Door.APPROVAL,
            dry_run=options.dry_run,
            may_bypass=partial(_may_bypass, options),
            warn=options.warnings.append,
        )
        return entry, False
