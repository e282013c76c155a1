"""Whether a package may come to be where a create wants it, packages that are just being created included.

Everything is compared on full paths, where upstream compares the last segment of one with the path of the other. Source:
``porch-api.md`` 3.1 items 7 to 9.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager

from apiserver.engine.package_index import PackageIndex
from apiserver.engine.recording import REVISIONS
from apiserver.engine.shared_turns import SharedTurns
from apiserver.rules.revision_changes import INTERNAL
from krm.api.revision_name import RevisionName
from krm.meta.errors import AlreadyExists, Conflict, ServiceUnavailable, StatusError
from storage.interfaces import ObjectStore, StoreUnavailable

NEW_PACKAGE = ("init", "clone")
"""Tasks that begin a package; the others continue one."""


class PackagesToBe:
    """Keeps the places of packages free while they are made. For one event loop; :meth:`confirmed` asks the other replicas."""

    def __init__(self, store: ObjectStore, index: PackageIndex) -> None:
        self._store = store
        self._index = index
        self._turns = SharedTurns(store.turn)
        self._coming: dict[tuple[str, str], Counter[str]] = {}

    @contextmanager
    def place(self, namespace: str, name: RevisionName, task: str) -> Iterator[None]:
        """Have the place of a revision of a package; ``task`` is the type of its creating task.

        Raises:
            AlreadyExists: the revision exists, or the package does and the task begins one.
            Conflict: it would lie in or around another package, or somebody else is just beginning the package.
        """
        key = (namespace, name.repository)
        self._check(key, name, task, self._coming.get(key, Counter()))
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

    @asynccontextmanager
    async def confirmed(self, namespace: str, name: RevisionName, task: str) -> AsyncIterator[None]:
        """Write a revision whose place one has; with replicas, while no other one begins a package in the repository.

        Those of this process, whose places keep them apart, write together.

        Raises:
            AlreadyExists, Conflict: as :meth:`place`; another replica was first.
            ServiceUnavailable: the database cannot be used.
        """
        key = (namespace, name.repository)
        begins = task in NEW_PACKAGE or self._index.package(*key, name.package) is None
        if not self._store.shared or not begins:
            yield
            return
        turn = self._turns.turn(f"packages of {namespace}/{name.repository}")
        try:
            await turn.__aenter__()
        except StoreUnavailable as error:
            raise ServiceUnavailable(f"{error}; nothing was changed, try again", retry_after=1) from error
        async with AsyncExitStack() as held:
            held.push_async_exit(turn)
            self._check(key, name, task, Counter())
            yield

    def _check(self, key: tuple[str, str], name: RevisionName, task: str, coming: Counter[str]) -> None:
        if problem := self._problem(key, name, task, coming):
            refusal, why = problem
            raise refusal(INTERNAL + why, name=name.object_name, group=REVISIONS.group, kind=REVISIONS.resource)

    def _problem(
        self, key: tuple[str, str], name: RevisionName, task: str, coming: Counter[str]
    ) -> tuple[type[StatusError], str] | None:
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
        if package is None and task in NEW_PACKAGE and coming[name.package]:
            why = f'another request is already in progress to create package "{name.package}" in repository "{key[1]}"'
            return Conflict, why
        if package is None and (other := self._nested(key, name.package, coming)):
            why = f'package path "{name.package}" conflicts with existing package "{other}": packages cannot be nested'
            return Conflict, why
        return None

    def _nested(self, key: tuple[str, str], path: str, coming: Counter[str]) -> str | None:
        """Return a package that ``path`` would lie in or around: one that exists, or one that is coming."""
        if other := self._index.nesting_conflict(*key, path):
            return other
        return next((o for o in coming if o.startswith(f"{path}/") or path.startswith(f"{o}/")), None)
