"""What the approval controller counts, besides what every controller does. Source: ``variants.md`` 6.3, 6.9."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, Literal, NamedTuple

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from krm.variants.approval import Step

DESCRIPTIONS: Final = {
    "porch_approvals": "Steps taken without a person: Proposed, Published or DeletionApproved; policy: what is published, Never, "
    "Initial or Always; source: where the policy stands, in a variant or an annotation of the package revision.",
    "porch_approvals_refused": "Steps that the server refused, which are told by an Event and tried again; labels as there.",
    "porch_approvals_stopped": "1 while the Lease's annotation config.porch.kpt.dev/paused stops all approvals, or it is not known yet.",
}
"""Names without the ``_total`` of counters."""


class Asked(NamedTuple):
    """What asked for a step."""

    step: Step
    policy: str
    """What it publishes: Never, Initial or Always."""
    source: Literal["variant", "annotation"]


class ApprovalMetrics(Collector):
    """Counts of one controller; ``stopped`` tells whether all approvals are stopped."""

    def __init__(self, stopped: Callable[[], bool]) -> None:
        self._stopped = stopped
        self.taken: Counter[Asked] = Counter()
        self.refused: Counter[Asked] = Counter()

    def collect(self) -> Iterable[Metric]:
        """Return the metrics as they are now."""
        yield _counted("porch_approvals", self.taken)
        yield _counted("porch_approvals_refused", self.refused)
        name = "porch_approvals_stopped"
        yield GaugeMetricFamily(name, DESCRIPTIONS[name], value=int(self._stopped()))


def _counted(name: str, counts: Counter[Asked]) -> Metric:
    family = CounterMetricFamily(name, DESCRIPTIONS[name], labels=Asked._fields)
    for asked, count in sorted(counts.items(), key=lambda one: str(one[0])):
        family.add_metric([asked.step.value, asked.policy, asked.source], count)
    return family
