"""Whether a package may come to be where a create wants it, packages that are just being created included.

Everything is compared on full paths, where upstream compares the last segment of one with the path of the other. Source:
``porch-api.md`` 3.1 items 7 to 9.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from apiserver.engine.package_index import PackageIndex
from apiserver.engine.recording import REVISIONS
from apiserver.rules.revision_changes import INTERNAL
from krm.api.revision_name import RevisionName
from krm.meta.errors import AlreadyExists, Conflict, StatusError

NEW_PACKAGE = ("init", "clone")
"""Tasks that begin a package; the others continue one."""


class PackagesToBe:
    """Keeps the places of packages free while they are made. For one event loop."""

    def __init__(self, index: PackageIndex) -> None:
        self._index = index
        self._coming: dict[tuple[str, str], Counter[str]] = {}

    @contextmanager
    def place(self, namespace: str, name: RevisionName, task: str) -> Iterator[None]:
        """Have the place of a revision of a package; ``task`` is the type of its creating task.

        Raises:
            AlreadyExists: the revision exists, or the package does and the task begins one.
            Conflict: it would lie in or around another package, or somebody else is just beginning the package.
        """
        key = (namespace, name.repository)
        if problem := self._problem(key, name, task):
            refusal, why = problem
            raise refusal(INTERNAL + why, name=name.object_name, group=REVISIONS.group, kind=REVISIONS.resource)
        coming = self._coming.setdefault(key, Counter())
        coming[name.package] += 1
        try:
            yield
        finally:
            coming[name.package] -= 1
            if not coming[name.package]:
                del coming[name.package]
            if not coming:
                self._coming.pop(key, None)

    def _problem(self, key: tuple[str, str], name: RevisionName, task: str) -> tuple[type[StatusError], str] | None:
        package = self._index.package(*key, name.package)
        if package is not None and package.by_workspace(name.workspace) is not None:
            return AlreadyExists, (
                f"package revision workspaceNames must be unique; package revision with name {name.package} in "
                f"repo {name.repository} with workspaceName {name.workspace} already exists"
            )
        if package is not None and task == "clone":
            return AlreadyExists, (
                f'`clone` cannot create a new revision for package "{name.package}" that already exists in repo '
                f'"{name.repository}"; make subsequent revisions using `copy`'
            )
        if package is not None and task == "init":
            return AlreadyExists, f'package "{name.package}" already exists in repository "{name.repository}"'
        coming = self._coming.get(key, Counter())
        if package is None and task in NEW_PACKAGE and coming[name.package]:
            why = f'another request is already in progress to create package "{name.package}" in repository "{key[1]}"'
            return Conflict, why
        if package is None and (other := self._nested(key, name.package)):
            why = f'package path "{name.package}" conflicts with existing package "{other}": packages cannot be nested'
            return Conflict, why
        return None

    def _nested(self, key: tuple[str, str], path: str) -> str | None:
        """Return a package that ``path`` would lie in or around: one that exists, or one that is coming."""
        if other := self._index.nesting_conflict(*key, path):
            return other
        coming = self._coming.get(key, Counter())
        return next((o for o in coming if o.startswith(f"{path}/") or path.startswith(f"{o}/")), None)
