"""Takes the next step of one package revision, as long as its policy asks for one.

Each decision is made of what the server says now, and written with the version that was read: whoever changes the package
in between is asked about again. Source: ``variants.md`` 6.3.
"""

import asyncio
import datetime as dt
from collections.abc import Callable
from typing import Any, Final, Protocol

import structlog

from controllers.approval.caches import Caches, Key
from controllers.approval.controller_metrics import ApprovalMetrics, Asked
from controllers.runtime.controller import Result
from controllers.runtime.status import EventRecorder
from krm.client.client import KubeClient
from krm.client.resources import PACKAGE_REVISIONS, PACKAGE_VARIANTS
from krm.meta.errors import Conflict, Forbidden, Invalid, NotFound
from krm.variants.approval import (
    ApprovingVariant,
    Candidate,
    Decision,
    InvalidPolicy,
    Policy,
    Step,
    Surroundings,
    decide,
    policy_of,
)
from krm.variants.revisions import PROPOSED, PUBLISHED
from krm.variants.vocabulary import KIND

Json = dict[str, Any]
log = structlog.get_logger()

TRIES: Final = 5
"""Of one step, when others write at the same time."""
PAUSE_SECONDS: Final = 0.1
"""After a conflict: whoever has the package is at work on it."""
LONGEST_REFUSED: Final = 300.0
"""Seconds until something that the server refused is tried again at the latest."""
INVALID: Final = "InvalidApprovalPolicy"
REFUSED: Final = "ApprovalRefused"
_SAID: Final = {
    Step.PROPOSE: "proposed",
    Step.PUBLISH: "published",
    Step.DELETE: "the proposed deletion was approved",
}


class Released(Protocol):
    """Remembers who owned what was let go with a proposal to delete it."""

    def owner(self, candidate: Candidate) -> ApprovingVariant | None:
        """Return the variant that is gone or going, and has just let go of this package revision."""
        ...


