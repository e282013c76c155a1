"""Making the plan of an adoption: old server, Git and new server are read, and nothing is changed anywhere.

Source: issue 9 part 5; ADR 0034.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson

from apiserver.adoption.drafts import MAX_BYTES, adopted_draft, contents_of
from apiserver.adoption.objects import ACTOR, NAMESPACE, REPOSITORY, SECRET, Unfit, creation, storable, stored_form
from apiserver.adoption.owners import Owners, missing_owner
from apiserver.adoption.plan import NEW, Plan, RepositoryPlan
from apiserver.adoption.revisions import Comparison, compare, line_of
from apiserver.adoption.source import MAX_OBJECTS, BadSource, Source, name_of
from apiserver.engine.git_check import read_everything
from apiserver.engine.package_index import PackageIndex
from apiserver.engine.registered import RegisteredRepository, RepositorySettings, read_settings
from apiserver.engine.remote_access import CA_BUNDLE, CredentialsProblem, RemoteAccess
from apiserver.machinery.definition import Definition
from apiserver.resources.namespaces import new_namespace
from apiserver.resources.reading import object_key
from apiserver.resources.writing import is_terminating
from krm.meta.names import dns_label_problem
from storage.bodies import decode
from storage.git.discovery import Discovery, FoundRevision
from storage.git.errors import GitError
from storage.interfaces import ObjectStore

Json = dict[str, Any]

V2_MIGRATION: Final = "porch.kpt.dev/v1alpha2-migration"
"""Annotation of a Repository whose package revisions upstream serves as v1alpha2 alone (``porch-api.md`` 1.11)."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a person may ask for."""

    only_revisions: bool = False
    """Repositories, Secrets and owners stay where they are: in the cluster that the new server is a part of."""
    drop_missing_owners: bool = False
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Beginnings of repository addresses, and what takes their place."""

    def address(self, url: str) -> str:
        """Return where a repository is reached from here."""
        for old, new in self.addresses.items():
            if url.startswith(old):
                return new + url.removeprefix(old)
        return url


class Planner:
    """Makes one plan. ``target`` is the new server's state, only read; ``secrets`` a scratch store for what opens remotes."""

    def __init__(
        self,
        source: Source,
        target: ObjectStore,
        index: PackageIndex,
        secrets: ObjectStore,
        access: RemoteAccess,
        clones: Path,
        pool: ThreadPoolExecutor,
        wishes: Wishes,
    ) -> None:
        self._source = source
        self._target = target
        self._index = index
        self._secrets = secrets
        self._access = access
        self._clones = clones
        self._pool = pool
        self._wishes = wishes
        self._plan = Plan()
        self._kinds = storable()
        self._planned: set[str] = set()
        """UIDs of everything that is there or comes."""
        self._draft_bytes = 0

    async def plan(self) -> Plan:
        """Read everything and return the plan.

        Raises:
            BadSource: the old server cannot be read, or holds more than one run takes over.
        """
        repositories = sorted(await self._source.repositories(), key=name_of)
        if not self._wishes.only_revisions:
            self._make_namespaces({name_of(one)[0] for one in repositories})
            for item in await self._source.variants():
                await self._take(item)
        compared = [one for item in repositories if (one := await self._repository(item)) is not None]
        if not self._wishes.only_revisions:
            await self._bring_owners(compared)
        for one in compared:
            self._finish(*one)
        return self._plan

    # --- what is around the package revisions ---------------------------------------------------

    def _make_namespaces(self, names: set[str]) -> None:
        for name in sorted(names):
            entry = self._target.get(object_key(NAMESPACE, None, name))
            if problem := dns_label_problem(name):
                self._plan.refuse(f"Namespace {name[:63]}", problem)
            elif entry is None:
                self._plan.outer.append(creation(NAMESPACE, new_namespace(name)))
            elif is_terminating(decode(entry)):
                self._plan.refuse(f"Namespace {name}", "is being deleted at the new server; wait until it is gone")

    async def _take(self, item: Json) -> None:
        """Take an object over as it is, unless the new server has it."""
        kind, (namespace, name) = str(item.get("kind")), name_of(item)
        about = f"{kind} {namespace}/{name}"
        definition = self._kinds.get((str(item.get("apiVersion")), kind))
        if definition is None:
            self._plan.refuse(about, f"is of version {item.get('apiVersion')!s:.60}, which is not stored here")
            return
        if (body := self._fit(definition, item, about)) is None:
            return
        entry = self._target.get(object_key(definition, namespace, name))
        if entry is None:
            self._add(definition, body)
        elif entry.uid != body["metadata"]["uid"]:
            self._plan.refuse(about, f"the new server holds another object of this name (UID {entry.uid})")
        else:
            self._planned.add(entry.uid)

    def _fit(self, definition: Definition, item: Json, about: str) -> Json | None:
        try:
            body = stored_form(definition, item)
        except Unfit as error:
            self._plan.refuse(about, str(error))
            return None
        if is_terminating(body):
            self._plan.refuse(about, "is being deleted at the old server; wait until it is gone, or keep it there")
            return None
        return body

    def _add(self, definition: Definition, body: Json) -> None:
        self._plan.outer.append(creation(definition, body))
        self._planned.add(body["metadata"]["uid"])

    async def _bring_owners(self, compared: Sequence["_Compared"]) -> None:
        """Have the owners of everything be there; of package revisions references can be dropped."""
        for one in compared:
            self._planned |= {entry.uid for entry in one.comparison.existing.values()}
            self._planned |= {body["metadata"]["uid"] for body in one.comparison.written.values()}
        owners = Owners(self._kinds, self._target, self._source, self._plan, self._planned)
        outer = [(mutation.key, orjson.loads(mutation.body)) for mutation in self._plan.outer]
        for key, body in outer:
            about = f"{body['kind']} {key.namespace}/{key.name}"
            self._plan.refuse(about, [missing_owner(owner) for owner in await owners.bring(about, body)])
        for one in compared:
            bodies = one.comparison.written
            for name in list(bodies):
                self._without(name, bodies, await owners.bring(name, bodies[name]))

    def _without(self, name: str, bodies: dict[str, Json], missing: Sequence[Json]) -> None:
        """Decide on a package revision whose owners are nowhere."""
        if not missing:
            return
        if not self._wishes.drop_missing_owners:
            self._plan.refuse(name, [missing_owner(owner) for owner in missing])
            del bodies[name]
            return
        metadata = bodies[name]["metadata"]
        metadata["ownerReferences"] = [one for one in metadata["ownerReferences"] if one not in missing]
        if not metadata["ownerReferences"]:
            del metadata["ownerReferences"]
        dropped = ", ".join(f"{owner['kind']} {owner['name']}" for owner in missing)
        self._plan.note(name, f"loses the reference to its owner {dropped}, which is nowhere")

    # --- repositories ---------------------------------------------------------------------------

    async def _repository(self, item: Json) -> "_Compared | None":
        """Read one Repository everywhere; None when it cannot be taken over."""
        namespace, name = name_of(item)
        about = f"Repository {namespace}/{name}"
        if (body := self._fit(REPOSITORY, item, about)) is None:
            return None
        if (body["metadata"].get("annotations") or {}).get(V2_MIGRATION) == "true":
            said = f"its package revisions are v1alpha2 objects; take the annotation {V2_MIGRATION} off it"
            self._plan.refuse(about, said)
            return None
        git = body["spec"].get("git")
        if not git:
            self._plan.refuse(about, "is no Git repository; others are not supported")
            return None
        git["repo"] = self._wishes.address(str(git.get("repo") or ""))
        settings = read_settings(body)
        planned = self._registration(settings)
        if planned is None:
            return None
        await self._bring_secrets(settings)
        repository = RegisteredRepository(
            settings, self._clones / f"{settings.uid}.git", self._target, self._pool, self._access
        )
        try:
            await repository.open()
            discovery = await repository.converse(read_everything, repository, await repository.remote())
        except CredentialsProblem as error:
            self._plan.refuse(about, f"cannot be read: {error}; give the Secret, or create it at the new server")
            return None
        except GitError as error:
            self._plan.refuse(about, f"cannot be read: {error}")
            return None
        if planned.state == NEW:
            self._plan.registrations.append(creation(REPOSITORY, body))
            self._planned.add(settings.uid)
        for problem in discovery.problems:
            self._plan.note(about, f"Git holds what is passed over: {problem}")
        return await self._compare(repository, planned, discovery)

    def _registration(self, settings: RepositorySettings) -> RepositoryPlan | None:
        """Decide on the Repository object itself; None where the new server has another repository of this name."""
        planned = RepositoryPlan(settings.key)
        if self._wishes.only_revisions:
            planned.state = "stays where it is"
            return planned
        entry = self._target.get(object_key(REPOSITORY, settings.namespace, settings.name))
        if entry is None:
            return planned
        here = read_settings(decode(entry))
        if (here.url, here.branch, here.directory) != (settings.url, settings.branch, settings.directory):
            place = f"{here.url}, branch {here.branch}, directory /{here.directory}"
            self._plan.refuse(f"Repository {settings.key}", f"the new server holds another one of this name: {place}")
            return None
        planned.state = "is registered already"
        if here.uid != settings.uid:
            self._plan.note(
                f"Repository {settings.key}", f"was registered here by somebody else and keeps its UID {here.uid}"
            )
        self._planned.add(here.uid)
        return planned

    async def _bring_secrets(self, settings: RepositorySettings) -> None:
        """Have what opens the remote, from the new server where it is there, else from the old one."""
        for name in filter(None, (settings.secret, f"{settings.namespace}{CA_BUNDLE}")):
            key, about = object_key(SECRET, settings.namespace, name), f"Secret {settings.namespace}/{name}"
            if self._secrets.get(key) is not None:
                continue
            if (entry := self._target.get(key)) is not None:
                await self._secrets.write([creation(SECRET, decode(entry))])
                continue
            found = await self._source.find("v1", "Secret", settings.namespace, name)
            if found is None or (body := self._fit(SECRET, found, about)) is None:
                continue
            await self._secrets.write([creation(SECRET, body)])
            if not self._wishes.only_revisions:
                self._add(SECRET, body)

    # --- package revisions ------------------------------------------------------------------------

    async def _compare(
        self, repository: RegisteredRepository, planned: RepositoryPlan, discovery: Discovery
    ) -> "_Compared":
        settings = repository.settings
        shown = await self._source.revisions(settings.namespace, settings.name)
        existing = {entry.name: entry for entry in self._index.revisions(settings.namespace, settings.name)}
        pending = {parcel.revision for parcel in await self._target.outbox.heads(settings.key)}
        comparison = await repository.run(compare, settings, discovery.revisions, shown, existing, pending)
        for item, older in comparison.unpushed:
            await self._adopt_draft(repository, comparison, item, older)
        return _Compared(planned, comparison)

    async def _adopt_draft(
        self, repository: RegisteredRepository, comparison: Comparison, item: Json, older: FoundRevision | None
    ) -> None:
        """Take over a draft whose files the old server has and no remote."""
        namespace, name = name_of(item)
        files = await self._source.files(namespace, name)
        if files is None:
            said = "its files are not in Git and not to be had from the old server; push the draft, or give its PackageRevisionResources"
            comparison.problems.append((name, said))
            return
        parent = older.commit if older is not None else repository.branch_head()
        try:
            contents = contents_of(files)
            self._draft_bytes += sum(len(file.data) for file in contents.values())
            if self._draft_bytes > MAX_BYTES:
                raise BadSource(f"more than {MAX_BYTES >> 20} MiB of drafts; take the installation over by namespaces")
            body, parcel = await repository.run(adopted_draft, repository, item, contents, parent)
        except Unfit as error:
            comparison.problems.append((name, str(error)))
            return
        comparison.written[name] = body
        comparison.parcels[name] = parcel
        comparison.notes.append((name, "has no branch in Git; its files come from the old server and will be pushed"))

    def _finish(self, planned: RepositoryPlan, comparison: Comparison) -> None:
        """Put what became of one repository into the plan."""
        plan = self._plan
        plan.repositories.append(planned)
        plan.revisions += comparison.mutations(ACTOR)
        plan.outbox += [parcel for name, parcel in comparison.parcels.items() if name in comparison.written]
        planned.there = comparison.there
        planned.revisions = sorted(line_of(body) for body in comparison.written.values())
        for name, says in comparison.notes:
            plan.note(name, says)
        for name, says in comparison.problems:
            plan.refuse(name, says)
        if len(plan.revisions) > MAX_OBJECTS:
            raise BadSource(f"more than {MAX_OBJECTS} package revisions; take the installation over by namespaces")


class _Compared(NamedTuple):
    planned: RepositoryPlan
    comparison: Comparison
