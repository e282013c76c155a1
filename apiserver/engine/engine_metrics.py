"""What the engine counts: pushes, syncs, renders, approvals, refused claims, and the state of repositories, revisions and drafts.

Labels are results, states and built-in functions, never names of objects: a thousand repositories make no more series than
one. What is read when somebody looks takes time by the number of repositories, not of packages. Shown in
``docs/reference/metrics.md``.
"""

import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from apiserver.engine.rendering import Renderer
from krm.functions.builtins import builtin_name
from krm.functions.pipeline import Rendered
from krm.functions.step_cache import Lookup
from krm.package.contents import Contents
from storage.git.errors import AuthenticationFailed, PushRejected, PushWithdrawn, RefMoved, RemoteUnavailable
from storage.spans import span

_PUSH_SECONDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_SYNC_SECONDS: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 600)
_RENDER_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_WAIT_SECONDS: Final = (1, 10, 60, 300, 900, 3600, 14400, 43200, 86400, 259200, 604800, 2592000)
"""A second to a month."""
_JOBS: Final = (1, 2, 4, 8, 16, 32, 64)
_PUSH_RESULTS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (RefMoved, "moved"),
    (PushWithdrawn, "moved"),
    (PushRejected, "refused"),
    (AuthenticationFailed, "refused"),
    (RemoteUnavailable, "unavailable"),
)
_LIFECYCLES: Final = ("Draft", "Proposed", "Published", "DeletionProposed")
OTHER: Final = "other"
"""What functions count as that are not built in: their images are what users write."""
_RESULTS: Final = {True: "hit", False: "miss"}
_STATES: Final = ("ready", "failing", "starting")


class EngineFigures(NamedTuple):
    """The engine's state at one moment; ``drafts`` wait to be pushed, the first one since ``oldest_draft`` seconds."""

    revisions: Mapping[str, int]
    """By lifecycle."""
    repositories: Mapping[str, int]
    """By state: ready, failing (its Ready condition says why), starting (not read yet)."""
    oldest_sync: float
    """Seconds since the remote that was not looked at for longest was; 0 without repositories."""
    drafts: int
    draft_bytes: int
    oldest_draft: float
    held_claims: int
    revision: int
    """Up to which this server knows the log."""


