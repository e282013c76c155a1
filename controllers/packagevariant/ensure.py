"""Makes the downstream package what its variant asks for. Reads like ``variants.md`` 2.8, which it follows step by step.

It proposes, approves and publishes nothing. A pass that stops anywhere leaves the drafts it was working on gated, and the
next one goes on with them.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from controllers.packagevariant.drafts import Drafts, Source, exists
from controllers.packagevariant.evaluation import (
    Evaluation,
    UpstreamFiles,
    evaluate,
    files_of,
    is_known_applied,
    off_loop,
)
from controllers.packagevariant.failures import NotEnsured, Overtaken, Reason
from controllers.packagevariant.passes import Pass
from controllers.packagevariant.render_outcome import is_about_files, render_status_of, render_status_of_error
from controllers.packagevariant.retiring import Retiring
from controllers.packagevariant.situation import INITIAL, INJECTION_CHANGED, Situation, Trigger
from controllers.packagevariant.views import Findings
from krm.client.errors import NoAnswer
from krm.client.warnings import warnings_heard
from krm.meta.errors import Forbidden, Invalid, NotFound, StatusError
from krm.variants.downstream import Discovery, stale_owners
from krm.variants.mutation import MutationError
from krm.variants.operations import failed, pending, succeeded, with_operations
from krm.variants.ownership import adopted
from krm.variants.retirement import withdraws_deletion
from krm.variants.revisions import DELETION_PROPOSED, DRAFT, PROPOSED, PUBLISHED, Lock, Revision
from krm.variants.summary import compact, summarize
from krm.variants.upstream import Resolution
from krm.variants.vocabulary import APPLIED_INPUTS, CHANGE_SUMMARY

Json = dict[str, Any]

ADOPTED: Final = "adopted"


@dataclass(frozen=True, slots=True)
class Target:
    """A package revision that the variant keeps, as the status tells of it."""

    revision: Revision
    adopted: bool = False
    """Somebody else made it, and the variant took it over in this pass."""
    upgraded: bool = False
    """This pass upgraded it in place."""
    render_status: Json | None = None
    """How the last save of this pass was rendered; None where there was none."""


class Ensure:
    """One pass over the downstream package. What it found and did can be read from it, also when it ended in an error."""

    def __init__(self, current: Pass, upstream: Resolution, upstream_files: UpstreamFiles) -> None:
        self._pass = current
        self._situation = Situation(current, upstream)
        self._upstream_files = upstream_files
        self._drafts = Drafts(current)
        self._failure: NotEnsured | None = None
        self._found: Discovery | None = None
        self._adopted: set[str] = set()
        self._drifted: set[str] = set()
        self._conflicts: list[str] = []
        self.targets: list[Target] | None = None
        """The targets up to now; None until they were looked for."""
        self.pending_change: Json | None = None
        """Why the draft exists that this pass worked on, and what it changes."""

    async def run(self) -> None:
        """Do everything that is to be done.

        Raises:
            NotEnsured: Something cannot be done now; what could be done is done.
            Overtaken: Something changed meanwhile: look again.
            StatusError, NoAnswer: A request failed; the next pass goes on.
        """
        self._require_repository()
        found = await self._discovered()
        if not found.targets:
            self._require_free(found)
            await self._clone()
        for target in found.targets:
            await self._keep_or_note(target)
        if found.conflict is not None and self._failure is None:
            self._failure = NotEnsured(Reason.ADOPTION_CONFLICT, found.conflict.message)
        if self._failure is not None:
            raise self._failure

    @property
    def findings(self) -> Findings:
        """What is not as it should be, and is left alone."""
        revisions = [target.revision for target in self.targets or ()]
        return Findings(
            upstream=self._situation.upstream.revision,
            upstream_revisions=self._situation.upstream_revisions(),
            files=sorted(self._drifted),
            unmanaged=self._unmanaged(),
            unfulfilled=sorted({type_ for revision in revisions for type_ in revision.unfulfilled}),
        )

    def _unmanaged(self) -> Revision | None:
        newest = self._found.newest_published if self._found is not None else None
        if newest is None or newest.owned_by(self._pass.variant.uid) or newest.name in self._adopted:
            return None
        return newest

    # --- step 1: what is there --------------------------------------------------------------------------

    def _require_repository(self) -> None:
        """Write nothing for a repository that does not exist (``decisions.md`` 16)."""
        repository = self._pass.variant.downstream_repo
        if self._pass.repository(repository) is None:
            raise NotEnsured(Reason.ERROR, f'repository "{repository}" does not exist')

    async def _discovered(self) -> Discovery:
        """Look for the targets; let go of what is not one any more, and take over what is one now (2.5)."""
        found = self._found = self._situation.look()
        retiring = Retiring(self._pass, going=False)
        for revision in found.retire:
            try:
                await retiring.retire(revision)
            except Forbidden as error:  # it is somebody's upstream: that is no reason to leave the rest undone
                message = f'package revision "{revision.name}" cannot be let go: {error}'
                self._failure = self._failure or NotEnsured(Reason.ERROR, message)
        taken = {revision.name: await self._adopt(revision) for revision in found.adopt}
        self._adopted = set(taken)
        targets = tuple(taken.get(target.name, target) for target in found.targets)
        self.targets = [Target(target, adopted=target.name in taken) for target in targets]
        return replace(found, targets=targets)

    async def _adopt(self, revision: Revision) -> Revision:
        one = self._pass
        dead = {owner.uid for owner in stale_owners(one.variant, revision, one.is_alive)}

        def adopt(body: Json) -> Json:
            controllers = [each for each in Revision.of(body).owners if each.controller and each.uid not in dead]
            if any(each.uid != one.variant.uid for each in controllers):
                raise Overtaken(f'package revision "{revision.name}" has been taken over by somebody else')
            return adopted(body, one.variant, dead)

        done = await one.writer.change(revision, adopt)
        one.tell("RevisionAdopted", f'adopted package revision "{revision.name}"')
        return done

    def _require_free(self, found: Discovery) -> None:
        if found.conflict is not None:
            raise NotEnsured(Reason.ADOPTION_CONFLICT, found.conflict.message)
        if found.exists_unowned:
            raise exists(self._pass)

    async def _clone(self) -> None:
        """Make the first draft, once it is known that its mutations will not fail for what is in the upstream."""
        source = self._situation.source()
        await self._preflight()
        draft = await self._drafts.clone(source)
        self._pass.tell("DraftCreated", f'created draft "{draft.name}", a clone of "{source.revision.name}"')
        self.targets = [Target(draft)]
        await self._mutate(draft, Trigger(INITIAL, source.revision.name))

    # --- step 2: each target ----------------------------------------------------------------------------

    async def _keep_or_note(self, target: Revision) -> None:
        """Work on one target; what cannot be done about it does not keep the others from being worked on."""
        try:
            await self._keep(target)
        except NotEnsured as failure:
            self._failure = self._failure or failure

    async def _keep(self, target: Revision) -> None:
        self._conflicts = []
        if target.lifecycle == DELETION_PROPOSED:
            target = await self._restore(target)
        if self._situation.is_behind(target):
            trigger = self._situation.upgrade_trigger(target)
            await self._mutate(await self._upgrade(target, trigger), trigger)
        else:
            await self._mutate(target, self._situation.trigger(target))

    async def _restore(self, target: Revision) -> Revision:
        """Withdraw our own proposal to delete what is a target again; leave anybody else's (C-14)."""
        if target.name in self._adopted or not withdraws_deletion(target, self._pass.variant):
            message = f'the deletion of package revision "{target.name}" is proposed'
            raise NotEnsured(Reason.DOWNSTREAM_DELETION_PROPOSED, message)

        def publish(body: Json) -> Json:
            return {**body, "spec": {**body["spec"], "lifecycle": PUBLISHED}}

        restored = await self._pass.writer.change(target, publish, only_in=(DELETION_PROPOSED, PUBLISHED))
        self._replace(target, restored)
        return restored

    async def _upgrade(self, target: Revision, trigger: Trigger) -> Revision:
        """Bring the changes of the upstream in: into a new draft of what is published, into a draft itself."""
        if target.lifecycle == PROPOSED:
            raise _proposed(target)
        source, old = self._situation.source(), self._situation.old_upstream(target)
        await self._preflight()
        with warnings_heard() as self._conflicts:  # what both sides had changed; the server tells of nothing else here
            if not target.is_published:
                return await self._upgrade_in_place(target, old, source, trigger)
            self._require_newest(target)
            draft = await self._drafts.upgrade(target, old, source)
        self._pass.tell("DraftCreated", f'created draft "{draft.name}": {trigger}')
        self._replace(target, draft)
        return draft

    async def _upgrade_in_place(
        self, draft: Revision, old: Revision | Lock, source: Source, trigger: Trigger
    ) -> Revision:
        try:
            done = await self._drafts.upgrade_in_place(draft, old, source)
        except Invalid as error:
            reason = Reason.RENDER_FAILED if is_about_files(error) else Reason.ERROR
            raise NotEnsured(reason, f'draft "{draft.name}" cannot be upgraded: {error}') from error
        if done.upstream_lock == draft.upstream_lock:  # a server without R4 ignores the task (C-08)
            message = f'cannot update upstream of downstream "{draft.name}" when it is not published'
            raise NotEnsured(Reason.ERROR, message)
        self._pass.tell("DraftUpgraded", f'upgraded draft "{draft.name}": {trigger}')
        self._replace(draft, done, upgraded=True)
        return done

    # --- steps c to e: mutations ------------------------------------------------------------------------

    async def _mutate(self, target: Revision, trigger: Trigger) -> None:
        """Apply the mutations where they change something that was not applied before (2.10)."""
        if is_known_applied(self._pass, target):
            await self._pass.injectables()
            return
        evaluation = await self._evaluate(target)
        trigger = _with_sources(trigger, evaluation)
        self._drifted.update(evaluation.drifted)
        if not evaluation.needs_write:
            await self._finish(target, evaluation, trigger)
        elif target.lifecycle == PROPOSED:
            raise _proposed(target)
        elif target.is_published:
            await self._edit(target, evaluation, trigger)
        else:
            await self._write(target, evaluation, trigger)

    async def _edit(self, target: Revision, evaluation: Evaluation, trigger: Trigger) -> None:
        """Change what is published, in a new draft."""
        self._require_newest(target)
        draft = await self._drafts.edit(target)
        self._pass.tell("DraftCreated", f'created draft "{draft.name}": {trigger}')
        self._replace(target, draft)
        changed = await self._evaluate(draft)
        if changed.needs_write:
            await self._write(draft, changed, trigger, base=(target.name, evaluation.before))
        else:
            await self._finish(draft, changed, trigger)

    async def _evaluate(self, target: Revision) -> Evaluation:
        try:
            return await evaluate(self._pass, target)
        except MutationError as error:
            await self._note_failure(target, str(error))
            raise NotEnsured(Reason.MUTATION_FAILED, str(error)) from error

    async def _write(
        self,
        draft: Revision,
        evaluation: Evaluation,
        trigger: Trigger,
        base: tuple[str, Mapping[str, str]] | None = None,
    ) -> None:
        """Write the mutations behind a closed gate, and open it (2.11)."""
        if draft.operations_complete or not draft.operations_gate:
            draft = await self._close(draft)
            evaluation = await self._evaluate(draft)  # the Kptfile says now that the gate is closed
        saved = await self._save(draft, evaluation)
        self._replace(draft, draft, render_status=render_status_of(saved))
        self._pass.tell("DraftUpdated", f'updated draft "{draft.name}": {trigger}')
        after = (saved.get("spec") or {}).get("resources") or evaluation.mutation.resources
        summary = await self._summary(draft, after, trigger, base)
        await self._open(draft, evaluation.mark, summary)

    async def _save(self, draft: Revision, evaluation: Evaluation) -> Json:
        try:
            return await self._pass.writer.save(evaluation.files, evaluation.mutation.resources)
        except Invalid as error:
            if not is_about_files(error):
                raise Overtaken(f'draft "{draft.name}": {error}') from error
            self._replace(draft, draft, render_status=render_status_of_error(error))
            await self._note_failure(draft, str(error))
            raise NotEnsured(Reason.RENDER_FAILED, str(error)) from error
        except StatusError as error:
            await self._note_failure(draft, str(error))
            raise

    async def _finish(self, target: Revision, evaluation: Evaluation, trigger: Trigger) -> None:
        """Leave the files as they are; note what they were made with, and finish what an earlier pass began."""
        if target.lifecycle == PROPOSED or (evaluation.applied and (target.is_published or _is_open(target))):
            return
        if target.is_published or _is_open(target):
            await self._annotate(target, evaluation.mark)
            return
        summary = await self._summary(target, evaluation.before, trigger)
        await self._open(target, evaluation.mark, summary)

    # --- the gate -----------------------------------------------------------------------------------------

    async def _close(self, draft: Revision) -> Revision:
        closed = pending(self._pass.variant.name)
        done = await self._pass.writer.change(draft, lambda body: with_operations(body, closed), only_in=(DRAFT,))
        self._replace(draft, done)
        return done

    async def _open(self, draft: Revision, mark: str, summary: Json) -> None:
        """Say in one write that everything is done, with what, and what that changed."""
        noted = {APPLIED_INPUTS: mark, CHANGE_SUMMARY: compact(summary)}

        def opened(body: Json) -> Json:
            return _annotated(with_operations(body, succeeded()), noted)

        done = await self._pass.writer.change(draft, opened, only_in=(DRAFT,))
        self.pending_change = summary
        self._replace(draft, done)

    async def _annotate(self, target: Revision, mark: str) -> None:
        done = await self._pass.writer.change(target, lambda body: _annotated(body, {APPLIED_INPUTS: mark}))
        self._replace(target, done)

    async def _note_failure(self, target: Revision, why: str) -> None:
        """Say in a draft's condition what failed, as far as that is possible; the variant's own condition says it anyway."""
        if target.lifecycle != DRAFT:
            return
        condition = failed(why)
        with suppress(StatusError, NoAnswer, Overtaken):
            await self._pass.writer.change(target, lambda body: with_operations(body, condition), only_in=(DRAFT,))

    # --- what has to hold before a draft is made -----------------------------------------------------------

    async def _preflight(self) -> None:
        upstream = self._situation.upstream.revision
        try:
            await self._upstream_files.check(self._pass, upstream)
        except MutationError as error:
            raise NotEnsured(Reason.MUTATION_FAILED, str(error)) from error
        except NotFound as error:
            raise Overtaken(f'upstream package revision "{upstream.name}" is gone') from error

    def _require_newest(self, base: Revision) -> None:
        """Refuse to make a draft that would drop the changes of a newer published revision (C-11)."""
        newer = self._found.diverged_from(base) if self._found is not None else None
        if newer is not None:
            message = (
                f'package revision "{newer.name}" was published after "{base.name}" and is not owned by this package '
                'variant; set spec.adoptionPolicy to "adoptExisting" to go on from it'
            )
            raise NotEnsured(Reason.DOWNSTREAM_DIVERGED, message)

    # --- what the status tells -------------------------------------------------------------------------------

    async def _summary(
        self,
        draft: Revision,
        after: Mapping[str, str],
        trigger: Trigger,
        base: tuple[str, Mapping[str, str]] | None = None,
    ) -> Json:
        """Summarize how a draft differs from what is published; from nothing where nothing is."""
        if base is None:
            published = self._situation.newest_owned()
            base = (published, await files_of(self._pass, published))
        name, before = base
        conflicts = tuple(self._conflicts)
        return await off_loop(
            after,
            lambda: summarize(
                before,
                after,
                draft=draft.name,
                base=name,
                trigger=trigger.name,
                detail=trigger.detail,
                conflicts=conflicts,
            ),
        )

    def _replace(
        self, old: Revision, new: Revision, *, render_status: Json | None = None, upgraded: bool = False
    ) -> None:
        """Put what became of a target, or the draft that was made of it, in its place."""
        self.targets = [
            replace(
                target,
                revision=new,
                adopted=target.adopted and old.name == new.name,
                upgraded=upgraded or (target.upgraded and old.name == new.name),
                render_status=render_status or (target.render_status if old.name == new.name else None),
            )
            if target.revision.name == old.name
            else target
            for target in self.targets or ()
        ]


def _with_sources(trigger: Trigger, evaluation: Evaluation) -> Trigger:
    """Name what is injected, where that is why a draft is made or changed."""
    if trigger.name != INJECTION_CHANGED:
        return trigger
    named = sorted({f'{one.kind} "{one.name}"' for one in evaluation.mutation.sources if one.name})
    return Trigger(trigger.name, f"injected now: {', '.join(named) or 'nothing'}")


def _is_open(revision: Revision) -> bool:
    return revision.operations_gate and revision.operations_complete


def _proposed(target: Revision) -> NotEnsured:
    message = f'package revision "{target.name}" is proposed, and would have to be changed: approve or reject it'
    return NotEnsured(Reason.DOWNSTREAM_PROPOSED, message)


def _annotated(body: Json, annotations: Mapping[str, str]) -> Json:
    metadata = body["metadata"]
    return {**body, "metadata": {**metadata, "annotations": {**(metadata.get("annotations") or {}), **annotations}}}
