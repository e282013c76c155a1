"""What the reconciler reads from the caches, and whom its own writes wake."""

from collections.abc import Iterable, Iterator
from typing import Any, cast

import pytest
from cluster_bodies import definition, published, repository, revision, variant

from controllers.packagevariant.cached_values import CachedVariant
from controllers.packagevariant.cached_views import CachedViews, working_on
from controllers.packagevariant.caches import Caches
from controllers.packagevariant.injectables import Injectables
from controllers.packagevariant.views import RepositoryView
from controllers.runtime.served_kinds import ServedKind
from krm.client.client import KubeClient
from krm.variants.revisions import Lock, Owner, Revision
from krm.variants.vocabulary import API_VERSION

Json = dict[str, Any]
CHAINED = variant("chained", spec={"upstream": {"repo": "deployments", "package": "bar"}})


class Rig:
    def __init__(self) -> None:
        self.caches = Caches(cast("KubeClient", None), None)  # makes no request
        self.woken: list[str] = []
        self.made: list[str] = []
        self.views = CachedViews(
            self.caches,
            cast("Injectables", None),  # nothing is injected
            self._wake,
            lambda draft: self.made.append(draft.name),
        )
        for body in (variant(), CHAINED):
            self.caches.variants.wrote(body)

    def _wake(self, keys: Iterable[tuple[str, str]]) -> None:
        self.woken += sorted(name for _, name in keys)


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.fixture
def at_work() -> Iterator[None]:
    token = working_on.set(("default", "bar"))
    yield
    working_on.reset(token)


def draft(version: str = "5", **parts: Any) -> Json:
    return revision(
        "bar", "packagevariant-1", **{"repository": "deployments", "owner": "bar", "version": version, **parts}
    )


NAME = "deployments.bar.packagevariant-1"


class TestViews:
    """Answers."""

    def test_a_variant_is_as_on_the_wire_without_managed_fields_and_a_copy(self, rig: Rig) -> None:
        rig.caches.variants.wrote({**variant(version="7", managedFields=[{}]), "status": {"observedGeneration": 1}})
        found = rig.views.variant("default", "bar")
        assert found is not None
        found["spec"]["upstream"] = None

        assert rig.views.variant("default", "bar") == {**variant(version="7"), "status": {"observedGeneration": 1}}
        assert rig.views.variant("default", "none") is None

    def test_revisions_are_found_by_package_owner_and_place(self, rig: Rig) -> None:
        for body in (
            draft(),
            published(number=1),
            published("bar", 2, repository="deployments"),
            revision("x", owner="bar"),
        ):
            rig.caches.package_revisions.wrote(body)
        lock = Lock("https://git/x.git", "/bar/", "other", "c1")

        assert names(rig.views.revisions_of("default", "deployments", "bar")) == {NAME, "deployments.bar.v2"}
        assert names(rig.views.owned("default", "uid-bar")) == {NAME, "blueprints.x.v1"}
        assert names(rig.views.locked_at("default", lock)) == {NAME, "deployments.bar.v2"}
        assert rig.views.revisions_of("other", "deployments", "bar") == []
        assert rig.views.revision("default", NAME) == Revision.of(draft())

    def test_a_repository_has_its_branch_and_secret(self, rig: Rig) -> None:
        git = {"git": {"repo": "https://git/x", "branch": "release", "secretRef": {"name": "auth"}}, "deployment": True}
        rig.caches.repositories.wrote(repository(spec=git))
        rig.caches.repositories.wrote(repository("plain", spec={"git": {"repo": "https://git/x"}}))

        found = rig.views.repository("default", "deployments")
        assert found == RepositoryView("deployments", "release", deployment=True, secret="auth")
        assert rig.views.repository("default", "plain") == RepositoryView("plain", "main", deployment=False)
        assert rig.views.repository("default", "none") is None

    @pytest.mark.parametrize(
        ("owner", "alive"),
        [
            pytest.param(Owner(API_VERSION, "PackageVariant", "bar", "uid-bar", controller=True), True, id="there"),
            pytest.param(Owner(API_VERSION, "PackageVariant", "bar", "uid-old", controller=True), False, id="former"),
            pytest.param(Owner("v1", "ConfigMap", "bar", "uid-old", controller=True), True, id="of another kind"),
        ],
    )
    def test_owners_live(self, rig: Rig, owner: Owner, alive: bool) -> None:
        assert rig.views.is_alive(owner, "default") is alive


