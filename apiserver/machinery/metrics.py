"""What the server counts, under the names that kube-apiserver uses, and ``/metrics``, which shows it.

One :class:`Metrics` belongs to one server. Labels are bounded: a resource that is not served counts as "other", whatever
a client typed. Counting costs a few microseconds; rendering happens in a thread. Source: ``kube-api.md`` 1.5.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Message, Scope, Send

from apiserver.machinery.definition import Definition
from apiserver.machinery.in_flight import PoolFigures
from apiserver.machinery.request import RequestInfo
from apiserver.machinery.rest import User
from krm.meta.errors import Forbidden, StatusError, Unauthorized

PATH = "/metrics"
"""Where the metrics are, for who may read that path."""
OTHER = "other"
"""What is counted for a resource that is not served."""
_COMPONENT = "apiserver"
_APPLY = b"application/apply-patch"
_VERBS = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETECOLLECTION",
    "options": "OPTIONS",
}
_PATHS = frozenset({"api", "apis", "healthz", "livez", "metrics", "openapi", "readyz", "version"})
"""First parts of paths that are no resource's and count by themselves."""
_KIND = ("group", "version", "kind")
_TARGET = ("group", "version", "resource", "subresource", "scope", "component")
_SECONDS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.5, 2, 3, 5, 8, 10, 15, 20, 30, 45, 60)
"""Bounds of durations: kube-apiserver's, without every third."""
_SIZES = tuple(1000 * 10**power for power in range(6))
"""Bounds of answers, in bytes: 1 kB to 100 MB."""
_FRAME_SIZES = tuple(1024 * 2**power for power in range(8))
"""Bounds of watch events, in bytes: 1 KiB to 128 KiB."""
_LIFETIMES = (0, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 345600, 604800, 2592000, 7776000, 15552000, 31104000)
"""Bounds of what is left of a certificate's life, in seconds."""


class ResourceFigures(NamedTuple):
    """One stored kind in numbers; ``resource`` is ``plural.group``, events and closed watches since the start."""

    resource: str
    objects: int
    events: int
    closed_watches: int


