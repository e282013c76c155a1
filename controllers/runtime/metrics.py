"""What controllers count, under the names that controller-runtime, client-go and their dashboards use."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controllers.runtime.workqueue import WorkQueue

_SECONDS: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
"""Bounds of durations."""


class ControllerMetrics:
    """The metrics of one process; controllers add their own to ``registry``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self._reconciles = Counter(
            "controller_runtime_reconcile",
            "Reconciles by how they ended: success, requeue (a failure told in the status), requeue_after, error, terminal_error.",
            ["controller", "result"],
            registry=registry,
        )
        self._seconds = Histogram(
            "controller_runtime_reconcile_time_seconds",
            "How long reconciles took.",
            ["controller"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._waits = Histogram(
            "workqueue_queue_duration_seconds",
            "How long keys waited for a worker.",
            ["name"],
            buckets=_SECONDS,
            registry=registry,
        )
        self._requests = Counter(
            "rest_client_requests",
            "Requests to the API server by method and code; code 0 where there was no answer.",
            ["method", "code"],
            registry=registry,
        )
        self._leading = Gauge(
            "leader_election_master_status", "1 while this process holds the Lease.", ["name"], registry=registry
        )
        self._queues = _Queues()
        registry.register(self._queues)

    def queue(self, name: str) -> WorkQueue:
        """Return a new queue whose waits are measured."""
        return WorkQueue(waited=self._waits.labels(name).observe)

    def watch(self, controller: str, queue: WorkQueue, workers: int) -> None:
        """Show the queue of a controller in place of the one that it had before."""
        self._queues.watched[controller] = queue, workers

    def reconciled(self, controller: str, result: str, seconds: float) -> None:
        """Count a reconcile."""
        self._reconciles.labels(controller, result).inc()
        self._seconds.labels(controller).observe(seconds)

    def requested(self, method: str, _path: str, code: int) -> None:
        """Count a request."""
        self._requests.labels(method, str(code)).inc()

    def follow_leadership(self, name: str, leading: Callable[[], bool]) -> None:
        """Show whether the Lease is held, asked when somebody reads the metrics."""
        self._leading.labels(name).set_function(leading)


class _Queues(Collector):
    """Figures of queues, read when somebody looks."""

    def __init__(self) -> None:
        self.watched: dict[str, tuple[WorkQueue, int]] = {}

    def collect(self) -> Iterable[Metric]:
        queues = {name: queue for name, (queue, _) in self.watched.items()}
        longest = "workqueue_longest_running_processor_seconds"
        yield _gauge("workqueue_depth", "Keys that wait for a worker.", {n: q.depth for n, q in queues.items()})
        yield _gauge(longest, "Age of the oldest running reconcile.", {n: q.longest_work for n, q in queues.items()})
        yield _counter("workqueue_adds", "Keys that began to wait.", {n: q.adds for n, q in queues.items()})
        yield _counter("workqueue_retries", "Failures put back.", {n: q.retries for n, q in queues.items()})
        busy = {name: queue.working for name, queue in queues.items()}
        yield _gauge("controller_runtime_active_workers", "Workers that reconcile.", busy, "controller")
        most = {name: workers for name, (_, workers) in self.watched.items()}
        yield _gauge("controller_runtime_max_concurrent_reconciles", "Workers that there are.", most, "controller")


def _gauge(name: str, meaning: str, values: Mapping[str, float], label: str = "name") -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=[label])
    for one, value in values.items():
        family.add_metric([one], value)
    return family


def _counter(name: str, meaning: str, values: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=["name"])
    for one, value in values.items():
        family.add_metric([one], value)
    return family