class Approver:
    """Decides about package revisions, one at a time each, and does what is decided."""

    def __init__(
        self,
        client: KubeClient,
        caches: Caches,
        recorder: EventRecorder,
        released: Released,
        counts: ApprovalMetrics,
        clock: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
    ) -> None:
        self._client, self._caches, self._recorder = client, caches, recorder
        self._released, self._counts, self._clock = released, counts, clock

    async def reconcile(self, key: Key) -> Result:
        """Take all steps that can be taken now.

        Cancelled or repeated at any point, nothing is done twice: a step that was taken is not asked for any more.

        Raises:
            StatusError: The server cannot do it now, or others write all the time.
            NoAnswer: It may have been done.
        """
        known = self._caches.candidate(key)
        if known is None or self._caches.switched_off:
            return Result()
        try:
            if (decision := self._decide(known, self.owner(known))).step is None:
                return Result(requeue_after=decision.recheck)
            return await self._steps(key)
        except InvalidPolicy as error:
            self._recorder.event(_described(known), "Warning", INVALID, str(error))
            return Result()

    def owner(self, candidate: Candidate) -> ApprovingVariant | None:
        """Return the variant that a package revision belongs to, as the cache knows it."""
        for reference in candidate.revision.owners:
            if reference.kind == KIND and (found := self._caches.variant(candidate.namespace, reference.uid)):
                return found
        return self._released.owner(candidate)

    # --- deciding -----------------------------------------------------------------------------------

    def _decide(self, candidate: Candidate, owner: ApprovingVariant | None) -> Decision:
        if _is_strange(candidate, owner):
            return Decision(None, "the variant that it belongs to is not known")
        policy = policy_of(candidate, owner) or Policy()
        return decide(candidate, policy, owner, self._surroundings(candidate, owner))

    def _surroundings(self, candidate: Candidate, owner: ApprovingVariant | None) -> Surroundings:
        one, namespace = candidate.revision, candidate.namespace
        of_package = self._caches.of_package(namespace, one.repository, one.package)
        if owner is None:
            return Surroundings(of_package, (), "", self._clock())
        upstream = owner.variant.upstream
        return Surroundings(
            of_package,
            self._caches.of_package(namespace, upstream.repo, upstream.package),
            self._caches.branch(namespace, upstream.repo),
            self._clock(),
        )

    # --- doing --------------------------------------------------------------------------------------

    async def _steps(self, key: Key) -> Result:
        """Decide again with what the server says, and do it, until nothing is asked for."""
        failure: Conflict | None = None
        for _ in range(TRIES):
            try:
                return await self._until_done(key)
            except NotFound:
                return Result()
            except Conflict as error:
                failure = error
                await asyncio.sleep(PAUSE_SECONDS)
        assert failure is not None  # noqa: S101 -- the loop ran
        raise failure

    async def _until_done(self, key: Key) -> Result:
        body: Json | None = await self._client.get(PACKAGE_REVISIONS, *key)
        while body is not None and not self._caches.switched_off:
            candidate = Candidate.of(body)
            # Read after the package revision: what is written holds only if that has not changed since.
            owner = await self._fresh_owner(candidate)
            decision = self._decide(candidate, owner)
            if decision.step is None:
                return Result(requeue_after=decision.recheck)
            asked = _asked(decision.step, candidate, owner)
            try:
                body = await self._do(decision.step, body, candidate)
            except (Forbidden, Invalid) as error:
                self._counts.refused[asked] += 1
                self._recorder.event(_described(candidate), "Warning", REFUSED, error.message)
                return Result(back_off=LONGEST_REFUSED)
            self._counts.taken[asked] += 1
            self._tell(decision, candidate)
        return Result()

    async def _fresh_owner(self, candidate: Candidate) -> ApprovingVariant | None:
        """Return the variant that a package revision belongs to, as the server has it; one that is gone as it was."""
        owner = self.owner(candidate)
        if owner is None:
            return None
        try:
            found = ApprovingVariant.of(await self._client.get(PACKAGE_VARIANTS, owner.namespace, owner.name))
        except NotFound:
            found = None
        return found if found is not None and found.uid == owner.uid else self._released.owner(candidate)

    async def _do(self, step: Step, body: Json, candidate: Candidate) -> Json | None:
        """Take a step; return the package revision as it is then, None if nothing can follow."""
        with self._caches.revisions.writing(candidate.namespace, candidate.name):
            if step is Step.DELETE:
                one = candidate.revision
                version = one.resource_version
                await self._client.delete(
                    PACKAGE_REVISIONS, one.namespace, one.name, uid=one.uid, resource_version=version
                )
                return None
            publishes = step is Step.PUBLISH
            wanted = {**body, "spec": {**body["spec"], "lifecycle": PUBLISHED if publishes else PROPOSED}}
            answer = await self._client.update(PACKAGE_REVISIONS, wanted, subresource="approval" if publishes else "")
            self._caches.revisions.wrote(answer)
        return None if publishes else answer

    def _tell(self, decision: Decision, candidate: Candidate) -> None:
        step = decision.step
        assert step is not None  # noqa: S101 -- it was done
        log.info("approved", step=step.value, revision=candidate.name, namespace=candidate.namespace, why=decision.why)
        self._recorder.event(_described(candidate), "Normal", step.value, f"{_SAID[step]}: {decision.why}")


def _asked(step: Step, candidate: Candidate, owner: ApprovingVariant | None) -> Asked:
    policy = policy_of(candidate, owner) or Policy()
    return Asked(step, policy.publishes, "variant" if owner and owner.approval is not None else "annotation")


def _is_strange(candidate: Candidate, owner: ApprovingVariant | None) -> bool:
    """Tell whether a variant owns a package revision that we know nothing of: not yet, or not any more."""
    return owner is None and any(reference.kind == KIND for reference in candidate.revision.owners)


def _described(candidate: Candidate) -> Json:
    """Return what an Event needs to name its object."""
    one = candidate.revision
    meta = {"namespace": one.namespace, "name": one.name, "uid": one.uid, "resourceVersion": one.resource_version}
    return {"apiVersion": PACKAGE_REVISIONS.api_version, "kind": PACKAGE_REVISIONS.kind, "metadata": meta}