class EngineMetrics:
    """The engine's metrics in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._push_seconds = Histogram(
            "porch_git_push_duration_seconds",
            "Seconds of one push, planning included, by how it ended: pushed, moved (planned again), refused, unavailable or "
            "failed.",
            ("result",),
            registry=registry,
            buckets=_PUSH_SECONDS,
        )
        self._push_jobs = Histogram(
            "porch_git_push_jobs",
            "Approvals, deletions and drafts that shared one push.",
            registry=registry,
            buckets=_JOBS,
        )
        self._sync_seconds = Histogram(
            "porch_repository_sync_duration_seconds",
            "Seconds of one look at a remote, by how it ended: changed, unchanged or failed.",
            ("result",),
            registry=registry,
            buckets=_SYNC_SECONDS,
        )
        self._render_seconds = Histogram(
            "porch_render_duration_seconds",
            "Seconds of one render, waiting for a worker included, by how it ended: rendered, failed (the package's fault) or "
            "refused (too many wait).",
            ("result",),
            registry=registry,
            buckets=_RENDER_SECONDS,
        )
        self._rendering = Gauge("porch_renders_in_progress", "Renders under way or waiting.", registry=registry)
        self._renders_looked_up = Counter(
            "porch_render_cache_lookups",
            "Renders of large packages, and of those with scripts or programs, looked for among the ones that this server "
            "remembers: hit, or miss (a worker rendered it). Other renders take milliseconds and are not looked for.",
            ("result",),
            registry=registry,
        )
        self._functions_looked_up = Counter(
            "porch_function_cache_lookups",
            "Calls of functions that are slow, looked for among the ones that the render worker remembers: hit, or miss (the "
            "function ran). function: the name of a built-in one, or other. Renders remembered as a whole call none.",
            ("function", "result"),
            registry=registry,
        )
        self._approval_waits = Histogram(
            "porch_approval_wait_seconds",
            "Seconds from a proposal to the request that published it; rejections and deletions are left out. Of one from before "
            "a restart the object's managedFields tell the beginning; one made in Git counts from when this server saw it.",
            registry=registry,
            buckets=_WAIT_SECONDS,
        )
        self._longest_wait = Gauge(
            "porch_proposals_oldest_seconds",
            "Seconds that the first of the proposals waits, counted as in porch_approval_wait_seconds; 0 when none does.",
            registry=registry,
        )
        self._claims = Counter(
            "porch_claims_refused",
            "Writes answered 409 because another one of the same revision was under way.",
            registry=registry,
        )

    def approved(self, waited: float) -> None:
        """Count an approval of what had waited so many seconds for it."""
        self._approval_waits.observe(waited)

    def read_longest_wait(self, read: Callable[[], float]) -> None:
        """Show for how many seconds the proposal waits that waits longest."""
        self._longest_wait.set_function(read)

    def read_figures(self, read: Callable[[], EngineFigures]) -> None:
        """Show the engine's state."""
        self._registry.register(_State(read))

    def claim_refused(self) -> None:
        """Count a write that met another one."""
        self._claims.inc()

    @contextmanager
    def push(self, jobs: int) -> Iterator[None]:
        """Measure one push of so many jobs; whatever is raised passes through."""
        begun, result = time.perf_counter(), "failed"
        try:
            yield
            result = "pushed"
        except Exception as error:
            result = next((said for kind, said in _PUSH_RESULTS if isinstance(error, kind)), result)
            raise
        finally:
            self._push_seconds.labels(result).observe(time.perf_counter() - begun)
            self._push_jobs.observe(jobs)

    def measured_sync(self, sync: Callable[[], Awaitable[bool]]) -> Callable[[], Coroutine[Any, Any, bool]]:
        """Return ``sync`` with its time measured; it returns whether anything changed."""

        async def measured() -> bool:
            begun, result = time.perf_counter(), "failed"
            try:
                changed = await sync()
                result = "changed" if changed else "unchanged"
                return changed
            finally:
                self._sync_seconds.labels(result).observe(time.perf_counter() - begun)

        return measured

    def synced_without_a_turn(self, seconds: float) -> None:
        """Measure a sync that found nothing new, and so needed no turn among replicas."""
        self._sync_seconds.labels("unchanged").observe(seconds)

    def render_looked_up(self, found: bool) -> None:
        """Count a render that was looked for among those that are remembered."""
        self._renders_looked_up.labels(_RESULTS[found]).inc()

    def functions_looked_up(self, lookups: Mapping[Lookup, int]) -> None:
        """Count calls of functions that render workers looked for; images that are not built in count together."""
        for (image, found), count in lookups.items():
            self._functions_looked_up.labels(builtin_name(image) or OTHER, _RESULTS[found]).inc(count)

    @contextmanager
    def render(self) -> Iterator[Callable[[bool], None]]:
        """Measure one render; the caller says at its end whether it failed."""
        begun, results = time.perf_counter(), ["refused"]
        self._rendering.inc()
        try:
            yield lambda failed: results.append("failed" if failed else "rendered")
        finally:
            self._rendering.dec()
            self._render_seconds.labels(results[-1]).observe(time.perf_counter() - begun)


class MeasuredRenderer:
    """Another renderer, measured."""

    def __init__(self, renderer: Renderer, metrics: EngineMetrics) -> None:
        self._renderer = renderer
        self._metrics = metrics

    async def render(self, contents: Contents) -> Rendered:
        """Render; see the port."""
        with self._metrics.render() as ended, span("render", files=len(contents)):
            rendered = await self._renderer.render(contents)
            ended(rendered.failed)
        return rendered


class _State(Collector):
    """Gauges that are read at the moment somebody looks."""

    def __init__(self, read: Callable[[], EngineFigures]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of now."""
        now = self._read()
        yield _by_label(
            "porch_package_revisions", "Package revisions by lifecycle.", "lifecycle", _LIFECYCLES, now.revisions
        )
        yield _by_label(
            "porch_repositories",
            "Registered repositories: ready, failing (the Ready condition says why) or starting (not read yet).",
            "state",
            _STATES,
            now.repositories,
        )
        yield GaugeMetricFamily(
            "porch_repository_oldest_sync_seconds",
            "Seconds since a look at a remote succeeded, of the repository for which it is longest; 0 without repositories.",
            now.oldest_sync,
        )
        yield GaugeMetricFamily("porch_outbox_drafts", "Acknowledged drafts that wait to be pushed.", now.drafts)
        yield GaugeMetricFamily("porch_outbox_bytes", "Bytes of their new Git objects.", now.draft_bytes)
        yield GaugeMetricFamily(
            "porch_outbox_oldest_seconds", "Seconds that the first of them waits; 0 when none does.", now.oldest_draft
        )
        yield GaugeMetricFamily("porch_claims_held", "Package revisions that are being written.", now.held_claims)
        yield GaugeMetricFamily(
            "porch_log_revision", "The resourceVersion up to which this server knows the database.", now.revision
        )


def _by_label(name: str, what: str, label: str, values: Iterable[str], counts: Mapping[str, int]) -> Metric:
    family = GaugeMetricFamily(name, what, labels=(label,))
    for value in values:
        family.add_metric([value], counts.get(value, 0))
    return family