class TestOwnWrites:
    """What a write of ours does to others."""

    @pytest.mark.usefixtures("at_work")
    def test_a_new_draft_wakes_nobody_and_is_counted(self, rig: Rig) -> None:
        rig.views.wrote(draft())
        rig.views.wrote(draft())

        assert rig.woken == []
        assert rig.made == [NAME]

    @pytest.mark.usefixtures("at_work")
    def test_a_write_wakes_whom_it_concerns_but_who_wrote(self, rig: Rig) -> None:
        rig.views.wrote(draft(lifecycle="Published", number=1))
        rig.views.wrote(draft("6", lifecycle="DeletionProposed", number=1))
        rig.views.wrote(draft("6", lifecycle="DeletionProposed", number=1))

        assert rig.woken == ["chained", "chained"]
        assert rig.made == []

    @pytest.mark.usefixtures("at_work")
    def test_a_deletion_wakes_whom_it_concerns_but_who_deleted(self, rig: Rig) -> None:
        rig.views.wrote(draft(lifecycle="Published", number=1))
        rig.woken.clear()
        rig.views.forget("default", NAME)
        rig.views.forget("default", NAME)

        assert rig.woken == ["chained"]
        assert rig.views.revision("default", NAME) is None

    def test_the_version_that_saving_made_is_known_until_the_next_write(self, rig: Rig) -> None:
        token = working_on.set(("default", "bar"))
        rig.views.saved({"metadata": {"namespace": "default", "name": NAME, "resourceVersion": "8"}})
        working_on.reset(token)

        assert rig.views.saved_for(Revision.of(draft("8"))) == ("default", "bar")
        assert rig.views.saved_for(Revision.of(draft("9"))) is None
        rig.views.wrote(draft("10"))
        assert rig.views.saved_for(Revision.of(draft("8"))) is None
        assert rig.views.saved_for(None) is None


def names(revisions: Iterable[Revision]) -> set[str]:
    return {one.name for one in revisions}


def test_a_cached_variant_keeps_what_decides_whom_events_wake() -> None:
    spec = {"injectors": [{"name": "east"}, {"name": "west", "kind": "Team"}, {"name": ""}], "suspend": True}
    ready = {"type": "Ready", "status": "False", "reason": "DraftChurn", "observedGeneration": 1}
    found = CachedVariant.of({**variant(spec=spec), "status": {"conditions": [ready]}})

    assert found.injected_names == {"east", "west"}
    assert found.paused
    assert found.condition("Ready") is not None
    assert found.condition("Stalled") is None


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param({"injectors": "east"}, id="text"),
        pytest.param({"injectors": [1, None, {"name": {"a": []}}, {"name": ["x"]}]}, id="rubbish"),
        pytest.param({"upstream": {"repo": "a", "package": "b", "revision": {"x": 1}}}, id="revision"),
    ],
)
def test_a_variant_of_no_sense_can_be_kept(spec: Json) -> None:
    caches = Caches(cast("KubeClient", None), None)
    caches.variants.wrote(variant(spec=spec))

    assert caches.variant_keys() == [("default", "bar")]


def test_a_definition_tells_the_served_versions_once_it_is_established() -> None:
    assert ServedKind.of(definition()).types == {("hr.example.com/v1alpha1", "Team")}
    assert ServedKind.of(definition(established="False")).types == frozenset()
