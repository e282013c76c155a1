"""What exists, by repository and package: kept in memory from the store's events, asked in O(1).

Creates, approvals and deletions ask here instead of listing revisions (``decisions.md`` 9). The index is fed by
:meth:`PackageIndex.observe`; nobody else changes it.
"""

from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from apiserver.rules.lifecycle import Lifecycle
from apiserver.rules.managed_labels import LATEST
from krm.api.revision_name import package_object_name
from storage.interfaces import Entry, Event, EventType

Json = dict[str, Any]

RESOURCE = "packagerevisions.porch.kpt.dev"

REVISION, PACKAGE, REPOSITORY, WORKSPACE, LIFECYCLE, COMMIT, UPSTREAM, PACKAGE_LABELS, CREATED = range(9)
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
        referenced_upstream(spec.get("tasks") or []) if spec.get("revision") != -1 else "",
        orjson.dumps(package_labels).decode() if package_labels else "",
        body["metadata"].get("creationTimestamp", ""),
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
    namespace: str
    repository: str
    revisions: dict[str, Entry] = field(default_factory=dict)
    changed: int = 0
    """The log's revision at which one of its revisions last came, changed or went."""

    @property
    def name(self) -> str:
        """Its name as an object."""
        return package_object_name(self.repository, self.path)

    @property
    def created(self) -> str:
        """When the oldest of its revisions was created (RFC 3339)."""
        return min(entry.fields[CREATED] for entry in self.revisions.values())

    def published(self) -> Iterator[Entry]:
        """Yield the published revisions with a number, also those proposed for deletion; may be asked in any thread."""
        for entry in list(self.revisions.values()):
            if Lifecycle(entry.fields[LIFECYCLE]).is_published and int(entry.fields[REVISION]) > 0:
                yield entry

    def latest(self) -> Entry | None:
        """Return the published revision with the highest number."""
        return max(self.published(), key=lambda entry: int(entry.fields[REVISION]), default=None)

    def latest_number(self) -> int:
        """Return the highest published revision's number, 0 where nothing is published."""
        latest = self.latest()
        return 0 if latest is None else int(latest.fields[REVISION])

    def next_revision(self) -> int:
        """Return the number the next approval gives."""
        return self.latest_number() + 1

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
    """The packages of one repository, how many lie below each directory, and how many revisions they have."""

    packages: dict[str, Package] = field(default_factory=dict)
    directories: Counter[str] = field(default_factory=Counter)
    revisions: int = 0


class PackageIndex:
    """Packages by repository and by name, and who refers to whom as upstream."""

    def __init__(self) -> None:
        self._named: dict[str, NamedPackages] = {}
        self._repositories: dict[tuple[str, str], _Packages] = {}
        self._references: dict[tuple[str, str], set[str]] = {}
        self.lifecycles: Counter[str] = Counter()
        """How many revisions there are in each lifecycle."""

    def observe(self, event: Event) -> None:
        """Apply one event of the packagerevisions resource."""
        before, gone = event.previous, event.type is EventType.DELETED
        if before is not None:
            self.lifecycles[before.fields[LIFECYCLE]] -= 1
            self._unrefer(before)
            # A name may be read as two packages: "r.a.v1.0" is "a" in "v1.0" as well as "a/v1" in "0".
            if gone or before.fields[PACKAGE] != event.entry.fields[PACKAGE]:
                self._remove(before, event.rv)
        if not gone:
            self.lifecycles[event.entry.fields[LIFECYCLE]] += 1
            self._put(event.entry)

    def package(self, namespace: str, repository: str, path: str) -> Package | None:
        """Return a package that has at least one revision."""
        held = self._repositories.get((namespace, repository))
        return held.packages.get(path) if held else None

    def named(self, namespace: str) -> "NamedPackages":
        """Return the packages of a namespace by their object names."""
        return self._named.get(namespace) or NamedPackages()

    def namespaces(self) -> list[str]:
        """Return the namespaces that have packages, sorted."""
        return sorted(self._named)

    def repositories(self) -> list[tuple[str, str]]:
        """Return (namespace, name) of every repository that has revisions."""
        return list(self._repositories)

    def count(self, namespace: str, repository: str) -> int:
        """Return how many revisions a repository has."""
        held = self._repositories.get((namespace, repository))
        return held.revisions if held else 0

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

    def _put(self, entry: Entry) -> None:
        key = (entry.namespace, entry.fields[REPOSITORY])
        held = self._repositories.get(key)
        if held is None:
            held = self._repositories[key] = _Packages()
        path = entry.fields[PACKAGE]
        package = held.packages.get(path)
        if package is None:
            package = held.packages[path] = Package(path, *key)
            held.directories.update(_directories(path))
            self._named.setdefault(entry.namespace, NamedPackages()).add(package)
        held.revisions += entry.name not in package.revisions
        package.revisions[entry.name] = entry
        package.changed = max(package.changed, entry.rv)
        if upstream := entry.fields[UPSTREAM]:
            self._references.setdefault((entry.namespace, upstream), set()).add(entry.name)

    def _remove(self, entry: Entry, rv: int) -> None:
        held = self._repositories[entry.namespace, entry.fields[REPOSITORY]]
        package = held.packages[entry.fields[PACKAGE]]
        held.revisions -= package.revisions.pop(entry.name, None) is not None
        package.changed = max(package.changed, rv)
        if not package.revisions:
            self._forget(held, package)

    def _forget(self, held: _Packages, package: Package) -> None:
        del held.packages[package.path]
        for directory in _directories(package.path):
            held.directories[directory] -= 1
            if not held.directories[directory]:
                del held.directories[directory]  # a counter keeps what it counted down to nothing
        if not held.packages:
            del self._repositories[package.namespace, package.repository]
        named = self._named[package.namespace]
        named.remove(package.name)
        if not named:
            del self._named[package.namespace]

    def _unrefer(self, entry: Entry) -> None:
        upstream = (entry.namespace, entry.fields[UPSTREAM])
        references = self._references.get(upstream)
        if references is not None:
            references.discard(entry.name)
            if not references:
                del self._references[upstream]


class NamedPackages:
    """The packages of one namespace: by object name, and the names in order."""

    __slots__ = ("_by_name", "_names")

    def __init__(self) -> None:
        self._by_name: dict[str, Package] = {}
        self._names: list[str] = []

    def __len__(self) -> int:
        return len(self._names)

    def get(self, name: str) -> Package | None:
        """Return a package."""
        return self._by_name.get(name)

    def after(self, name: str) -> list[Package]:
        """Return the packages whose names come after ``name``, in order."""
        return [self._by_name[one] for one in self._names[bisect_right(self._names, name) :]]

    def add(self, package: Package) -> None:
        """Add a package that is not there."""
        self._by_name[package.name] = package
        insort(self._names, package.name)

    def remove(self, name: str) -> None:
        """Remove a package that is there."""
        del self._by_name[name]
        del self._names[bisect_left(self._names, name)]


def _directories(path: str) -> list[str]:
    """Return every proper parent directory of a package path."""
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]
