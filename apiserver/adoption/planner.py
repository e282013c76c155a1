"""Making the plan of an adoption: old server, Git and new server are read, and nothing is changed anywhere.

Source: issue 9 part 5; ADR 0034.
"""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from apiserver.adoption.company import Company
from apiserver.adoption.drafts import MAX_BYTES, adopted_draft, contents_of
from apiserver.adoption.freeze import state_of
from apiserver.adoption.objects import ACTOR, REPOSITORY, Unfit, creation
from apiserver.adoption.owners import Owners, missing_owner, without_owners
from apiserver.adoption.plan import NEW, Plan, RepositoryPlan
from apiserver.adoption.revisions import Comparison, compare, line_of
from apiserver.adoption.source import MAX_OBJECTS, BadSource, Source, name_of
from apiserver.adoption.surroundings import Surroundings
from apiserver.engine.git_check import read_everything
from apiserver.engine.package_index import PackageIndex
from apiserver.engine.registered import RegisteredRepository, RepositorySettings, read_settings
from apiserver.engine.remote_access import CA_BUNDLE, CredentialsProblem, RemoteAccess
from apiserver.resources.reading import object_key
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
        self._access = access
        self._clones = clones
        self._pool = pool
        self._wishes = wishes
        self._plan = Plan()
        self._company = Company()
        self._surroundings = Surroundings(source, target, secrets, self._plan, self._company)
        self._draft_bytes = 0

    async def plan(self) -> Plan:
        """Read everything and return the plan.

        Raises:
            BadSource: the old server cannot be read, or holds more than one run takes over.
        """
        repositories = sorted(await self._source.repositories(), key=name_of)
        if not self._wishes.only_revisions:
            self._surroundings.make_namespaces({name_of(one)[0] for one in repositories})
            for item in await self._source.variants():
                self._surroundings.take(item)
        compared = [one for item in repositories if (one := await self._repository(item)) is not None]
        if not self._wishes.only_revisions:
            await self._bring_owners(compared)
        self._plan.outer = self._company.mutations()
        for one in compared:
            self._finish(*one)
        return self._plan

    async def _bring_owners(self, compared: Sequence["_Compared"]) -> None:
        """Have the owners of everything come; package revisions whose owners are nowhere stay behind, or lose the reference."""
        bodies = [body for one in compared for body in one.comparison.written.values()]
        there = (entry.uid for one in compared for entry in one.comparison.existing.values())
        self._company.uids.update(there, (body["metadata"]["uid"] for body in bodies))
        owners = Owners(self._target, self._source, self._plan, self._company)
        await owners.take(bodies)
        owners.settle(drop=self._wishes.drop_missing_owners)
        for one in compared:
            for name, body in list(one.comparison.written.items()):
                self._settle(owners, one, name, body)

    def _settle(self, owners: Owners, one: "_Compared", name: str, body: Json) -> None:
        """Decide on a package revision by its owners."""
        about = f"{one.planned.namespace}/{name}"
        for owner in body["metadata"].get("ownerReferences") or ():
            if not owners.is_served(owner):
                named = f"{owner['kind']} {owner['name']} of {owner['apiVersion']}"
                self._plan.note(about, f"its owner {named} is of a kind that is not served here; the reference is kept")
        missing = owners.missing(body)
        if missing and self._wishes.drop_missing_owners:
            self._plan.note(about, without_owners(body, missing))
        elif missing:
            self._plan.refuse(about, [missing_owner(owner) for owner in missing])
            del one.comparison.written[name]

    # --- repositories ---------------------------------------------------------------------------

    async def _repository(self, item: Json) -> "_Compared | None":
        """Read one Repository everywhere; None when it cannot be taken over."""
        namespace, name = name_of(item)
        about = f"Repository {namespace}/{name}"
        if (body := self._surroundings.fit(REPOSITORY, item, about)) is None:
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
        names = [name for name in (settings.secret, f"{settings.namespace}{CA_BUNDLE}") if name]
        keep = not self._wishes.only_revisions
        await self._surroundings.bring_secrets(settings.namespace, names, keep=keep)
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
            self._company.uids.add(settings.uid)
        for problem in discovery.problems:
            self._plan.note(about, f"Git holds what is passed over: {problem}")
        compared = await self._compare(repository, planned, discovery)
        # A thousand clones would fill the disk.
        await asyncio.to_thread(shutil.rmtree, repository.folder, ignore_errors=True)
        return compared

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
        self._company.uids.add(here.uid)
        return planned

    # --- package revisions ------------------------------------------------------------------------

    async def _compare(
        self, repository: RegisteredRepository, planned: RepositoryPlan, discovery: Discovery
    ) -> "_Compared":
        settings = repository.settings
        shown = await self._source.revisions(settings.namespace, settings.name)
        self._plan.states[settings.key] = await repository.run(state_of, shown)
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
        planned.names = sorted(comparison.written)
        for name, says in comparison.notes:
            plan.note(f"{planned.namespace}/{name}", says)
        for name, says in comparison.problems:
            plan.refuse(f"{planned.namespace}/{name}", says)
        if len(plan.revisions) > MAX_OBJECTS:
            raise BadSource(f"more than {MAX_OBJECTS} package revisions; take the installation over by namespaces")


class _Compared(NamedTuple):
    planned: RepositoryPlan
    comparison: Comparison
