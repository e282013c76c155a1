"""The answer to our status write may be the first news of what a variant's user did meanwhile: it must not be lost.

Found by the model (``test_invariants.py``): the status write met a conflict and was tried again on what a pause had made.
"""

from collections.abc import Iterable
from typing import Any, cast

import pytest
from cluster_bodies import variant

from controllers.packagevariant.cached_views import CachedViews
from controllers.packagevariant.caches import Caches
from controllers.packagevariant.injectables import Injectables
from krm.client.client import KubeClient
from krm.variants.vocabulary import FINALIZER, PAUSED

Json = dict[str, Any]


class Rig:
    def __init__(self, body: Json) -> None:
        self.caches = Caches(cast("KubeClient", None), None)  # makes no request
        self.woken: list[str] = []
        self.views = CachedViews(self.caches, cast("Injectables", None), self._wake)  # nothing is injected
        self.caches.variants.wrote(body)

    def _wake(self, keys: Iterable[tuple[str, str]]) -> None:
        self.woken += [name for _, name in keys]


@pytest.mark.parametrize(
    "meanwhile",
    [{"annotations": {PAUSED: "true"}}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}, {"generation": 2}, {"uid": "2"}],
    ids=lambda meanwhile: next(iter(meanwhile)),
)
def test_what_a_user_did_before_our_write_wakes_the_variant(meanwhile: Json) -> None:
    rig = Rig(variant())

    rig.views.wrote_variant({**variant(version="3", **meanwhile), "status": {"observedGeneration": 1}})

    assert rig.woken == ["bar"]


def test_our_own_status_and_finalizer_wake_nobody() -> None:
    rig = Rig(variant(finalizers=[]))

    rig.views.wrote_variant(variant(version="2", finalizers=[FINALIZER]))
    rig.views.wrote_variant({**variant(version="3"), "status": {"observedGeneration": 1}})

    assert rig.woken == []
