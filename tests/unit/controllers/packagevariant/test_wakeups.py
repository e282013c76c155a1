"""Whom an event wakes: those whom it concerns, and nobody else (``variants.md`` 2.14, 6.10)."""

from collections.abc import Sequence
from typing import Any

import pytest
from cluster_bodies import definition, published, repository, revision, variant

from controllers.packagevariant import wakeups
from controllers.packagevariant.cached_values import CachedRepository, CachedVariant
from controllers.runtime.served_kinds import ServedKind, came_or_went
from krm.variants.revisions import Revision
from krm.variants.vocabulary import APPLIED_INPUTS, MARKER_LABEL, PAUSED

Json = dict[str, Any]


class Cluster:
    """What the caches hold after an event."""

    def __init__(self, *variants: Json, revisions: Sequence[Json] = ()) -> None:
        self.all = [CachedVariant.of(one) for one in variants]
        self.known = [Revision.of(one) for one in revisions]

    def tracking(self, package: wakeups.Package) -> list[CachedVariant]:
        return [one for one in self.all if one.source_package == package]

    def targeting(self, package: wakeups.Package) -> list[CachedVariant]:
        return [one for one in self.all if one.target_package == package]

    def with_uid(self, namespace: str, uid: str) -> list[CachedVariant]:
        return [one for one in self.all if (one.namespace, one.uid) == (namespace, uid)]

    def using(self, namespace: str, repository: str) -> list[CachedVariant]:
        pairs = [(one, {one.upstream.repo, one.downstream_repo}) for one in self.all if one.namespace == namespace]
        return [one for one, repositories in pairs if repository in repositories]

    def revisions(self, package: wakeups.Package) -> list[Revision]:
        return [one for one in self.known if (one.namespace, one.repository, one.package) == package]

    def branch(self, namespace: str, repository: str) -> str:
        return "main"

    def woken_by(self, old: Json | None, new: Json | None) -> set[str]:
        before, after = (Revision.of(one) if one else None for one in (old, new))
        name = (new or old or {})["metadata"]["name"]
        self.known = [one for one in self.known if one.name != name] + ([after] if after else [])
        return {name for _, name in wakeups.by_revision(before, after, self, self)}


def tracks(name: str, **upstream: Any) -> Json:
    return variant(name, spec={"upstream": {"repo": "blueprints", "package": "foo", **upstream}})


FOLLOWERS = [
    tracks("latest"),
    tracks("one", revision="v1"),
    tracks("two", revision=2),
    tracks("stable", tag="stable"),
    tracks("beta", tag="beta"),
    tracks("workspace", workspaceName="v2"),
    tracks("text", revision="v2.0.0"),
    tracks("head", revision=-1),
    variant("elsewhere", spec={"upstream": {"repo": "blueprints", "package": "other"}}),
    variant("abroad", namespace="other"),
]


class TestUpstream:
    """Revisions of the package that variants track."""

    def test_a_publication_wakes_those_who_follow_it_and_those_who_are_behind_now(self) -> None:
        cluster = Cluster(*FOLLOWERS, revisions=[published(number=1)])

        woken = cluster.woken_by(revision(workspace="v2"), published(number=2))

        assert woken == {"latest", "one", "two", "workspace"}

    def test_an_old_revision_wakes_nobody_who_is_past_it(self) -> None:
        cluster = Cluster(*FOLLOWERS, revisions=[published(number=2), published(number=3)])

        woken = cluster.woken_by(published(number=1), published(number=1, lifecycle="DeletionProposed"))

        assert woken == {"one"}

    def test_edits_of_a_draft_wake_nobody(self) -> None:
        cluster = Cluster(*FOLLOWERS, revisions=[published(number=1)])

        woken = cluster.woken_by(revision(workspace="v2"), revision(workspace="v2", version="2", commit="c2"))

        assert woken == set()

    def test_a_draft_in_the_workspace_that_is_asked_for_is_an_answer(self) -> None:
        cluster = Cluster(*FOLLOWERS, revisions=[published(number=1)])

        assert cluster.woken_by(None, revision(workspace="v2")) == {"workspace"}
        assert cluster.woken_by(None, revision(workspace="v3")) == set()

    def test_a_tag_moves_by_its_label(self) -> None:
        cluster = Cluster(*FOLLOWERS, revisions=[published(number=1), published(number=3)])
        tagged = published(number=3, labels={"tags.porch.kpt.dev/stable": ""})

        assert cluster.woken_by(published(number=3), tagged) == {"stable"}
        assert cluster.woken_by(tagged, published(number=3)) == {"stable"}

    def test_a_label_that_no_tag_is_wakes_nobody(self) -> None:
        cluster = Cluster(*FOLLOWERS, revisions=[published(number=2)])

        assert cluster.woken_by(published(number=2), published(number=2, version="7", labels={"team": "a"})) == set()

    def test_a_tag_moves_in_git(self) -> None:
        cluster = Cluster(*FOLLOWERS, revisions=[published(number=2)])
        old, new = (revision(workspace="beta", number=-1, lifecycle="Published", commit=one) for one in ("c1", "c2"))

        assert cluster.woken_by(old, new) == {"beta"}

    def test_the_head_of_the_branch_moves(self) -> None:
        cluster = Cluster(*FOLLOWERS, revisions=[published(number=2)])
        old, new = (revision(workspace="main", number=-1, lifecycle="Published", commit=one) for one in ("c1", "c2"))

        assert cluster.woken_by(old, new) == {"head"}

    def test_the_last_revision_that_was_followed_goes(self) -> None:
        cluster = Cluster(*FOLLOWERS, revisions=[published(number=1)])

        assert cluster.woken_by(published(number=1), None) == {"latest", "one"}

    def test_a_revision_that_is_being_deleted_is_no_source(self) -> None:
        cluster = Cluster(*FOLLOWERS)
        going = published(number=1, deletionTimestamp="2026-01-01T00:00:00Z", version="2")

        assert cluster.woken_by(published(number=1), going) == {"latest", "one"}
        assert cluster.woken_by(going, None) == set()

    def test_a_revision_made_again_under_its_name_is_another_one(self) -> None:
        cluster = Cluster(*FOLLOWERS)

        assert cluster.woken_by(published(number=1), published(number=1, uid="another")) == {"latest", "one"}

    def test_a_spec_that_names_no_revision_is_woken_by_none(self) -> None:
        cluster = Cluster(tracks("wrong", revision="-2"))

        assert cluster.woken_by(None, published(number=1)) == set()


