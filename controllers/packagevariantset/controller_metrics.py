"""What the PackageVariantSet controller counts, besides what every controller does. Source: ``variants.md`` 6.9."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controllers.packagevariantset.caches import Caches
from controllers.packagevariantset.checked_wakeups import CheckedWakeups
from controllers.packagevariantset.rollout_metrics import rollout_metrics
from controllers.packagevariantset.selected_objects import SelectedObjects
from krm.variants.sets.rendering_pool import RenderingPool

Json = dict[str, Any]

DESCRIPTIONS: Final = {
    "porch_variant_sets": "PackageVariantSets by condition and its status.",
    "porch_variant_set_watches": "Kinds that are watched because targets of sets select from them, counted by namespace.",
    "porch_variant_set_renderings": "How often the targets of a set were rendered; a look at which nothing is new renders nothing.",
    "porch_variant_set_rendering_seconds": "Seconds that this took, waiting for a free process included.",
    "porch_variant_set_rendered_targets": "Targets that were rendered.",
    "porch_variant_set_missed_wakeups": "Sets that an event concerned and did not wake, a defect; counted with check_wakeups only.",
}
"""Names without the ``_total`` of counters."""


class SetMetrics(Collector):
    """Gauges that are read from the caches when somebody looks, and what the processes that render have done."""

    def __init__(
        self, caches: Caches, objects: SelectedObjects, pool: RenderingPool, check: CheckedWakeups | None = None
    ) -> None:
        self._caches, self._objects, self._pool, self._check = caches, objects, pool, check

    def collect(self) -> Iterable[Metric]:
        """Return the metrics as they are now."""
        statuses = [one.body.get("status") or {} for one in self._caches.sets.values()]
        yield _by_condition(statuses)
        yield from rollout_metrics([status["rollout"] for status in statuses if status.get("rollout")])
        yield GaugeMetricFamily(*_described("porch_variant_set_watches"), value=self._objects.watches)
        pool = self._pool
        yield CounterMetricFamily(*_described("porch_variant_set_renderings"), value=pool.renderings)
        yield CounterMetricFamily(*_described("porch_variant_set_rendering_seconds"), value=pool.seconds)
        yield CounterMetricFamily(*_described("porch_variant_set_rendered_targets"), value=pool.targets)
        missed = self._check.missed if self._check else 0
        yield CounterMetricFamily(*_described("porch_variant_set_missed_wakeups"), value=missed)


def _by_condition(statuses: Iterable[Json]) -> Metric:
    counts: Counter[tuple[str, str]] = Counter()
    for one in statuses:
        counts.update((str(found.get("type")), str(found.get("status"))) for found in one.get("conditions") or ())
    family = GaugeMetricFamily(*_described("porch_variant_sets"), labels=["condition", "status"])
    for (type_, status), count in sorted(counts.items()):
        family.add_metric([type_, status], count)
    return family


def _described(name: str) -> tuple[str, str]:
    return name, DESCRIPTIONS[name]
