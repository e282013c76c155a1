"""Lets go of package revisions that a variant does not keep any more, and of the variant itself.

Source: ``variants.md`` 2.5 step 2 and 2.12; S0, "Adoption and deletion policies".
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from controllers.packagevariant.failures import NotEnsured, Overtaken, Reason
from controllers.packagevariant.passes import Pass
from krm.api.revision_name import RevisionName
from krm.client.errors import Unanswered
from krm.client.resources import PACKAGE_VARIANTS
from krm.meta.errors import Conflict, Forbidden, NotFound, StatusError, TooManyRequests
from krm.variants.ownership import rewritten
from krm.variants.retirement import Delete, Nothing, Retirement, Rewrite, retirement
from krm.variants.revisions import DELETION_PROPOSED, Revision
from krm.variants.vocabulary import FINALIZER
from krm.variants.workspaces import next_workspace

Json = dict[str, Any]

TRIES: Final = 3
"""Of one write, when others write at the same time."""


class Retiring:
    """Applies the deletion policy."""

    def __init__(self, current: Pass, *, going: bool) -> None:
        """``going``: The variant is being deleted, so that nothing may be left that belongs to it."""
        self._pass = current
        self._going = going

    async def retire(self, revision: Revision) -> None:
        """Delete, propose for deletion or release one package revision, whichever its lifecycle and the policy ask for.

        What is to be done is decided on the revision as it is when it is done. Repeating it is harmless.

        Raises:
            StatusError: It is refused; a draft that is somebody's upstream, for one.
            Conflict: Others write it all the time, or hold it.
            Unanswered: It may have been done.
        """
        failure: StatusError | Unanswered | None = None
        for _ in range(TRIES):
            decision = self._decide(revision)
            if isinstance(decision, Nothing):
                return
            if isinstance(decision, Rewrite):
                await self._rewrite(revision)
                return
            try:
                await self._pass.writer.delete(revision)
            except (Conflict, Forbidden, Unanswered) as error:
                failure, before = error, revision
            else:
                self._pass.tell("DraftDeleted", f'deleted draft package revision "{revision.name}"')
                return
            found = await self._pass.writer.find(revision.namespace, revision.name)
            if found is None:
                self._pass.views.forget(revision.namespace, revision.name)
                return
            revision = Revision.of(found)
            if isinstance(failure, Forbidden) and revision.lifecycle == before.lifecycle:
                break
        assert failure is not None  # noqa: S101 -- the loop ran
        raise failure

    def _decide(self, revision: Revision) -> Retirement:
        variant = self._pass.variant
        return retirement(revision, orphans=variant.orphans, variant_uid=variant.uid, variant_going=self._going)

    async def _rewrite(self, revision: Revision) -> None:
        """Update a revision by what the policy says of it as it is then."""

        def change(body: Json) -> Json:
            decision = self._decide(Revision.of(body))
            if isinstance(decision, Delete):
                raise Overtaken(f'package revision "{revision.name}" is a draft again')
            return rewritten(body, decision, self._pass.variant.uid) if isinstance(decision, Rewrite) else body

        try:
            done = await self._pass.writer.change(revision, change)
        except Overtaken:
            if await self._pass.writer.find(revision.namespace, revision.name) is None:
                return
            raise
        if done.lifecycle == DELETION_PROPOSED and revision.lifecycle != DELETION_PROPOSED:
            self._pass.tell("DeletionProposed", f'proposed the deletion of package revision "{done.name}"')
        elif done.resource_version != revision.resource_version:
            self._pass.tell("RevisionReleased", f'released package revision "{done.name}"')

    # --- the variant itself ----------------------------------------------------------------------

    async def release_all(self) -> None:
        """Apply the policy to everything that the variant owns, and let the variant go once all of it is done (2.12).

        Raises:
            NotEnsured: Something could not be done (DeletionBlocked); the variant stays.
            Overtaken: Something changed meanwhile.
        """
        one, variant = self._pass, self._pass.variant
        has_finalizer = FINALIZER in (one.body["metadata"].get("finalizers") or ())
        owned = one.views.owned(variant.namespace, variant.uid)
        await self._retire_each([revision for revision in owned if not one.is_placeholder(revision)])
        if not has_finalizer:
            return
        if (unseen := await self._unseen()) is not None:
            await self._retire_each([unseen])
        await self._remove_finalizer()

    async def _retire_each(self, revisions: Sequence[Revision]) -> None:
        """Retire all of them at once: whoever deletes the variant in the foreground is not kept from its dependents by us."""
        outcomes = await asyncio.gather(*map(self.retire, revisions), return_exceptions=True)
        blocked: dict[str, BaseException] = {}
        passing: BaseException | None = None
        for revision, outcome in zip(revisions, outcomes, strict=True):
            if isinstance(outcome, StatusError | Unanswered) and not isinstance(outcome, Conflict | TooManyRequests):
                blocked[f'package revision "{revision.name}": {outcome}'] = outcome
            else:
                passing = passing or outcome
        if blocked:
            raise NotEnsured(Reason.DELETION_BLOCKED, "; ".join(sorted(blocked))) from next(iter(blocked.values()))
        if passing is not None:
            raise passing

    async def _unseen(self) -> Revision | None:
        """Return the draft that a create of unknown outcome may have made, and that no event has told of yet (I3)."""
        one, variant = self._pass, self._pass.variant
        place = (variant.downstream_repo, variant.downstream_package)
        if not all(place):
            return None
        workspace = next_workspace(one.views.revisions_of(variant.namespace, *place))
        found = await one.writer.find(variant.namespace, RevisionName(*place, workspace).object_name)
        revision = Revision.of(found) if found is not None else None
        return revision if revision is not None and revision.owned_by(variant.uid) else None

    async def _remove_finalizer(self) -> None:
        """Take our finalizer from the variant, which goes with the last one.

        Raises:
            Conflict: Others write it all the time.
            Unanswered: It may have been done.
        """
        body: Json | None = self._pass.body
        failure: Conflict | Unanswered | None = None
        for _ in range(TRIES):
            body = body or await self._fresh()
            finalizers = body["metadata"].get("finalizers") or [] if body else []
            if body is None or FINALIZER not in finalizers:
                return
            kept = [one for one in finalizers if one != FINALIZER]
            try:
                written = await self._pass.api.update(
                    PACKAGE_VARIANTS, {**body, "metadata": {**body["metadata"], "finalizers": kept}}
                )
            except NotFound:
                return
            except (Conflict, Unanswered) as error:
                failure, body = error, None
            else:
                if kept:
                    self._pass.views.wrote_variant(written)
                return
        assert failure is not None  # noqa: S101 -- the loop ran
        raise failure

    async def _fresh(self) -> Json | None:
        """Return the variant as it is now; None when it, or another one of its name, is not ours to let go."""
        variant = self._pass.variant
        try:
            found = await self._pass.api.get(PACKAGE_VARIANTS, variant.namespace, variant.name)
        except NotFound:
            return None
        return found if found["metadata"].get("uid") == variant.uid else None