class Metrics:
    """The metrics of one server. What is read only when somebody looks is attached with ``read_…``."""

    def __init__(self) -> None:
        # Otherwise every series is doubled by the time of its creation, which no dashboard of Kubernetes reads.
        disable_created_metrics()  # type: ignore[no-untyped-call] # the library has no type here
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "apiserver_request_total",
            "Requests by target and HTTP status code.",
            ("verb", *_TARGET, "code", "dry_run"),
            registry=self.registry,
        )
        self.durations = Histogram(
            "apiserver_request_duration_seconds",
            "Seconds from a request's head to the end of its answer; watches are left out.",
            ("verb", *_TARGET, "dry_run"),
            registry=self.registry,
            buckets=_SECONDS,
        )
        self.sizes = Histogram(
            "apiserver_response_sizes",
            "Bytes of the bodies of answers; watches are left out.",
            ("verb", *_TARGET),
            registry=self.registry,
            buckets=_SIZES,
        )
        self.long_running = Gauge(
            "apiserver_longrunning_requests", "Watches that are open.", ("verb", *_TARGET), registry=self.registry
        )
        self.watch_events = Counter(
            "apiserver_watch_events_total", "Events sent to watchers.", _KIND, registry=self.registry
        )
        self.watch_event_sizes = Histogram(
            "apiserver_watch_events_sizes",
            "Bytes of watch events; one that goes to many watchers counts once.",
            _KIND,
            registry=self.registry,
            buckets=_FRAME_SIZES,
        )
        # A gauge that only rises: kube-apiserver's counter lacks the suffix that this library would add.
        self.authentications = Gauge(
            "authentication_attempts",
            "Requests whose sender was looked for: success, failure or error.",
            ("result",),
            registry=self.registry,
        )
        self.authorizations = Counter(
            "apiserver_authorization_attempts_total",
            "Decisions on requests: allowed, denied or error.",
            ("result",),
            registry=self.registry,
        )
        self.certificates = Histogram(
            "apiserver_client_certificate_expiration_seconds",
            "Seconds until the certificate of a request's sender expires.",
            registry=self.registry,
            buckets=_LIFETIMES,
        )
        self.leads = Gauge(
            "leader_election_master_status",
            "1 while this replica does what one of several does for all; a server that is alone does it itself.",
            ("name",),
            registry=self.registry,
        )
        self.build = Gauge("porch_build_info", "1; the version of the server.", ("version",), registry=self.registry)
        self._authentications = {
            result: self.authentications.labels(result) for result in ("success", "failure", "error")
        }
        self._authorizations = {result: self.authorizations.labels(result) for result in ("allowed", "denied", "error")}
        self.unread: dict[tuple[str, str], int] = {}
        """Group and plural → watches that were closed because their clients left what they were sent unread."""
        self._series: dict[tuple[str, ...], _RequestSeries] = {}
        self._known: dict[tuple[tuple[object, ...], int, bool], _RequestSeries] = {}

    def read_in_flight(self, read: Callable[[], Iterable[PoolFigures]]) -> None:
        """Show the pools of requests under way."""
        self.registry.register(_Collected(lambda: _in_flight(read())))

    def read_resources(self, read: Callable[[], Iterable[ResourceFigures]]) -> None:
        """Show what is stored."""
        self.registry.register(_Collected(lambda: _resources(read(), self.unread)))

    def read_edits(self, read: Callable[[], Mapping[str, int]]) -> None:
        """Show in which ways YAML documents were edited."""
        self.registry.register(_Collected(lambda: _edits(read())))

    async def authentication(self, attempt: Awaitable[User | None]) -> User | None:
        """Count an attempt to find out who sends a request; without credentials there was none."""
        try:
            user = await attempt
        except StatusError as error:
            self._authentications["failure" if isinstance(error, Unauthorized) else "error"].inc()
            raise
        if user is not None:
            self._authentications["success"].inc()
        return user

    async def authorization(self, decision: Awaitable[str | None]) -> str | None:
        """Count a decision on a request; returns what it returns."""
        try:
            reason = await decision
        except StatusError as error:
            self._authorizations["denied" if isinstance(error, Forbidden) else "error"].inc()
            raise
        self._authorizations["allowed"].inc()
        return reason

    def routes(self) -> list[BaseRoute]:
        """Return the route of ``/metrics``."""
        return [Route(PATH, self.serve, methods=["GET"])]

    async def serve(self, request: Request) -> Response:
        """Answer with all metrics, as text or in the OpenMetrics format."""
        encode, media_type = choose_encoder(request.headers.get("accept", ""))
        text = await asyncio.to_thread(encode, self.registry)
        return Response(text, media_type=media_type)

    def record(self, info: RequestInfo, scope: Scope, *, code: int, seconds: float, size: int) -> None:
        """Count a request that is answered; ``size`` is the body's, in bytes."""
        dry_run = b"dryRun=All" in scope["query_string"]
        key = (
            info.verb,
            info.group,
            info.version,
            info.resource,
            info.subresource,
            not info.name,
            info.namespace is None,
        )
        series = self._known.get((key, code, dry_run))
        if series is None:
            series = self._series_of(_labels(info, scope), str(code), "All" if dry_run else "")
            # The labels of the others depend on more than the key.
            if info.resource and info.verb != "patch":
                self._known[key, code, dry_run] = series
        series.requests.inc()
        if info.verb != "watch":
            series.seconds.observe(seconds)
            series.sizes.observe(size)

    def _series_of(self, labels: tuple[str, ...], code: str, dry_run: str) -> "_RequestSeries":
        key = (*labels, code, dry_run)
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = _RequestSeries(self, labels, code, dry_run)
        return series


class Measured:
    """One request being measured: its ``send`` stands in for the server's, ``finish`` counts it."""

    __slots__ = ("_begun", "_code", "_metrics", "_scope", "_send", "_size")

    def __init__(self, metrics: Metrics, scope: Scope, send: Send) -> None:
        self._metrics = metrics
        self._scope = scope
        self._send = send
        self._begun = time.perf_counter()
        self._code = 0
        self._size = 0

    @property
    def code(self) -> int:
        """The code of the answer, 0 while there is none."""
        return self._code

    async def send(self, message: Message) -> None:
        """Pass a message on to the client."""
        if message["type"] == "http.response.body":
            self._size += len(message.get("body", b""))
        elif message["type"] == "http.response.start":
            self._code = message["status"]
        await self._send(message)

    def finish(self, info: RequestInfo) -> None:
        """Count the request; one whose client left before the answer counts with code 0."""
        seconds = time.perf_counter() - self._begun
        self._metrics.record(info, self._scope, code=self._code, seconds=seconds, size=self._size)


class WatchMeter:
    """Counts the watches of one kind and what they are sent."""

    def __init__(self, metrics: Metrics, definition: Definition) -> None:
        kind = (definition.group, definition.version, definition.kind)
        self._long_running = metrics.long_running
        self._events = metrics.watch_events.labels(*kind)
        self._sizes = metrics.watch_event_sizes.labels(*kind)
        self._unread, self._resource = metrics.unread, (definition.group, definition.plural)

    def open(self, info: RequestInfo, scope: Scope) -> "OpenWatch":
        """Return the counters of one watch."""
        return OpenWatch(
            self._long_running.labels(*_labels(info, scope)), self._events, self._sizes, self._count_unread
        )

    def _count_unread(self) -> None:
        self._unread[self._resource] = self._unread.get(self._resource, 0) + 1


