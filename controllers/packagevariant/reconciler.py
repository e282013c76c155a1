"""Brings one PackageVariant and its downstream package together. Source: ``variants.md`` 2.1.

It reads the views, decides with :mod:`krm.variants` and writes through the API. A pass over a variant in which nothing has
changed sends no request. A pass that fails anywhere leaves what the next one goes on from.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, cast

from controllers.packagevariant.api import Api
from controllers.packagevariant.cached_values import CachedVariant
from controllers.packagevariant.churn import ChurnGuard
from controllers.packagevariant.drift import report_drift
from controllers.packagevariant.ensure import Ensure
from controllers.packagevariant.evaluation import UpstreamFiles
from controllers.packagevariant.failures import NotEnsured, Overtaken
from controllers.packagevariant.passes import Contents, Pass
from controllers.packagevariant.preview import preview
from controllers.packagevariant.report import Report
from controllers.packagevariant.retiring import Retiring
from controllers.packagevariant.revision_writer import RevisionWriter
from controllers.packagevariant.views import DraftGuard, DriftReport, Findings, Key, Views
from controllers.runtime.controller import Result
from controllers.runtime.status import EventRecorder, set_status
from krm.client.client import KubeClient
from krm.client.errors import NoAnswer, Unreachable
from krm.client.resources import PACKAGE_VARIANTS
from krm.meta.conditions import timestamp
from krm.meta.errors import Conflict, StatusError, TooManyRequests
from krm.variants.conditions import VALIDATION_ERROR
from krm.variants.upstream import Resolution, UpstreamError, resolve
from krm.variants.validation import problems
from krm.variants.variant import Variant
from krm.variants.vocabulary import FINALIZER

Json = dict[str, Any]

ROUNDS: Final = 4
"""Looks at one variant in a row, when what it is decided on changes all the time."""
MOST_BACK_OFF: Final = 300.0
"""Seconds between two tries of what an event may settle any time (``variants.md`` 2.14)."""
AT_ONCE: Final = 1.0
"""Seconds before a variant that others change all the time is looked at again."""


class PackageVariantReconciler:
    """Reconciles PackageVariants, any number of them at a time but each only once.

    ``guard`` stops a variant that makes draft after draft; by default one that reads ``views``. ``clock`` gives the time.
    """

    def __init__(
        self,
        client: Api,
        views: Views,
        recorder: EventRecorder,
        *,
        guard: DraftGuard | None = None,
        drift: DriftReport = report_drift,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._api = client
        self._views = views
        self._recorder = recorder
        self._guard = guard or ChurnGuard(self._cached, views.owned, clock=lambda: clock().timestamp())
        self._drift = drift
        self._clock = clock
        self._upstream_files = UpstreamFiles()
        self._warned: dict[Key, tuple[tuple[str, str], ...]] = {}
        self._evaluated: dict[Key, Contents] = {}

    async def reconcile(self, key: Key) -> Result:
        """Do what one variant needs now; harmless to repeat, and to cut short anywhere.

        Raises:
            StatusError, NoAnswer, WriteRefused: A request failed; told in the status as far as it is worth it.
        """
        for _ in range(ROUNDS):
            body = self._views.variant(*key)
            if body is None:
                self._warned.pop(key, None)
                self._evaluated.pop(key, None)
                return Result()
            try:
                return await self._work(self._pass(key, body))
            except Overtaken:
                continue
        return Result(requeue_after=AT_ONCE)

    def _cached(self, key: Key) -> CachedVariant | None:
        body = self._views.variant(*key)
        return CachedVariant.of(body) if body is not None else None

    def _pass(self, key: Key, body: Json) -> Pass:
        return Pass(
            key=key,
            body=body,
            variant=Variant.of(body),
            api=self._api,
            views=self._views,
            writer=RevisionWriter(self._api, self._views),
            recorder=self._recorder,
            guard=self._guard,
            evaluated=self._evaluated,
        )

    async def _work(self, current: Pass) -> Result:
        report = Report(current.status, current.variant.generation, self._clock())
        if current.body["metadata"].get("deletionTimestamp"):
            return await self._release(current, report)
        if current.variant.paused:
            return await self._preview(current, report)
        current = await self._with_finalizer(current)
        if found := problems(current.body):
            report.stalled(VALIDATION_ERROR, "; ".join(found))
            await self._tell(current, report)
            return Result()
        try:
            return await self._ensure(current, report, self._resolve(current))
        except UpstreamError as error:
            report.stalled(error.reason, str(error))
            await self._tell(current, report)
            return _again()

    # --- a variant that is to be there ------------------------------------------------------------------

    async def _with_finalizer(self, current: Pass) -> Pass:
        """Keep the variant from going before its package revisions are dealt with; the metadata alone is written."""
        metadata = current.body["metadata"]
        finalizers = metadata.get("finalizers") or []
        if FINALIZER in finalizers:
            return current
        wanted = {**current.body, "metadata": {**metadata, "finalizers": [*finalizers, FINALIZER]}}
        written = await self._api.update(PACKAGE_VARIANTS, wanted)
        self._views.wrote_variant(written)
        return replace(current, body=written)

    def _resolve(self, current: Pass) -> Resolution:
        """Find out what the upstream stands for; warnings are told once.

        Raises:
            UpstreamError: It stands for nothing that can be used.
        """
        variant, spec = current.variant, current.variant.upstream
        candidates = self._views.revisions_of(variant.namespace, spec.repo, spec.package)
        found = resolve(spec, candidates, current.branch(spec.repo), previous=current.status.get("upstream"))
        if found.warnings != self._warned.get(current.key, ()):
            for reason, message in found.warnings:
                current.tell(reason, message, warning=True)
            self._warned[current.key] = found.warnings
        return found

    async def _ensure(self, current: Pass, report: Report, upstream: Resolution) -> Result:
        """Make the downstream what it should be, and tell how far that went."""
        report.upstream(upstream.seen(current.variant.upstream.tag))
        ensure = Ensure(current, upstream, self._upstream_files)
        failure: NotEnsured | StatusError | NoAnswer | None = None
        try:
            await ensure.run()
        except (Conflict, TooManyRequests, Unreachable):
            raise  # of no interest to anybody: the next pass does it
        except (NotEnsured, StatusError, NoAnswer) as error:
            failure = error
        _tell_failure(report, failure)
        if ensure.targets is not None:
            report.targets(ensure.targets, ensure.pending_change)
            self._tell_drift(current, report, ensure.findings)
        await self._tell(current, report)
        return _outcome(failure)

    # --- a variant that is paused, or going ---------------------------------------------------------------

    async def _preview(self, current: Pass, report: Report) -> Result:
        """Write nothing but the status: what would be done, and what has drifted (6.7)."""
        report.paused()
        failure: StatusError | NoAnswer | None = None
        if not problems(current.body):
            try:
                change, findings = await preview(current, self._resolve(current))
            except UpstreamError:
                report.pending(None)
            except (StatusError, NoAnswer) as error:
                failure = error  # what would change is not known yet; that it is paused is
            else:
                report.pending(change or _of_a_draft(current.status))
                self._tell_drift(current, report, findings)
        await self._tell(current, report)
        if failure is not None:
            raise failure
        return Result()

    async def _release(self, current: Pass, report: Report) -> Result:
        """Let a variant go, once everything it owns is dealt with (2.12)."""
        try:
            await Retiring(current, going=True).release_all()
        except NotEnsured as failure:
            report.blocked(failure.reason, failure.message)
            await self._tell(current, report)
            return _outcome(failure)
        await self._views.injectables(current.key, current.variant.namespace, set())
        self._warned.pop(current.key, None)
        self._evaluated.pop(current.key, None)
        return Result()

    # --- telling ---------------------------------------------------------------------------------------------

    def _tell_drift(self, current: Pass, report: Report, findings: Findings) -> None:
        report.drift(*self._drift(findings, current.status, timestamp(self._clock())))

    async def _tell(self, current: Pass, report: Report) -> None:
        """Write the status if it says anything new, and an Event if that is a failure."""
        if (news := report.news()) is not None:
            current.tell(*news, warning=True)
        # The status writer needs no more of the client than Api promises.
        written = await set_status(cast("KubeClient", self._api), PACKAGE_VARIANTS, current.body, report.status)
        if written is not None:
            self._views.wrote_variant(written)


def _tell_failure(report: Report, failure: NotEnsured | StatusError | NoAnswer | None) -> None:
    if failure is None:
        report.ready()
    elif isinstance(failure, NotEnsured):
        report.failed(failure.reason, failure.message)
    else:
        report.failed("Error", str(failure))


def _outcome(failure: NotEnsured | StatusError | NoAnswer | None) -> Result:
    """Return when the variant is looked at again, unless an event wakes it before.

    Raises:
        StatusError, NoAnswer: The request that failed: it is tried again with a growing delay.
    """
    if failure is None or (isinstance(failure, NotEnsured) and failure.waits):
        return Result()
    if not isinstance(failure, NotEnsured):
        raise failure
    if isinstance(failure.__cause__, StatusError | NoAnswer):
        raise failure.__cause__
    return _again()


def _again() -> Result:
    return Result(requeue_after=MOST_BACK_OFF, back_off=MOST_BACK_OFF)


def _of_a_draft(status: Json) -> Json | None:
    """Return the change that the status tells of, if there is a draft with it."""
    told: Json = status.get("pendingChange") or {}
    drafts = {
        target.get("name")
        for target in status.get("downstreamTargets") or ()
        if target.get("lifecycle") in ("Draft", "Proposed")
    }
    return told if told.get("draft") in drafts else None
