"""How far the rollouts of all sets are together, from what the sets' statuses say; no set and no wave is named.

Source: ``variants.md`` 6.2 and 6.9; ``users.md`` 6.5.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from krm.variants.sets.rollout import PAUSED, PROGRESSING, WAITING
from krm.variants.sets.rollout_memory import COMPLETE

Json = dict[str, Any]

DESCRIPTIONS: Final = {
    "porch_rollouts": "PackageVariantSets with a rollout, by its phase: Progressing, Waiting (for a gate), Paused (too many "
    "variants failed) or Complete.",
    "porch_rollout_waves": "Waves of all rollouts that have several: done (all its variants are settled or failed), changing, or "
    "waiting (for the waves before it).",
    "porch_rollout_variants": "Variants of sets with a rollout: outdated (not changed yet), inFlight (changed and not settled), settled "
    "or failed.",
}
_PHASES: Final = (PROGRESSING, WAITING, PAUSED, COMPLETE)
_VARIANTS: Final = ("outdated", "inFlight", "settled", "failed")
"""As ``status.rollout`` calls them."""
DONE: Final = "done"
CHANGING: Final = "changing"
_WAITING: Final = "waiting"


def rollout_metrics(rollouts: Sequence[Json]) -> Iterator[Metric]:
    """Yield the metrics of the ``status.rollout`` of all sets that have one."""
    phases = Counter(one.get("phase") for one in rollouts)
    waves = Counter(state for one in rollouts for state in wave_states(one))
    variants = {name: sum(one.get(name) or 0 for one in rollouts) for name in _VARIANTS}
    yield _gauges("porch_rollouts", "phase", _PHASES, phases)
    yield _gauges("porch_rollout_waves", "state", (_WAITING, CHANGING, DONE), waves)
    yield _gauges("porch_rollout_variants", "state", _VARIANTS, variants)


def wave_states(rollout: Json) -> Iterator[str]:
    """Yield how far each wave of a ``status.rollout`` is, in order; nothing where there are not several."""
    has_begun = True
    for wave in rollout.get("waves") or ():
        if not (wave.get("outdated") or wave.get("inFlight")):
            yield DONE
        else:
            yield CHANGING if has_begun else _WAITING
        has_begun = has_begun and wave.get("name") != rollout.get("wave")


def _gauges(name: str, label: str, values: Iterable[str], counts: Mapping[Any, int]) -> Metric:
    family = GaugeMetricFamily(name, DESCRIPTIONS[name], labels=[label])
    for value in values:
        family.add_metric([value], counts.get(value, 0))
    return family