class OpenWatch:
    """Counts one watch, as open between ``begin`` and ``end``, and what it is sent."""

    __slots__ = ("_events", "_open", "_sizes", "unread")

    def __init__(
        self, open_watches: Gauge, events: Counter, sizes: Histogram, count_unread: Callable[[], None]
    ) -> None:
        self.unread = count_unread
        """Count the watch as closed because its client leaves what it is sent unread."""
        self._open = open_watches
        self._events = events
        self._sizes = sizes

    def begin(self) -> None:
        """Count the watch as open."""
        self._open.inc()

    def end(self) -> None:
        """Count the watch as open no longer."""
        self._open.dec()

    def sent(self, events: int) -> None:
        """Count events that went to this watcher."""
        self._events.inc(events)

    def encoded(self, size: int) -> None:
        """Count an event that was encoded, for whomever, with its size in bytes."""
        self._sizes.observe(size)


class _RequestSeries:
    """The three counters of one set of labels, looked up once."""

    __slots__ = ("requests", "seconds", "sizes")

    def __init__(self, metrics: Metrics, labels: tuple[str, ...], code: str, dry_run: str) -> None:
        self.requests = metrics.requests.labels(*labels, code, dry_run)
        self.seconds = metrics.durations.labels(*labels, dry_run)
        self.sizes = metrics.sizes.labels(*labels)


class _Collected(Collector):
    """Metrics that are read from their source at the moment somebody looks."""

    def __init__(self, read: Callable[[], Iterable[Metric]]) -> None:
        self._read = read

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of now."""
        return self._read()


def _labels(info: RequestInfo, scope: Scope) -> tuple[str, ...]:
    """Return verb and target as labels; targets that are not served must have been replaced by ``unserved``."""
    verb = _VERBS.get(info.verb, OTHER)
    if verb == "PATCH" and any(name == b"content-type" and _APPLY in value for name, value in scope["headers"]):
        verb = "APPLY"
    if not info.resource:
        first = info.path.split("/", 2)[1] if info.path.startswith("/") else ""
        return verb, "", "", "", f"/{first}" if first in _PATHS else "", "", _COMPONENT
    return verb, info.group, info.version, info.resource, info.subresource, _scope(info), _COMPONENT


def unserved(info: RequestInfo) -> RequestInfo:
    """Return what a request for something that is not served counts as."""
    return RequestInfo(info.verb, info.path, OTHER, OTHER, OTHER, namespace=info.namespace, name=info.name)


def _scope(info: RequestInfo) -> str:
    if info.name or info.verb == "create":
        return "resource"
    return "cluster" if info.namespace is None else "namespace"


def _in_flight(pools: Iterable[PoolFigures]) -> Iterator[Metric]:
    running = GaugeMetricFamily("apiserver_current_inflight_requests", "Requests under way.", labels=("request_kind",))
    waiting = GaugeMetricFamily(
        "apiserver_current_inqueue_requests", "Requests that wait for a place.", labels=("request_kind",)
    )
    refused = CounterMetricFamily(
        "porch_requests_refused", "Requests answered 429 for want of a place.", labels=("request_kind",)
    )
    for pool in pools:
        running.add_metric([pool.kind], pool.running)
        waiting.add_metric([pool.kind], pool.waiting)
        refused.add_metric([pool.kind], pool.refused)
    yield from (running, waiting, refused)


def _resources(figures: Iterable[ResourceFigures], unread: Mapping[tuple[str, str], int]) -> Iterator[Metric]:
    """Tell of each kind. A watch is too slow when the ring of events has overtaken it, or its client reads nothing."""
    objects = GaugeMetricFamily("apiserver_storage_objects", "Objects that are stored.", labels=("resource",))
    events = CounterMetricFamily(
        "apiserver_watch_cache_events_received", "Changes that the watch cache took in.", labels=("group", "resource")
    )
    closed = CounterMetricFamily(
        "apiserver_terminated_watchers", "Watches closed for being too slow.", labels=("group", "resource")
    )
    for one in figures:
        plural, _, group = one.resource.partition(".")
        objects.add_metric([one.resource], one.objects)
        events.add_metric([group, plural], one.events)
        closed.add_metric([group, plural], one.closed_watches + unread.get((group, plural), 0))
    yield from (objects, events, closed)


def _edits(ways: Mapping[str, int]) -> Iterator[Metric]:
    edits = CounterMetricFamily(
        "porch_yaml_edits",
        "YAML documents changed, by the way it was done; the later ways lose layout.",
        labels=("way",),
    )
    for way, count in list(ways.items()):
        edits.add_metric([way], count)
    yield edits
