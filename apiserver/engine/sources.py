"""What creating tasks read: the contents of package revisions, and of packages in repositories nobody registered.

Source: ``porch-api.md`` 3.3 to 3.5; ``variants.md`` R5.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from apiserver.engine.package_index import PACKAGE, REPOSITORY, RESOURCE
from apiserver.engine.recording import is_placeholder
from apiserver.engine.refusals import refuse, shown
from apiserver.engine.repositories import Held, Repositories
from apiserver.engine.tree_changes import read_contents
from apiserver.engine.upstream_clones import FetchedPackage, PackageNotFound, UpstreamClones
from krm.api.revision_name import RevisionName
from krm.meta.errors import ServiceUnavailable
from krm.package.contents import File
from storage.bodies import decode
from storage.git.errors import DiskFull, GitError, NotARepository, ObjectMissing, RemoteUnavailable
from storage.interfaces import Entry, ObjectKey, ObjectStore, StoreUnavailable

Json = dict[str, Any]
SUFFIX = ".git"
"""That addresses in locks end in. Source: ``porch-api.md`` 3.3."""
DEFAULT_REF = "main"
"""What ``porchctl`` asks for when its user names no ref (``porch-api.md`` 10); a lock has to name one."""


@dataclass(frozen=True, slots=True)
class Upstream:
    """An upstream package: its contents, and where exactly they are from."""

    contents: dict[str, File]
    repo: str
    directory: str
    ref: str
    commit: str
    title: str
    """How messages call it: a revision's name, or ``directory@ref``."""

    def locks(self) -> tuple[Json, Json]:
        """Return the Kptfile's ``upstream`` and ``upstreamLock`` sections."""
        repo = self.repo if self.repo.endswith(SUFFIX) else self.repo + SUFFIX
        git = {"repo": repo, "directory": self.directory.lstrip("/"), "ref": self.ref}
        return {"type": "git", "git": git}, {"type": "git", "git": {**git, "commit": self.commit}}


class Sources:
    """Reads what tasks refer to."""

    def __init__(self, store: ObjectStore, repositories: Repositories, clones: UpstreamClones) -> None:
        self._store = store
        self._repositories = repositories
        self._clones = clones

    async def read(self, held: Held, entry: Entry) -> dict[str, File]:
        """Return the contents of a revision of a registered repository.

        Raises:
            ServiceUnavailable: they cannot be read now.
        """
        repository = held.repository
        commit = decode(entry)["status"]["selfLock"]["git"]["commit"]
        path = repository.settings.full_path(entry.fields[PACKAGE])
        try:
            return await self._read(held, commit, path)
        except (GitError, StoreUnavailable) as error:
            if isinstance(error, ObjectMissing) and repository.complete_again():
                held.wake.set()
            why = f'the content of package revision "{entry.name}" cannot be read: {error}; it is there again after the next sync'
            raise ServiceUnavailable(why) from error

    async def _read(self, held: Held, commit: str, path: str) -> dict[str, File]:
        """Read from Git objects; what another replica has pushed may have to be fetched first."""
        repository = held.repository
        try:
            return await repository.run(read_contents, repository.objects, commit, path)
        except ObjectMissing:
            if not repository.shared:
                raise
            await held.queue.look()
            return await repository.run(read_contents, repository.objects, commit, path)

    async def contents(self, entry: Entry) -> dict[str, File]:
        """Return the contents of a revision, wherever it is registered.

        Raises:
            NotFound: its repository is not registered any more.
            ServiceUnavailable: they cannot be read now.
        """
        return await self.read(self._repositories.get(entry.namespace, entry.fields[REPOSITORY]), entry)

    def lookup(self, namespace: str, name: str) -> Entry | None:
        """Return a revision, if it exists."""
        return self._store.get(ObjectKey(RESOURCE, namespace, name))

    def find(self, held: Held, wanted: str, name: RevisionName, field: str, what: str) -> Entry:
        """Return the revision that a task names, in the namespace of ``held``.

        Raises:
            Invalid: there is none.
        """
        entry = self.lookup(held.repository.settings.namespace, wanted)
        if entry is None:
            why = f'failed to fetch {what} "{shown(wanted)}": cannot find package revision "{shown(wanted)}"'
            raise refuse(name.object_name, field, why)
        return entry

    async def revision(self, entry: Entry) -> Upstream:
        """Read a revision as an upstream.

        Raises:
            NotFound: its repository is not registered any more.
            ServiceUnavailable: it cannot be read now.
        """
        contents = await self.contents(entry)
        git = decode(entry)["status"]["selfLock"]["git"]
        return Upstream(contents, git["repo"], git["directory"], git["ref"], git["commit"], entry.name)

    async def git(self, held: Held, git: Json, name: RevisionName, field: str) -> Upstream:
        """Read a package from any repository, with credentials of the namespace of ``held``; without a ref, from main.

        Raises:
            Invalid: the address, the credentials, the ref or the directory is at fault.
            ServiceUnavailable: the remote cannot be read now.
        """
        directory, ref, repo = (str(git.get(key) or "") for key in ("directory", "ref", "repo"))
        directory, ref = directory.strip("/"), ref or DEFAULT_REF
        secret = str((git.get("secretRef") or {}).get("name") or "")
        try:
            found = await self._fetched(held, repo, secret, directory, ref)
        except (RemoteUnavailable, DiskFull) as error:
            raise ServiceUnavailable(f"cannot clone Git repository: {error}; nothing was changed, try again") from error
        except PackageNotFound as error:
            raise refuse(name.object_name, field, str(error)) from error
        except GitError as error:
            raise refuse(name.object_name, field, f"cannot clone Git repository: {error}") from error
        return Upstream(found.contents, repo, directory, ref, found.commit, f"{shown(directory)}@{shown(ref)}")

    async def _fetched(self, held: Held, repo: str, secret: str, directory: str, ref: str) -> FetchedPackage:
        remote = await self._repositories.access.remote(held.repository.settings.namespace, repo, secret)
        try:
            return await held.repository.converse(self._clones.package, remote, directory, ref)
        except NotARepository:
            if not repo.endswith(SUFFIX):
                raise
            # Locks always end so, and not every host takes that for the same address.
            with suppress(NotARepository):
                return await self._fetched(held, repo.removesuffix(SUFFIX), secret, directory, ref)
            raise


def is_of_package(entry: Entry, name: RevisionName) -> bool:
    """Tell whether a revision belongs to the package that ``name`` is of."""
    return entry.fields[REPOSITORY] == name.repository and entry.fields[PACKAGE] == name.package


def refuse_placeholder(entry: Entry, name: RevisionName, field: str, what: str) -> None:
    """Refuse a revision that follows a branch: it moves.

    Raises:
        Invalid: it is one; ``what`` says what it was to be.
    """
    if is_placeholder(decode(entry)):
        why = f"{what} may not be the placeholder package revision {entry.fields[REPOSITORY]}/{entry.name}"
        raise refuse(name.object_name, field, why)
