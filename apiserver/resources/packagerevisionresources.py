"""``packagerevisionresources``: the files of a revision, read from Git objects and written as a whole.

Shares name, uid and version with its package revision and stores nothing of its own. Source: ``porch-api.md`` 1.5 and 5.
"""

import asyncio
import copy
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import orjson
import structlog

from apiserver.engine.service import PackageService
from apiserver.machinery.apply.ownership import Ownership
from apiserver.machinery.rest import (
    Change,
    GetOptions,
    Item,
    ItemList,
    ItemStream,
    ListOptions,
    Scope,
    WriteOptions,
)
from apiserver.resources.packagerevisions import namespace_of
from apiserver.resources.porch import (
    package_revision_definition,
    package_revision_resources_definition,
)
from apiserver.resources.reading import item_or_404, list_entries
from apiserver.resources.revision_ownership import FileManagers, file_managers, recorded_files
from apiserver.resources.revision_selectors import select_revisions
from apiserver.rules.managed_labels import BINARY_FILES
from krm.meta.errors import BadRequest, NotFound, ServiceUnavailable
from krm.package.contents import Contents, File, binary_paths, texts
from storage.bodies import decode
from storage.interfaces import Entry, ObjectStore

Json = dict[str, Any]
log = structlog.get_logger()

MAX_LISTED = 64 * 1024 * 1024
"""Bytes of files in one list that has to be held as a whole; further pages hold the rest."""
READ_AT_ONCE = 2
"""Revisions whose files are read together for a list, and held until they are sent."""
LARGE = 512 * 1024
"""Bytes of files from which making an answer takes longer than the event loop should wait."""


class FilesItem:
    """One answer: the object's bytes, made for this request."""

    def __init__(self, entry: Entry, body: bytes) -> None:
        self.rv = entry.rv
        self.body = body
        self.row: tuple[bytes, ...] | None = None
        self.partial: bytes | None = None
        self.namespace = entry.namespace
        self.name = entry.name


class PackageRevisionResources:
    """The resource; no create, no delete, no watch."""

    def __init__(self, store: ObjectStore, service: PackageService) -> None:
        self.definition = package_revision_resources_definition()
        self._revisions = package_revision_definition()
        self._ownership = Ownership(self.definition)
        self._store = store
        self._service = service

    async def get(self, scope: Scope, name: str, options: GetOptions) -> Item:
        """Return a revision's files."""
        entry = await self._entry(scope, name, options)
        return await _item(entry, await self._service.contents(entry))

    async def _entry(self, scope: Scope, name: str, options: GetOptions) -> Entry:
        """Find the revision; what is missing is named as the resource that was asked for."""
        try:
            return await item_or_404(self._store, self._revisions, scope, name, options)
        except NotFound:
            raise NotFound.of(self.definition.resource, name) from None

    async def list(self, scope: Scope, options: ListOptions) -> ItemList:
        """Return the files of every matching revision at once, for answers that need them so.

        Raises:
            BadRequest: they are over 64 MiB together.
        """
        stream = await self.stream(scope, options)
        items: list[Item] = []
        size = 0
        async for item in stream.items:
            size += len(item.body)
            if size > MAX_LISTED:
                raise BadRequest(
                    f"the files of all matching revisions are over {MAX_LISTED >> 20} MiB together; "
                    "narrow the list with a selector or use limit and continue"
                )
            items.append(item)
        return ItemList(items, stream.rv, stream.continue_token, stream.remaining)

    async def stream(self, scope: Scope, options: ListOptions) -> ItemStream:
        """Return the files of every matching revision, a few revisions at a time; see ``_read_all`` for who is left out."""
        page = await list_entries(self._store, self._revisions, scope, options, select_revisions)
        entries = [entry for entry in page.items if isinstance(entry, Entry)]
        return ItemStream(self._read_all(entries), page.rv, page.continue_token, page.remaining)

    async def _read_all(self, entries: Sequence[Entry]) -> AsyncIterator[Item]:
        """Yield the files of revisions; those whose files cannot be read now are left out, as upstream does."""
        for at in range(0, len(entries), READ_AT_ONCE):
            read = await asyncio.gather(*map(self._read, entries[at : at + READ_AT_ONCE]))
            for item in filter(None, read):
                yield item

    async def _read(self, entry: Entry) -> FilesItem | None:
        try:
            return await _item(entry, await self._service.contents(entry))
        except (NotFound, ServiceUnavailable) as error:
            log.warning("files left out of a list", revision=entry.name, error=error.message)
            return None

    async def update(self, scope: Scope, name: str, change: Change, options: WriteOptions) -> tuple[Item, bool]:
        """Replace the whole package of a draft and render it."""

        def apply(entry: Entry, contents: dict[str, File]) -> tuple[Json, list[str], FileManagers]:
            current = files_object(entry, contents)
            wanted = change(copy.deepcopy(current))
            managers = recorded_files(decode(entry), current, wanted, self._ownership, options)
            return wanted, _kept_binaries(wanted, contents), managers

        entry, contents, results = await self._service.save(
            namespace_of(scope), name, apply, scope.user.name, dry_run=options.dry_run
        )
        return await _item(entry, contents, results), False


def files_object(entry: Entry, contents: Contents, results: Mapping[str, Any] | None = None) -> Json:
    """Build the object for a revision's files; ``results`` are those of the render that this answers."""
    body = decode(entry)
    spec, metadata = body["spec"], body["metadata"]
    shown: Json = {
        "name": entry.name,
        "namespace": entry.namespace,
        "uid": entry.uid,
        "resourceVersion": str(entry.rv),
        "creationTimestamp": metadata["creationTimestamp"],
    }
    if managers := file_managers(metadata.get("managedFields")):
        shown["managedFields"] = managers
    if binaries := binary_paths(contents):
        shown["annotations"] = {BINARY_FILES: orjson.dumps(binaries).decode()}
    files: Json = {
        "packageName": spec["packageName"],
        "workspaceName": spec["workspaceName"],
        "repository": spec["repository"],
        "resources": dict(sorted(texts(contents).items())),
    }
    if spec.get("revision"):
        files["revision"] = spec["revision"]
    status: Json = {"renderStatus": {"result": dict(results or {"metadata": {}, "exitCode": 0}), "error": ""}}
    return {
        "apiVersion": "porch.kpt.dev/v1alpha1",
        "kind": "PackageRevisionResources",
        "metadata": shown,
        "spec": files,
        "status": status,
    }


async def _item(entry: Entry, contents: Contents, results: Mapping[str, Any] | None = None) -> FilesItem:
    """Make the answer, in a thread if the files are large."""

    def make() -> FilesItem:
        return FilesItem(entry, orjson.dumps(files_object(entry, contents, results)))

    large = sum(len(file.data) for file in contents.values()) > LARGE
    return await asyncio.to_thread(make) if large else make()


def _kept_binaries(wanted: Json, contents: Contents) -> list[str]:
    """Return the binary files an update keeps: those the annotation lists; all of them for clients without it."""
    annotations = (wanted.get("metadata") or {}).get("annotations") or {}
    text = annotations.get(BINARY_FILES)
    if text is None:
        return binary_paths(contents)
    try:
        paths = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise BadRequest(f"annotation {BINARY_FILES} must be a JSON list of paths: {error}") from error
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise BadRequest(f"annotation {BINARY_FILES} must be a JSON list of paths")
    return paths
