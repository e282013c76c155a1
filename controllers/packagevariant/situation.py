"""How things stand between a variant's upstream and downstream: read from the views, nothing is written.

Source: ``variants.md`` 2.4 to 2.7 and C-11.
"""

from dataclasses import dataclass
from typing import Any, Final

import structlog

from controllers.packagevariant.drafts import Source
from controllers.packagevariant.failures import NotEnsured, Reason
from controllers.packagevariant.passes import Pass
from krm.variants.downstream import Discovery, discover
from krm.variants.locks import UpstreamNeverPublished, old_upstream, up_to_date
from krm.variants.revisions import DRAFT, Lock, Revision
from krm.variants.upstream import Resolution, falls_below, pinned
from krm.variants.vocabulary import APPLIED_INPUTS

Json = dict[str, Any]
log = structlog.get_logger()

INITIAL: Final = "Initial"
UPSTREAM_CHANGED: Final = "UpstreamChanged"
SPEC_CHANGED: Final = "SpecChanged"
INJECTION_CHANGED: Final = "InjectionChanged"


@dataclass(frozen=True, slots=True)
class Trigger:
    """Why a draft is made or changed (``variants.md`` 6.8)."""

    name: str
    detail: str

    def __str__(self) -> str:
        return f"{self.name}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Situation:
    """One variant, its upstream, and what there is of its downstream."""

    current: Pass
    upstream: Resolution

    @property
    def upstream_branch(self) -> str:
        """The branch of the upstream's repository."""
        return self.current.branch(self.upstream.revision.repository)

    def look(self) -> Discovery:
        """Look for what there is of the downstream package, and for what else the variant owns (2.5)."""
        one, variant = self.current, self.current.variant
        of_package = one.views.revisions_of(variant.namespace, variant.downstream_repo, variant.downstream_package)
        candidates = {each.name: each for each in (*of_package, *one.views.owned(variant.namespace, variant.uid))}
        branches = {each.repository: one.branch(each.repository) for each in candidates.values()}
        return discover(variant, list(candidates.values()), branches, one.is_alive)

    def upstream_revisions(self) -> list[Revision]:
        """Return all revisions of the upstream package, by name."""
        one, spec = self.current, self.current.variant.upstream
        revisions = one.views.revisions_of(one.variant.namespace, spec.repo, spec.package)
        return sorted(revisions, key=lambda each: each.name)

    def source(self) -> Source:
        """Return the upstream as tasks name it.

        Raises:
            UpstreamNotFound: It follows a branch and does not say at which commit it is.
        """
        upstream = self.upstream.revision
        repository = self.current.repository(upstream.repository)
        secret = repository.secret if repository is not None else ""
        return Source(upstream, pinned(upstream, self.upstream_branch, secret), secret)

    def is_behind(self, target: Revision) -> bool:
        """Whether a target is made of something else than the upstream is now (2.4, 2.7)."""
        if self.upstream.went_backwards or falls_below(target, self.upstream):
            return False
        state = up_to_date(target, self.upstream.revision, upstream_branch=self.upstream_branch)
        if state.warning:
            log.warning("taken as up to date", revision=target.name, why=state.warning)
        return not state.yes

    def old_upstream(self, target: Revision) -> Revision | Lock:
        """Return what a target is made of (2.6).

        Raises:
            NotEnsured: Its lock names what cannot be.
        """
        known = {each.name: each for each in self.upstream_revisions()}
        if (lock := target.upstream_lock) is not None:
            known |= {each.name: each for each in self.current.views.locked_at(target.namespace, lock)}
        try:
            return old_upstream(target, [known[name] for name in sorted(known)])
        except UpstreamNeverPublished as error:
            raise NotEnsured(Reason.ERROR, str(error)) from error

    def newest_owned(self) -> str:
        """Return the name of the published revision that a draft will follow; empty where nothing is published."""
        one, variant = self.current, self.current.variant
        siblings = one.views.revisions_of(variant.namespace, variant.downstream_repo, variant.downstream_package)
        published = [each for each in siblings if each.is_published and each.owned_by(variant.uid)]
        newest = max(published, key=lambda each: each.revision, default=None)
        return newest.name if newest is not None else ""

    def trigger(self, target: Revision) -> Trigger:
        """Say why a target that is made of the right upstream would be worked on.

        A draft that was never finished is worked on for the reason that it was made for.
        """
        variant, upstream = self.current.variant, self.upstream.revision.name
        unfinished = APPLIED_INPUTS not in target.annotations and target.lifecycle == DRAFT
        if unfinished and target.task == "clone":
            return Trigger(INITIAL, upstream)
        if unfinished and target.task == "upgrade":
            return Trigger(UPSTREAM_CHANGED, f"now {upstream}")
        if self.current.status.get("observedGeneration") != variant.generation or not variant.injectors:
            return Trigger(SPEC_CHANGED, f"generation {variant.generation}")
        return Trigger(INJECTION_CHANGED, "an injected object, or what is selected of them")

    def upgrade_trigger(self, target: Revision) -> Trigger:
        """Say from what to what a target is upgraded."""
        lock = target.upstream_lock
        before = lock.ref or lock.commit if lock is not None else "an unknown upstream"
        return Trigger(UPSTREAM_CHANGED, f"from {before} to {self.upstream.revision.name}")
