"""Makes the drafts of a variant: one for one reason, also when an answer is lost. Source: ``variants.md`` 2.6, I2 to I4."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from controllers.packagevariant.failures import NotEnsured, Overtaken, Reason
from controllers.packagevariant.passes import Pass
from krm.client.errors import Unanswered
from krm.meta.errors import AlreadyExists
from krm.variants.creation import clone_body, edit_body, in_place_upgrade, reference, upgrade_body
from krm.variants.revisions import DRAFT, Lock, Revision
from krm.variants.vocabulary import MARKER_LABEL
from krm.variants.workspaces import next_workspace

Json = dict[str, Any]

MOST_NUMBERS: Final = 5
"""Workspace numbers tried when others have taken the next ones."""


@dataclass(frozen=True, slots=True)
class Source:
    """The upstream that drafts are made of, and how tasks name it."""

    revision: Revision
    pinned: Json | None
    """Its Git address at one commit, where it follows a branch (C-10)."""
    secret: str
    """Name of the Secret of its repository; empty where there is none."""

    @property
    def reference(self) -> Json:
        """What an upgrade names it by."""
        return reference(self.pinned or self.revision)

    def reference_of(self, old: Revision | Lock) -> Json:
        """Return what an upgrade names the former upstream by; our Secret is for other places of our repository, too."""
        own = self.revision.self_lock
        is_near = isinstance(old, Lock) and own is not None and own.place[0] == old.place[0]
        return reference(old, self.secret if is_near else "")


class Drafts:
    """Creates drafts, and upgrades them in place."""

    def __init__(self, current: Pass) -> None:
        self._pass = current

    async def clone(self, source: Source) -> Revision:
        """Create the first draft of the downstream package.

        Raises:
            NotEnsured: The package exists and is not ours (DownstreamExists), or there were too many drafts lately.
            Overtaken: The draft is there already.
            Unanswered: It is not there; it may be yet.
        """
        variant = self._pass.variant
        place = (variant.downstream_repo, variant.downstream_package)
        return await self._create(place, lambda name: clone_body(variant, source.revision, name, source.pinned))

    async def edit(self, base: Revision) -> Revision:
        """Create a draft that is a copy of a published revision; raises as :meth:`clone`."""
        body = await self._pass.writer.body(base)
        place = (base.repository, base.package)
        return await self._create(place, lambda name: edit_body(self._pass.variant, body, name))

    async def upgrade(self, base: Revision, old: Revision | Lock, new: Source) -> Revision:
        """Create a draft that is a published revision with the changes of its upstream; raises as :meth:`clone`."""
        body = await self._pass.writer.body(base)
        before, after = new.reference_of(old), new.reference
        place = (base.repository, base.package)
        return await self._create(place, lambda name: upgrade_body(self._pass.variant, body, before, after, name))

    async def upgrade_in_place(self, draft: Revision, old: Revision | Lock, new: Source) -> Revision:
        """Merge the changes of its upstream into a draft, whose gate is closed by the same write (R4).

        Raises:
            Overtaken: It is no draft any more.
        """

        def upgraded(body: Json) -> Json:
            wanted = in_place_upgrade(body, new.reference_of(old), new.reference, self._pass.variant.name)
            return body if _is_done(body, draft, wanted["spec"]["tasks"][-1]) else wanted

        return await self._pass.writer.change(draft, upgraded, only_in=(DRAFT,))

    # --- one draft for one reason ------------------------------------------------------------------

    async def _create(self, place: tuple[str, str], body_in: Callable[[str], Json]) -> Revision:
        """Create what ``body_in`` gives for the next workspace of the package at ``place`` (repository, package)."""
        one = self._pass
        if why := one.guard.refusal(one.key, one.variant.generation):
            raise NotEnsured(Reason.DRAFT_CHURN, why)
        siblings, taken = one.views.revisions_of(one.variant.namespace, *place), list[str]()
        self._require_none(siblings)
        for _ in range(MOST_NUMBERS):
            workspace = next_workspace(siblings, taken)
            made = await self._post(body_in(workspace))
            if made is not None:
                one.guard.made(one.key, one.variant.generation)
                return made
            taken.append(workspace)
        raise NotEnsured(Reason.ERROR, f"the names of {MOST_NUMBERS} drafts in a row are taken in {'/'.join(place)}")

    def _require_none(self, siblings: Iterable[Revision]) -> None:
        """Refuse a second draft where one of ours has turned up since the pass looked: a create done late (I3).

        Raises:
            Overtaken: There is one.
        """
        uid = self._pass.variant.uid
        for one in siblings:
            if one.owned_by(uid) and not one.is_published and not one.deleting:
                raise Overtaken(f'package revision "{one.name}" was made already')

    async def _post(self, body: Json) -> Revision | None:
        """Create one draft; None where its name belongs to somebody else."""
        try:
            return await self._pass.writer.create(body)
        except (AlreadyExists, Unanswered) as error:
            await self._meet(body, error)
            return None

    async def _meet(self, body: Json, failure: AlreadyExists | Unanswered) -> None:
        """Find out what a create met, or whether it was done after all (I3): a new number alone is no answer to either.

        Raises:
            Overtaken: The draft is there, and ours: the next look at the downstream finds it.
            NotEnsured: The package is there, but no revision of this name: a clone is refused for that.
            Unanswered: It is not there; it may be yet.
        """
        one, metadata = self._pass, body["metadata"]
        found = await one.writer.find(metadata["namespace"], metadata["name"])
        if found is not None and _is_ours(found, one.variant.uid):
            one.writer.learned(found)
            raise Overtaken(f'package revision "{metadata["name"]}" was made already')
        if found is None and isinstance(failure, AlreadyExists):
            raise exists(one) from failure
        if found is None:
            raise failure


def exists(current: Pass) -> NotEnsured:
    """Say that the downstream package belongs to somebody else (``decisions.md`` 16)."""
    variant = current.variant
    place = f'package "{variant.downstream_package}" already exists in repository "{variant.downstream_repo}"'
    if variant.adopts:
        why = "has no revision that could be taken over: only its branch has it, or its revisions are being deleted"
    else:
        why = 'is not owned by this package variant; set spec.adoptionPolicy to "adoptExisting" to take it over'
    return NotEnsured(Reason.DOWNSTREAM_EXISTS, f"{place} and {why}")


def _is_ours(body: Json, uid: str) -> bool:
    labels = body["metadata"].get("labels") or {}
    return Revision.of(body).owned_by(uid) or labels.get(MARKER_LABEL) == uid


def _is_done(body: Json, before: Revision, task: Json) -> bool:
    """Whether the upgrade was done by a request of ours whose answer was lost."""
    is_moved = Lock.of((body.get("status") or {}).get("upstreamLock")) != before.upstream_lock
    return is_moved and (body["spec"].get("tasks") or [])[-1:] == [task]
