"""A pass is skipped when it would find what the last one found, and never otherwise."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from cluster_bodies import published, repository, revision, variant

from controllers.packagevariant.caches import Caches
from controllers.packagevariant.injectables import Injectables
from controllers.packagevariant.skipping import reading_of
from controllers.runtime.finished_passes import FinishedPasses
from krm.client.client import KubeClient

Json = dict[str, Any]
KEY = ("default", "bar")


class NothingInjected:
    def __init__(self) -> None:
        self.told: tuple[object, ...] = ()

    def reading(self, key: tuple[str, str]) -> tuple[object, ...]:
        return self.told


class Cluster:
    """Caches that nobody fills but the test; ``put`` is what an informer does on an event."""

    def __init__(self) -> None:
        self.caches = Caches(cast("KubeClient", None), None)  # makes no request
        self.injected = NothingInjected()
        self.finished = FinishedPasses(
            lambda key: reading_of(key, self.caches, cast("Injectables", self.injected))  # asked for its reading only
        )
        self._version = 100
        self.put("variants", variant())
        self.put("package_revisions", published(number=1))
        self.put("package_revisions", revision("bar", "packagevariant-1", repository="deployments", owner="bar"))
        for name in ("blueprints", "deployments"):
            self.put("repositories", repository(name))

    def put(self, cache: str, body: Json) -> None:
        self._version += 1
        body["metadata"]["resourceVersion"] = str(self._version)
        getattr(self.caches, cache).wrote(body)

    def passes(self) -> None:
        self.finished.finish(KEY, self.finished.begin(KEY))


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_nothing_is_skipped_before_a_pass(cluster: Cluster) -> None:
    assert not cluster.finished.is_finished(KEY)


def test_with_nothing_new_a_pass_is_skipped_again_and_again(cluster: Cluster) -> None:
    cluster.passes()

    assert all(cluster.finished.is_finished(KEY) for _ in range(3))


def owned(**parts: Any) -> Json:
    return revision("bar", "packagevariant-1", **{"repository": "deployments", "owner": "bar", **parts})


@pytest.mark.parametrize(
    ("cache", "body"),
    [
        pytest.param("variants", variant(generation=2), id="spec"),
        pytest.param("variants", variant(annotations={"note": "a"}), id="annotation of the variant"),
        pytest.param("variants", {**variant(), "status": {}}, id="status by somebody else"),
        pytest.param("package_revisions", published(number=2), id="new upstream revision"),
        pytest.param("package_revisions", published(number=1, commit="c2"), id="upstream tag moved"),
        pytest.param("package_revisions", owned(labels={"a": "b"}), id="own draft, anything"),
        pytest.param("package_revisions", owned(commit="c2"), id="own draft, files"),
        pytest.param("package_revisions", revision("left", owner="bar"), id="owned elsewhere"),
        pytest.param("package_revisions", published("bar", 7, repository="deployments"), id="newer, not owned"),
        pytest.param("repositories", repository("deployments", spec={"deployment": True}), id="deployment"),
        pytest.param("repositories", repository("blueprints", spec={"git": {"branch": "other"}}), id="branch"),
    ],
)
def test_whatever_a_pass_reads_makes_the_next_one_necessary(cluster: Cluster, cache: str, body: Json) -> None:
    cluster.passes()
    cluster.put(cache, body)

    assert not cluster.finished.is_finished(KEY)


@pytest.mark.parametrize(
    ("cache", "body"),
    [
        pytest.param("package_revisions", published("other", 2), id="another package"),
        pytest.param("package_revisions", published(number=1, labels={"a": "b"}), id="label of the upstream"),
        pytest.param("package_revisions", revision(workspace="ws"), id="draft of the upstream"),
        pytest.param("repositories", repository("deployments", version="9"), id="sync of a repository"),
        pytest.param("variants", variant("other"), id="another variant"),
    ],
)
def test_what_it_does_not_read_changes_nothing(cluster: Cluster, cache: str, body: Json) -> None:
    cluster.passes()
    cluster.put(cache, body)

    assert cluster.finished.is_finished(KEY)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda one: setattr(one.injected, "told", ("east", b"2")), id="injected object"),
        pytest.param(
            lambda one: one.caches.package_revisions.forget("default", "blueprints.foo.v1"), id="upstream gone"
        ),
        pytest.param(
            lambda one: one.caches.package_revisions.forget("default", "deployments.bar.packagevariant-1"),
            id="draft gone",
        ),
        pytest.param(lambda one: one.caches.repositories.forget("default", "deployments"), id="repository gone"),
    ],
)
def test_what_is_gone_or_injected_counts(cluster: Cluster, change: Callable[[Cluster], object]) -> None:
    cluster.passes()
    change(cluster)

    assert not cluster.finished.is_finished(KEY)


def test_a_pass_that_an_event_overtook_is_not_remembered(cluster: Cluster) -> None:
    begun = cluster.finished.begin(KEY)
    cluster.put("package_revisions", published(number=2))
    cluster.finished.woken(KEY)
    cluster.finished.finish(KEY, begun)

    assert not cluster.finished.is_finished(KEY)


def test_what_the_pass_wrote_itself_is_part_of_what_it_found(cluster: Cluster) -> None:
    begun = cluster.finished.begin(KEY)
    cluster.put("package_revisions", owned(commit="c2"))
    cluster.put("variants", {**variant(), "status": {"observedGeneration": 1}})
    cluster.finished.finish(KEY, begun)

    assert cluster.finished.is_finished(KEY)


def test_a_pass_that_failed_is_made_again(cluster: Cluster) -> None:
    cluster.passes()
    cluster.finished.begin(KEY)

    assert not cluster.finished.is_finished(KEY)


def test_a_variant_that_is_gone_is_not_remembered(cluster: Cluster) -> None:
    cluster.passes()
    cluster.caches.variants.forget(*KEY)
    cluster.passes()

    assert not cluster.finished.is_finished(KEY)
    cluster.finished.forget(KEY)
    assert len(cluster.finished) == 0
