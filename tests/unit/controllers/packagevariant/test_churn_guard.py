"""A variant that makes draft after draft is stopped until its spec changes (``variants.md`` I4)."""

from datetime import UTC, datetime
from typing import Any

import pytest
from cluster_bodies import revision, variant

from controllers.packagevariant.cached_values import CachedVariant
from controllers.packagevariant.churn import ChurnGuard
from controllers.packagevariant.views import DraftGuard
from krm.variants.revisions import Revision

KEY = ("default", "bar")


class Clock:
    now = datetime(2026, 1, 1, tzinfo=UTC).timestamp()

    def __call__(self) -> float:
        return self.now


class Cluster:
    def __init__(self) -> None:
        self.variant: CachedVariant | None = CachedVariant.of(variant())
        self.owned: list[Revision] = []

    def guard(self, clock: Clock) -> ChurnGuard:
        return ChurnGuard(lambda _key: self.variant, lambda _namespace, _uid: self.owned, clock=clock)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def make(guard: DraftGuard, count: int, generation: int = 1) -> None:
    for _ in range(count):
        guard.made(KEY, generation)


def test_three_drafts_are_no_churn_and_four_are(cluster: Cluster, clock: Clock) -> None:
    guard = cluster.guard(clock)
    make(guard, 3)
    before = guard.refusal(KEY, 1)
    make(guard, 1)

    assert before == ""
    assert guard.refusal(KEY, 1) == (
        "more than 3 drafts were made within 10 minutes; no further one is made until the spec changes"
    )


def test_drafts_of_one_variant_do_not_stop_another(cluster: Cluster, clock: Clock) -> None:
    guard = cluster.guard(clock)
    make(guard, 4)

    assert guard.refusal(("default", "other"), 1) == ""


def test_drafts_over_a_longer_time_are_no_churn(cluster: Cluster, clock: Clock) -> None:
    guard = cluster.guard(clock)
    for _ in range(20):
        make(guard, 1)
        clock.now += 201

        assert guard.refusal(KEY, 1) == ""


def test_a_stop_lasts_until_the_spec_changes(cluster: Cluster, clock: Clock) -> None:
    guard = cluster.guard(clock)
    make(guard, 4)
    assert guard.refusal(KEY, 1)
    clock.now += 86_400

    assert guard.refusal(KEY, 1)
    assert guard.refusal(KEY, 2) == ""
    make(guard, 3, generation=2)
    assert guard.refusal(KEY, 2) == ""


def stopped(generation: int) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "False", "reason": "DraftChurn", "observedGeneration": generation}
    return {**variant(), "status": {"conditions": [ready]}}


def test_a_restart_does_not_start_a_stopped_variant(cluster: Cluster, clock: Clock) -> None:
    cluster.variant = CachedVariant.of(stopped(1))
    restarted = cluster.guard(clock)

    assert restarted.refusal(KEY, 1)
    assert restarted.refusal(KEY, 2) == ""


def draft(workspace: str, *, lifecycle: str = "Draft", created: str = "2026-01-01T00:00:00Z") -> Revision:
    return Revision.of(
        revision(
            "bar", workspace, repository="deployments", lifecycle=lifecycle, owner="bar", creationTimestamp=created
        )
    )


def test_a_restart_counts_the_drafts_that_lie_about(cluster: Cluster, clock: Clock) -> None:
    cluster.owned = [draft(f"packagevariant-{number}") for number in range(4)]

    assert cluster.guard(clock).refusal(KEY, 1)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(draft("packagevariant-9", lifecycle="Published"), id="published"),
        pytest.param(draft("packagevariant-9", created="2025-12-31T23:49:59Z"), id="made before"),
        pytest.param(draft("mine"), id="adopted"),
        pytest.param(draft("packagevariant-9", created=""), id="of unknown age"),
    ],
)
def test_other_revisions_are_no_churn(cluster: Cluster, clock: Clock, other: Revision) -> None:
    cluster.owned = [draft(f"packagevariant-{number}") for number in range(3)] + [other]

    assert cluster.guard(clock).refusal(KEY, 1) == ""


def test_what_is_forgotten_is_not_counted(cluster: Cluster, clock: Clock) -> None:
    guard = cluster.guard(clock)
    make(guard, 4)
    guard.forget(KEY)
    cluster.variant = None

    assert guard.refusal(KEY, 1) == ""
