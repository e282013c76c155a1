"""The contents a new package revision starts with: init, clone, edit.

Source: ``porch-api.md`` 3.2 to 3.4. Each task reads what it needs and returns contents; nothing is written here.
"""

import hashlib
from pathlib import Path
from typing import Any

from apiserver.engine.package_index import PACKAGE, REPOSITORY
from apiserver.engine.recording import is_placeholder, is_published
from apiserver.engine.registered import read_credentials
from apiserver.engine.repositories import Held, Repositories
from apiserver.engine.tree_changes import package_tree, read_contents
from krm.api.revision_name import RevisionName
from krm.meta.errors import Cause, Invalid, NotFound, ResourceName, ServiceUnavailable
from krm.package.clone import clone_package
from krm.package.contents import ContentsError, File
from krm.package.init import init_package
from krm.package.kptfile import KptfileError
from krm.package.package_context import package_path
from storage.bodies import decode
from storage.git.clone import Clone
from storage.git.commits import parse_commit
from storage.git.errors import GitError, ObjectMissing, RemoteUnavailable
from storage.git.objects import ObjectSource
from storage.git.remote import Remote
from storage.git.trees import read_package
from storage.interfaces import Entry, ObjectKey, ObjectStore

Json = dict[str, Any]
REVISIONS = ResourceName("packagerevisions", "porch.kpt.dev")


def refuse(name: str, field: str, why: str) -> Invalid:
    """Refuse a create: 422 with upstream's sentence in the message (``decisions.md`` 15)."""
    return Invalid(
        f"Internal error occurred: {why}",
        name=name,
        group="porch.kpt.dev",
        kind="PackageRevision",
        causes=[Cause("FieldValueInvalid", why, field)],
    )


