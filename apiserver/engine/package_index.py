"""What exists, by repository and package: kept in memory from the store's events, asked in O(1).

Creates, approvals and deletions ask here instead of listing revisions (``decisions.md`` 9). The index is fed by
:meth:`PackageIndex.observe`; nobody else changes it.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from apiserver.rules.lifecycle import Lifecycle
from apiserver.rules.managed_labels import LATEST
from storage.interfaces import Entry, Event, EventType

Json = dict[str, Any]

RESOURCE = "packagerevisions.porch.kpt.dev"

REVISION, PACKAGE, REPOSITORY, WORKSPACE, LIFECYCLE, COMMIT, UPSTREAM, PACKAGE_LABELS = range(8)
"""Positions in ``Entry.fields`` of a package revision."""

_NO_LABELS: Mapping[str, str] = {}


def revision_fields(body: Json) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """Extract labels and index fields of a package revision; the order is that of the constants above."""
    spec, status = body.get("spec", {}), body.get("status", {})
    package_labels = spec.get("packageMetadata", {}).get("labels")
    return body["metadata"].get("labels") or _NO_LABELS, (
        str(spec.get("revision", 0)),
        spec.get("packageName", ""),
        spec.get("repository", ""),
        spec.get("workspaceName", ""),
        spec.get("lifecycle", ""),
        status.get("selfLock", {}).get("git", {}).get("commit", ""),
        referenced_upstream(spec.get("tasks") or []),
        orjson.dumps(package_labels).decode() if package_labels else "",
    )


def referenced_upstream(tasks: list[Json]) -> str:
    """Return the name of the package revision that the creating task cloned or upgraded to, or ""."""
    for task in tasks[:1]:
        if task.get("type") == "clone":
            return str(task.get("clone", {}).get("upstreamRef", {}).get("upstreamRef", {}).get("name", ""))
        if task.get("type") == "upgrade":
            return str(task.get("upgrade", {}).get("newUpstreamRef", {}).get("name", ""))
    return ""


@dataclass(slots=True)
class Package:
    """The revisions of one package: object name → entry."""

    path: str
    revisions: dict[str, Entry] = field(default_factory=dict)

    def published(self) -> Iterator[Entry]:
        """Yield the published revisions with a number, also those proposed for deletion."""
        for entry in self.revisions.values():
            if Lifecycle(entry.fields[LIFECYCLE]).is_published and int(entry.fields[REVISION]) > 0:
                yield entry

    def latest(self) -> Entry | None:
        """Return the published revision with the highest number."""
        return max(self.published(), key=lambda entry: int(entry.fields[REVISION]), default=None)

    def next_revision(self) -> int:
        """Return the number the next approval gives."""
        latest = self.latest()
        return 1 if latest is None else int(latest.fields[REVISION]) + 1

    def by_workspace(self, workspace: str) -> Entry | None:
        """Return the revision made in a workspace."""
        for entry in self.revisions.values():
            if entry.fields[WORKSPACE] == workspace:
                return entry
        return None

    def labelled_latest(self) -> Iterator[Entry]:
        """Yield the revisions that carry the managed label now."""
        for entry in self.revisions.values():
            if LATEST in entry.labels:
                yield entry


@dataclass(slots=True)
class _Packages:
    """The packages of one repository, and how many lie below each directory."""

    packages: dict[str, Package] = field(default_factory=dict)
    directories: Counter[str] = field(default_factory=Counter)


class PackageIndex:
    """Packages by repository, and who refers to whom as upstream."""

    def __init__(self) -> None:
        self._repositories: dict[tuple[str, str], _Packages] = {}
        self._references: dict[tuple[str, str], set[str]] = {}

    def observe(self, event: Event) -> None:
        """Apply one event of the packagerevisions resource."""
        if event.previous is not None:
            self._remove(event.previous)
        if event.type is not EventType.DELETED:
            self._add(event.entry)

    def package(self, namespace: str, repository: str, path: str) -> Package | None:
        """Return a package that has at least one revision."""
        held = self._repositories.get((namespace, repository))
        return held.packages.get(path) if held else None

    def repositories(self) -> list[tuple[str, str]]:
        """Return (namespace, name) of every repository that has revisions."""
        return list(self._repositories)

    def packages(self, namespace: str, repository: str) -> Iterator[Package]:
        """Yield every package of a repository."""
        held = self._repositories.get((namespace, repository))
        yield from list(held.packages.values()) if held else ()

    def revisions(self, namespace: str, repository: str) -> Iterator[Entry]:
        """Yield every revision of a repository."""
        for package in self.packages(namespace, repository):
            yield from list(package.revisions.values())

    def nesting_conflict(self, namespace: str, repository: str, path: str) -> str | None:
        """Return an existing package that ``path`` would lie in or around, or None."""
        held = self._repositories.get((namespace, repository))
        if held is None:
            return None
        for directory in _directories(path):
            if directory in held.packages:
                return directory
        if held.directories[path]:
            return next((other for other in held.packages if other.startswith(path + "/")), None)
        return None

    def referenced_by(self, namespace: str, name: str) -> list[str]:
        """Return the revisions whose creating task names ``name`` as their upstream, sorted."""
        return sorted(self._references.get((namespace, name), ()))

    def _add(self, entry: Entry) -> None:
        key = (entry.namespace, entry.fields[REPOSITORY])
        held = self._repositories.setdefault(key, _Packages())
        path = entry.fields[PACKAGE]
        package = held.packages.get(path)
        if package is None:
            package = held.packages[path] = Package(path)
            held.directories.update(_directories(path))
        package.revisions[entry.name] = entry
        if upstream := entry.fields[UPSTREAM]:
            self._references.setdefault((entry.namespace, upstream), set()).add(entry.name)

    def _remove(self, entry: Entry) -> None:
        key = (entry.namespace, entry.fields[REPOSITORY])
        held = self._repositories[key]
        path = entry.fields[PACKAGE]
        package = held.packages[path]
        package.revisions.pop(entry.name, None)
        if not package.revisions:
            del held.packages[path]
            held.directories.subtract(_directories(path))
            if not held.packages:
                del self._repositories[key]
        if upstream := entry.fields[UPSTREAM]:
            references = self._references[(entry.namespace, upstream)]
            references.discard(entry.name)
            if not references:
                del self._references[(entry.namespace, upstream)]


def _directories(path: str) -> list[str]:
    """Return every proper parent directory of a package path."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]