TARGETS = [
    variant("bar"),
    variant("rival", spec={"downstream": {"repo": "deployments", "package": "bar"}}),
    variant("taker", spec={"downstream": {"repo": "deployments", "package": "bar"}, "adoptionPolicy": "adoptExisting"}),
    variant("other"),
]


def downstream(workspace: str = "packagevariant-1", **parts: Any) -> Json:
    return revision("bar", workspace, **{"repository": "deployments", "owner": "bar", **parts})


COMPLETE = {"conditions": [{"type": "PVOperationsComplete", "status": "True"}]}
POINT = "config.injection.ConfigMap.x"
UNFULFILLED = {"conditions": [{"type": POINT, "status": "False"}]}
FULFILLED = {"conditions": [{"type": POINT, "status": "True"}]}
LOCKED = {"upstreamLock": {"git": {"repo": "https://git/x", "directory": "foo", "ref": "foo/v1", "commit": "c9"}}}


class TestDownstream:
    """Revisions that variants own, and others of their target package."""

    @pytest.mark.parametrize(
        "new",
        [
            pytest.param(downstream(version="2"), id="resourceVersion"),
            pytest.param(downstream(version="2", managedFields=[{"manager": "kubectl"}]), id="managedFields"),
            pytest.param(downstream(version="2", labels={"team": "a"}), id="label"),
            pytest.param(downstream(version="2", annotations={"note": "a"}), id="annotation"),
            pytest.param(
                downstream(version="2", status={"conditions": [{"type": "x", "status": "True"}]}), id="condition"
            ),
        ],
    )
    def test_what_no_variant_reads_wakes_nobody(self, new: Json) -> None:
        new["status"] = {**downstream()["status"], **new["status"]}

        assert Cluster(*TARGETS).woken_by(downstream(), new) == set()

    @pytest.mark.parametrize(
        "new",
        [
            pytest.param(downstream(commit="c2"), id="files"),
            pytest.param(downstream(status=COMPLETE), id="gate"),
            pytest.param(downstream(status=UNFULFILLED), id="injection"),
            pytest.param(downstream(status=LOCKED), id="upstream lock"),
            pytest.param(downstream(annotations={APPLIED_INPUTS: "sha256:0"}), id="fingerprint"),
        ],
    )
    def test_work_on_a_draft_wakes_its_owner_alone(self, new: Json) -> None:
        assert Cluster(*TARGETS).woken_by(downstream(), new) == {"bar"}

    def test_a_proposal_wakes_the_owner_and_those_who_would_adopt(self) -> None:
        assert Cluster(*TARGETS).woken_by(downstream(), downstream(lifecycle="Proposed")) == {"bar", "taker"}

    def test_a_publication_wakes_all_who_have_that_target(self) -> None:
        new = downstream(lifecycle="Published", number=1)

        assert Cluster(*TARGETS).woken_by(downstream(lifecycle="Proposed"), new) == {"bar", "rival", "taker"}

    def test_a_change_of_owners_wakes_old_and_new(self) -> None:
        woken = Cluster(*TARGETS).woken_by(downstream(), downstream(owner="other"))

        assert woken == {"bar", "rival", "taker", "other"}

    def test_a_point_that_is_fulfilled_wakes_the_owner(self) -> None:
        old, new = (downstream(status=status) for status in (UNFULFILLED, FULFILLED))
        for one in (old, new):
            one["spec"]["readinessGates"] = [{"conditionType": POINT}]

        assert Cluster(*TARGETS).woken_by(old, new) == {"bar"}

    def test_former_owners_are_woken_wherever_the_revision_is(self) -> None:
        old, new = (revision("left", "packagevariant-1", owner=owner) for owner in ("bar", "other"))

        assert Cluster(*TARGETS).woken_by(old, new) == {"bar", "other"}
        assert Cluster(*TARGETS).woken_by(new, None) == {"other"}

    def test_an_owner_is_woken_wherever_its_revision_is(self) -> None:
        old, new = (revision("left", "packagevariant-1", owner="bar", commit=one) for one in ("c1", "c2"))

        assert Cluster(*TARGETS).woken_by(old, new) == {"bar"}

    def test_a_marker_counts_as_an_owner(self) -> None:
        old, new = (downstream(owner="", labels={MARKER_LABEL: "uid-other"}, commit=one) for one in ("c1", "c2"))

        assert Cluster(*TARGETS).woken_by(old, new) == {"other"}

    def test_a_revision_of_another_namespace_wakes_nobody(self) -> None:
        assert Cluster(*TARGETS).woken_by(None, downstream(namespace="abroad")) == set()

    def test_a_target_may_be_the_source_of_another(self) -> None:
        chained = variant("chained", spec={"upstream": {"repo": "deployments", "package": "bar"}})
        cluster = Cluster(variant("bar"), chained)

        assert cluster.woken_by(downstream(), downstream(lifecycle="Published", number=1)) == {"bar", "chained"}