class StartingContents:
    """Runs creating tasks."""

    def __init__(self, store: ObjectStore, repositories: Repositories, upstreams: Path, git_timeout: float) -> None:
        self._store = store
        self._repositories = repositories
        self._upstreams = upstreams
        self._git_timeout = git_timeout

    async def make(self, held: Held, name: RevisionName, task: Json, parent: str = "") -> dict[str, File]:
        """Return the contents that ``task`` starts the revision with.

        ``parent`` names the revision whose package path prefixes a clone's (deprecated ``spec.parent``).

        Raises:
            StatusError: the task is unknown or incomplete, or its source cannot be used.
        """
        kind = task.get("type") or ""
        prefix = await self._parent_path(held, name, parent) if parent else ""
        if kind == "init":
            init = task.get("init") or {}
            return init_package(
                name.package, init.get("description") or "", init.get("keywords") or [], init.get("site") or ""
            )
        if kind == "clone":
            return await self._clone(held, name, task.get("clone") or {}, prefix)
        if kind == "edit":
            return await self._edit(held, name, task.get("edit") or {})
        cause = Cause(
            "FieldValueNotSupported",
            f'Unsupported value: "{kind}": supported values: "init", "clone", "edit"',
            "spec.tasks[0].type",
        )
        raise Invalid.of("PackageRevision", "porch.kpt.dev", name.object_name, [cause])

    # --- edit --------------------------------------------------------------------------------

    async def _edit(self, held: Held, name: RevisionName, edit: Json) -> dict[str, File]:
        source_name = (edit.get("sourceRef") or {}).get("name") or ""
        field = "spec.tasks[0].edit.sourceRef.name"
        settings = held.repository.settings
        source = self._find(settings.namespace, source_name, name, field, "package")
        if source.fields[REPOSITORY] != settings.name or source.fields[PACKAGE] != name.package:
            why = f"source revision must be from same package {settings.name}/{name.package}"
            raise refuse(name.object_name, field, why)
        if is_placeholder(decode(source)):
            why = f"source revision may not be the placeholder package revision {settings.name}/{source_name}"
            raise refuse(name.object_name, field, why)
        if not is_published(source):
            raise refuse(name.object_name, field, "source revision must be published")
        return await self.read(held, source)

    async def read(self, held: Held, entry: Entry) -> dict[str, File]:
        """Return the contents of a revision of a registered repository."""
        repository = held.repository
        commit = decode(entry)["status"]["selfLock"]["git"]["commit"]
        path = repository.settings.full_path(entry.fields[PACKAGE])
        try:
            return await repository.run(read_contents, repository.objects, commit, path)
        except GitError as error:
            if isinstance(error, ObjectMissing):
                repository.damaged = True
                held.wake.set()
            why = f'the content of package revision "{entry.name}" cannot be read: {error}; it is there again after the next sync'
            raise ServiceUnavailable(why) from error

    # --- clone -------------------------------------------------------------------------------

    async def _parent_path(self, held: Held, name: RevisionName, parent: str) -> str:
        namespace = held.repository.settings.namespace
        entry = self._store.get(ObjectKey("packagerevisions.porch.kpt.dev", namespace, parent))
        if entry is None:
            why = f'cannot get parent package "{parent}": {NotFound.of(REVISIONS, parent).message}'
            raise refuse(name.object_name, "spec.parent.name", why)
        contents = await self.read(self._repositories.get(namespace, entry.fields[REPOSITORY]), entry)
        return package_path(contents)

    async def _clone(self, held: Held, name: RevisionName, clone: Json, prefix: str) -> dict[str, File]:
        source = clone.get("upstreamRef") or {}
        if source.get("upstreamRef"):
            contents, upstream, lock = await self._clone_revision(held, name, source["upstreamRef"])
        elif source.get("git"):
            contents, upstream, lock = await self._clone_git(held, name, source["git"])
        elif source.get("oci"):
            raise refuse(name.object_name, "spec.tasks[0].clone.upstreamRef.oci", "clone from OCI is not implemented")
        else:
            why = "invalid clone source (neither of git, oci, nor upstream were specified)"
            raise refuse(name.object_name, "spec.tasks[0].clone.upstreamRef", why)
        if "Kptfile" not in contents:
            raise refuse(
                name.object_name, "spec.tasks[0].clone.upstreamRef", f'package "{name.package}" is missing Kptfile'
            )
        own_path = f"{prefix}/{name.package}" if prefix else name.package
        context = own_path if held.repository.settings.deployment else None
        try:
            return clone_package(
                contents, name=name.package, upstream=upstream, upstream_lock=lock, context_path=context
            )
        except (KptfileError, ContentsError) as error:
            why = f"the upstream package cannot be cloned: {error}"
            raise refuse(name.object_name, "spec.tasks[0].clone.upstreamRef", why) from error

    async def _clone_revision(self, held: Held, name: RevisionName, ref: Json) -> tuple[dict[str, File], Json, Json]:
        field = "spec.tasks[0].clone.upstreamRef.upstreamRef.name"
        upstream_name = ref.get("name") or ""
        if not upstream_name:
            raise refuse(name.object_name, field, "upstreamRef.name is required")
        namespace = held.repository.settings.namespace
        entry = self._find(namespace, upstream_name, name, field, "package revision")
        body = decode(entry)
        upstream_repository = self._repositories.get(namespace, entry.fields[REPOSITORY])
        if is_placeholder(body):
            why = (
                "upstream revision may not be the placeholder package revision "
                f"{entry.fields[REPOSITORY]}/{upstream_name}"
            )
            raise refuse(name.object_name, field, why)
        contents = await self.read(upstream_repository, entry)
        git = body["status"]["selfLock"]["git"]
        return contents, *locks(git["repo"], git["directory"], git["ref"], git["commit"])

    async def _clone_git(self, held: Held, name: RevisionName, git: Json) -> tuple[dict[str, File], Json, Json]:
        field = "spec.tasks[0].clone.upstreamRef.git"
        namespace = held.repository.settings.namespace
        directory = str(git.get("directory") or "").strip("/")
        wanted = str(git.get("ref") or "")
        try:
            secret = (git.get("secretRef") or {}).get("name") or ""
            credentials = read_credentials(self._store, namespace, secret)
            remote = Remote(str(git.get("repo") or ""), credentials, timeout=self._git_timeout)
            contents, commit = await held.repository.converse(self._fetch_package, remote, directory, wanted)
        except RemoteUnavailable as error:
            raise ServiceUnavailable(f"cannot clone Git repository: {error}; nothing was created, try again") from error
        except GitError as error:
            raise refuse(name.object_name, field, f"cannot clone Git repository: {error}") from error
        if contents is None:
            raise refuse(name.object_name, field, f"cannot find package {directory}@{wanted}")
        return contents, *locks(str(git["repo"]), directory, wanted, commit)

    def _fetch_package(self, remote: Remote, directory: str, wanted: str) -> tuple[dict[str, File] | None, str]:
        """Read one directory of an arbitrary repository, through a clone that is kept for the next time."""
        folder = self._upstreams / f"{hashlib.sha256(remote.url.encode()).hexdigest()[:24]}.git"
        clone = Clone.open(folder)
        refs = clone.list_remote(remote)
        commit = find_commit(refs, directory, wanted)
        if refs != clone.refs:
            clone.fetch(remote, refs)
        if commit is None and len(wanted) == 40 and clone.has(wanted):  # noqa: PLR2004  (a full commit id)
            commit = wanted
        if commit is None:
            raise GitError(f"cannot find git reference {wanted!r} for {directory!r}")
        peeled = peel(clone, commit)
        tree = package_tree(clone, peeled, directory) if directory else _root_tree(clone, peeled)
        return (read_package(clone, tree) if tree else None), peeled

    # --- looking up ----------------------------------------------------------------------------

    def _find(self, namespace: str, wanted: str, name: RevisionName, field: str, what: str) -> Entry:
        entry = self._store.get(ObjectKey("packagerevisions.porch.kpt.dev", namespace, wanted))
        if entry is None:
            why = f'failed to fetch {what} "{wanted}": {NotFound.of(REVISIONS, wanted).message}'
            raise refuse(name.object_name, field, why)
        return entry


def locks(url: str, directory: str, ref: str, commit: str) -> tuple[Json, Json]:
    """Return the Kptfile's upstream and upstreamLock sections for a source."""
    repo = url if url.endswith(".git") else f"{url}.git"
    git = {"repo": repo, "directory": directory.lstrip("/"), "ref": ref}
    return {"type": "git", "git": git}, {"type": "git", "git": {**git, "commit": commit}}


def find_commit(refs: dict[str, str], directory: str, wanted: str) -> str | None:
    """Resolve a ref as upstream does: ``directory/ref`` before ``ref``, tags before branches (3.3)."""
    if not wanted:
        return refs.get("refs/heads/main")
    names = [f"{directory}/{wanted}", wanted] if directory else [wanted]
    for short in names:
        for prefix in ("refs/tags/", "refs/heads/", ""):
            if found := refs.get(prefix + short):
                return found
    return None


def peel(source: ObjectSource, oid: str) -> str:
    """Follow annotated tags to the commit they name (at most eight, each a tag of a tag)."""
    for _ in range(8):
        found = source.read(oid)
        if found.kind == "commit":
            return oid
        head = found.data.split(b"\n", 1)[0]
        if found.kind != "tag" or not head.startswith(b"object "):
            break
        oid = head[7:47].decode("ascii", "replace")
    raise GitError(f"{oid} is not a commit")


def _root_tree(source: ObjectSource, commit: str) -> str:
    return parse_commit(source.read(commit).data).tree
