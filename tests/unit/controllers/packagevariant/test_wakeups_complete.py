"""Exactly those variants are woken that read something else after an event than before, whatever the cluster looks like.

What a variant reads is computed here from everything that there is, without indexes: an index that misses one shows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cluster_bodies import revision, variant
from hypothesis import given, settings
from hypothesis import strategies as st

from controllers.packagevariant import readings, wakeups
from controllers.packagevariant.cached_values import CachedVariant, Key
from krm.variants.revisions import Revision
from krm.variants.vocabulary import MARKER_LABEL

Json = dict[str, Any]
REPOSITORIES, PACKAGES = ("blueprints", "deployments"), ("foo", "bar")
OWNERS = ("", "a", "b")
LIFECYCLES = ("Draft", "Proposed", "Published", "DeletionProposed")

upstreams = st.one_of(
    st.just({}),
    st.builds(lambda number: {"revision": number}, st.sampled_from([1, 2, 3, -1, "v1", "v2.0.0", "latest", "-2"])),
    st.builds(lambda tag: {"tag": tag}, st.sampled_from(["stable", "latest"])),
    st.builds(lambda name: {"workspaceName": name}, st.sampled_from(["v1", "main", "stable"])),
)


@st.composite
def variants(draw: st.DrawFn, name: str) -> CachedVariant:
    spec: Json = {
        "upstream": {"repo": draw(st.sampled_from(REPOSITORIES)), "package": draw(st.sampled_from(PACKAGES))},
        "downstream": {"repo": draw(st.sampled_from(REPOSITORIES)), "package": draw(st.sampled_from(PACKAGES))},
        "adoptionPolicy": draw(st.sampled_from(["adoptNone", "adoptExisting"])),
    }
    spec["upstream"] |= draw(upstreams)
    return CachedVariant.of(variant(name, spec=spec, namespace=draw(st.sampled_from(["default", "default", "other"]))))


@st.composite
def states(draw: st.DrawFn, repository: str, package: str, workspace: str) -> Revision:
    """Draw a state of a package revision, whose name, repository and package stay."""
    lifecycle = draw(st.sampled_from(LIFECYCLES))
    number = draw(st.sampled_from([1, 2, 3, -1])) if lifecycle in LIFECYCLES[2:] else 0
    labels = {"tags.porch.kpt.dev/stable": ""} if draw(st.booleans()) else {}
    if marked := draw(st.sampled_from(OWNERS)):
        labels[MARKER_LABEL] = f"uid-{marked}"
    more: Json = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if draw(st.integers(0, 9)) == 0 else {}
    body = revision(
        package,
        workspace,
        repository=repository,
        number=number,
        lifecycle=lifecycle,
        owner=draw(st.sampled_from(OWNERS)),
        commit=draw(st.sampled_from(["c1", "c2"])),
        labels={**labels, "other": draw(st.sampled_from(["x", "y"]))},
        uid=draw(st.sampled_from(["u1", "u1", "u2"])),
        **more,
    )
    return Revision.of(body)


@dataclass
class Cluster:
    """Everything that there is."""

    variants: Sequence[CachedVariant]
    known: dict[str, Revision]

    def tracking(self, package: wakeups.Package) -> Iterable[CachedVariant]:
        return [one for one in self.variants if one.source_package == package]

    def targeting(self, package: wakeups.Package) -> Iterable[CachedVariant]:
        return [one for one in self.variants if one.target_package == package]

    def with_uid(self, namespace: str, uid: str) -> Iterable[CachedVariant]:
        return [one for one in self.variants if (one.namespace, one.uid) == (namespace, uid)]

    def using(self, namespace: str, repository: str) -> Iterable[CachedVariant]:
        return []

    def revisions(self, package: wakeups.Package) -> Sequence[Revision]:
        return [one for one in self.known.values() if (one.namespace, one.repository, one.package) == package]

    def branch(self, namespace: str, repository: str) -> str:
        return "main"

    def read(self, one: CachedVariant) -> object:
        """Return what a variant reads of all revisions."""
        mine = [other for other in self.known.values() if other.namespace == one.namespace]
        sources = [other for other in mine if (other.repository, other.package) == one.source_package[1:]]
        upstream = readings.of_upstream(one.upstream, sources, "main")
        downstream = {(other.name, readings.of_downstream(one, other)) for other in mine}
        return upstream, frozenset(read for read in downstream if read[1] != readings.NOTHING)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_exactly_those_are_woken_that_read_something_else(data: st.DataObject) -> None:
    known = {}
    for repository in REPOSITORIES:
        for package in PACKAGES:
            for workspace in data.draw(st.sets(st.sampled_from(["v1", "v2", "main", "stable"]), max_size=3)):
                one = data.draw(states(repository, package, workspace))
                known[one.name] = one
    cluster = Cluster([data.draw(variants(name)) for name in ("a", "b", "c")], known)
    place = [data.draw(st.sampled_from(values)) for values in (REPOSITORIES, PACKAGES, ("v1", "v2", "main", "stable"))]
    new = data.draw(st.one_of(states(*place), st.none()))
    name = ".".join(place)
    before, old = {one.key: cluster.read(one) for one in cluster.variants}, known.pop(name, None)
    if new is not None:
        known[name] = new

    woken: set[Key] = wakeups.by_revision(old, new, cluster, cluster)

    assert woken == {one.key for one in cluster.variants if cluster.read(one) != before[one.key]}
