"""``packages``: what there is revisions of, shown from the package index. Read-only, and not watched.

A package is no object of its own: it is there as long as it has a revision, and past states of it are not kept.
Source: ``porch-api.md`` 1.2 and 1.6.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, NoReturn

import orjson

from apiserver.engine.package_index import RESOURCE, Package, PackageIndex
from apiserver.machinery.continuation import LATEST, Continuation
from apiserver.machinery.rest import (
    Change,
    DeleteOptions,
    GetOptions,
    Item,
    ItemList,
    ListOptions,
    Scope,
    WriteOptions,
)
from apiserver.resources.porch import porch_package_definition
from apiserver.resources.reading import storage_errors
from apiserver.resources.revision_selectors import select_packages
from krm.api.revision_name import package_uid
from krm.meta.errors import Expired, MethodNotAllowed, NotFound
from storage.interfaces import ObjectKey, ObjectStore

Json = dict[str, Any]

AT_ONCE: Final = 250
"""Packages shown before other requests get a turn; a few milliseconds."""


class PackageItem:
    """One answer: a package's bytes, made for this request."""

    def __init__(self, package: Package) -> None:
        self.rv = package.changed
        self.body = orjson.dumps(_shown(package))
        self.row: tuple[bytes, ...] | None = None
        self.partial: bytes | None = None
        self.namespace = package.namespace
        self.name = package.name


def _shown(package: Package) -> Json:
    latest = package.latest_number()
    return {
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "kind": "PorchPackage",
        "metadata": {
            "name": package.name,
            "namespace": package.namespace,
            "uid": package_uid(package.namespace, package.name),
            "resourceVersion": str(package.changed),
            "creationTimestamp": package.created,
        },
        "spec": {"packageName": package.path, "repository": package.repository},
        "status": {"latestRevision": latest} if latest else {},
    }


class PorchPackages:
    """The resource. What would write is offered, as upstream does, and says what to do instead."""

    def __init__(self, store: ObjectStore, index: PackageIndex) -> None:
        self.definition = porch_package_definition()
        self._store = store
        self._index = index

    async def get(self, scope: Scope, name: str, options: GetOptions) -> Item:
        """Return a package.

        Raises:
            NotFound: it has no revision.
        """
        await self._freshen("get", options.resource_version)
        package = self._index.named(scope.namespace or "").get(name)
        if package is None:
            raise NotFound.of(self.definition.resource, name)
        return PackageItem(package)

    async def list(self, scope: Scope, options: ListOptions) -> ItemList:
        """List packages as they are now, in pages if the client wants some.

        Raises:
            BadRequest: a field cannot be selected.
            Expired: an exact revision other than that of now is asked for.
        """
        matches, namespace = select_packages(scope, options.labels, options.fields)
        token = Continuation.decode(options.continue_token) if options.continue_token else None
        await self._freshen("list", "" if token else options.resource_version)
        rv = self._store.rv
        if options.resource_version_match == "Exact" and int(options.resource_version) != rv:
            raise Expired(f"packages are not kept as of revision {options.resource_version}, only as they are now")
        found = _after(self._index, (token.namespace, token.name) if token else None, namespace)
        if matches is not None:
            found = list(filter(matches, found))
        page = found[: options.limit] if options.limit else found
        following = ""
        if len(page) < len(found):
            following = Continuation(LATEST, page[-1].namespace, page[-1].name).encode()
        remaining = len(found) - len(page) if following and matches is None else None
        return ItemList(await _items(page), rv, following, remaining)

    async def create(self, _scope: Scope, _wanted: Json, _options: WriteOptions) -> Item:
        """Refuse it."""
        self._refuse("create or clone a PackageRevision resource to create a package", "creation")

    async def update(self, _scope: Scope, _name: str, _change: Change, _options: WriteOptions) -> tuple[Item, bool]:
        """Refuse it."""
        self._refuse("update a PackageRevision resource to update a package", "update")

    async def delete(self, _scope: Scope, _name: str, _options: DeleteOptions) -> tuple[Item, bool]:
        """Refuse it."""
        self._refuse("delete all PackageRevisions resources of a package to delete a package", "deletion")

    def _refuse(self, instead: str, doing: str) -> NoReturn:
        raise MethodNotAllowed.of(self.definition.resource, f"{instead} as direct package {doing}")

    async def _freshen(self, verb: str, revision: str) -> None:
        """Wait until the index is as fresh as a reader asked for."""
        with storage_errors(self.definition, verb):
            await self._store.get_fresh(ObjectKey(RESOURCE, "", ""), not_older_than=int(revision) if revision else None)


async def _items(packages: Sequence[Package]) -> list[Item]:
    """Show packages; other requests get their turns, in which a package may lose its last revision."""
    items: list[Item] = []
    for at in range(0, len(packages), AT_ONCE):
        if at:
            await asyncio.sleep(0)
        items += [PackageItem(package) for package in packages[at : at + AT_ONCE] if package.revisions]
    return items


def _after(index: PackageIndex, start: tuple[str, str] | None, namespace: str | None) -> list[Package]:
    """Return packages in the order of namespaces and names, those after a package if one is given."""
    first, name = start or ("", "")
    found: list[Package] = []
    for one in index.namespaces() if namespace is None else [namespace]:
        if one >= first:
            found += index.named(one).after(name if one == first else "")
    return found