def cached(body: Json | None) -> CachedVariant | None:
    return CachedVariant.of(body) if body else None


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        pytest.param(None, variant(), True, id="made"),
        pytest.param(variant(), None, False, id="gone"),
        pytest.param(variant(), variant(version="2", generation=2), True, id="edited"),
        pytest.param(variant(), variant(deletionTimestamp="2026-01-01T00:00:00Z"), True, id="deleted"),
        pytest.param(variant(), variant(annotations={PAUSED: "true"}), True, id="paused"),
        pytest.param(variant(), variant(finalizers=[]), True, id="finalizer taken away"),
        pytest.param(variant(), variant(uid="another"), True, id="made again"),
        pytest.param(variant(), variant(annotations={"note": "a"}), False, id="annotated"),
        pytest.param(variant(), variant(labels={"team": "a"}), False, id="labelled"),
        pytest.param(variant(), {**variant(version="2"), "status": {"observedGeneration": 1}}, False, id="status"),
        pytest.param(variant(), variant(managedFields=[{"manager": "kubectl"}]), False, id="managedFields"),
    ],
)
def test_variant(old: Json | None, new: Json | None, wakes: bool) -> None:
    assert wakeups.by_variant(cached(old), cached(new)) == ({("default", "bar")} if wakes else set())


@pytest.mark.parametrize(
    ("old", "new", "wakes"),
    [
        pytest.param(None, repository(ready="False"), True, id="registered"),
        pytest.param(repository(), None, True, id="unregistered"),
        pytest.param(repository(ready="False"), repository(), True, id="ready"),
        pytest.param(repository(), repository(spec={"deployment": True}), True, id="deployment"),
        pytest.param(repository(), repository(spec={"git": {"branch": "other"}}), True, id="branch"),
        pytest.param(repository(), repository(ready="False"), False, id="not ready"),
        pytest.param(repository(), repository(version="2"), False, id="synced"),
    ],
)
def test_repository(old: Json | None, new: Json | None, wakes: bool) -> None:
    cluster = Cluster(variant(), variant("unconcerned", spec={"downstream": {"repo": "elsewhere", "package": "x"}}))
    before, after = (CachedRepository.of(one) if one else None for one in (old, new))

    assert wakeups.by_repository(before, after, cluster) == ({("default", "bar")} if wakes else set())


TEAM = {("hr.example.com/v1alpha1", "Team")}


@pytest.mark.parametrize(
    ("old", "new", "types"),
    [
        pytest.param(None, definition(), TEAM, id="established at once"),
        pytest.param(None, definition(established="False"), set(), id="not yet established"),
        pytest.param(definition(established="False"), definition(), TEAM, id="established"),
        pytest.param(definition(), None, TEAM, id="gone"),
        pytest.param(definition(), definition(version="2"), set(), id="changed"),
    ],
)
def test_definition(old: Json | None, new: Json | None, types: set[tuple[str, str]]) -> None:
    before, after = (ServedKind.of(one) if one else None for one in (old, new))

    assert came_or_went(before, after) == types
