"""What the PackageVariant controller counts, besides what every controller does. Source: ``variants.md`` 6.9."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controllers.packagevariant.caches import Caches
from controllers.packagevariant.injectables import Injectables
from controllers.runtime.wakeup_check import WakeupCheck

DESCRIPTIONS: Final = {
    "porch_variant_passes": "Looks at a PackageVariant by the reason of its condition Ready afterwards; skipped: nothing that it "
    "reads had changed; paused: only its status was looked after; gone: it was deleted; failed: an error ended the look, which "
    "is repeated.",
    "porch_variant_drafts_created": "Drafts made, by trigger: Initial, UpstreamChanged, SpecChanged or InjectionChanged.",
    "porch_variant_drifts": "Drift that was found, by the reason of the condition Drifted.",
    "porch_variants": "PackageVariants by condition and its status.",
    "porch_variant_injection_watches": "Kinds that are watched for injection, counted by namespace.",
    "porch_variant_missed_wakeups": "Variants that an event concerned and did not wake, a defect; counted with check_wakeups only.",
    "porch_variant_cached_objects": "Objects that are kept in memory, by resource.",
}
"""Names without the ``_total`` of counters."""
SKIPPED: Final = "skipped"
PAUSED: Final = "paused"
GONE: Final = "gone"
FAILED: Final = "failed"


class VariantMetrics(Collector):
    """Counts of one controller, and gauges that are read from its caches when somebody looks."""

    def __init__(self, caches: Caches, injectables: Injectables, check: WakeupCheck | None = None) -> None:
        self._caches, self._injectables, self._check = caches, injectables, check
        self.passes: Counter[str] = Counter()
        self.drafts: Counter[str] = Counter()
        self.drifts: Counter[str] = Counter()

    def collect(self) -> Iterable[Metric]:
        """Return the metrics as they are now."""
        yield _counter("porch_variant_passes", "reason", self.passes)
        yield _counter("porch_variant_drafts_created", "trigger", self.drafts)
        yield _counter("porch_variant_drifts", "reason", self.drifts)
        missed = "porch_variant_missed_wakeups"
        yield CounterMetricFamily(missed, DESCRIPTIONS[missed], value=self._check.missed if self._check else 0)
        yield self._by_condition()
        watches = "porch_variant_injection_watches"
        yield GaugeMetricFamily(watches, DESCRIPTIONS[watches], value=self._injectables.watches)
        yield self._cached()

    def _by_condition(self) -> Metric:
        counts = Counter(
            (one.type, one.status) for variant in self._caches.variants.values() for one in variant.conditions
        )
        family = GaugeMetricFamily("porch_variants", DESCRIPTIONS["porch_variants"], labels=["condition", "status"])
        for (type_, status), count in sorted(counts.items()):
            family.add_metric([type_, status], count)
        return family

    def _cached(self) -> Metric:
        name = "porch_variant_cached_objects"
        family = GaugeMetricFamily(name, DESCRIPTIONS[name], labels=["resource"])
        caches = self._caches
        for informer in (caches.variants, caches.package_revisions, caches.repositories, caches.definitions):
            family.add_metric([informer.resource.plural], len(informer))
        return family


def _counter(name: str, label: str, counts: Counter[str]) -> Metric:
    family = CounterMetricFamily(name, DESCRIPTIONS[name], labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([value], count)
    return family
