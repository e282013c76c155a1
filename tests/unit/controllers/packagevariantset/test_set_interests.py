"""Whom an event concerns, as a table over what sets asked to hear of; nobody is asked whom it cannot concern."""

from typing import Any

import pytest

from controllers.packagevariantset import wakeups
from controllers.packagevariantset.cached_values import (
    CachedRepository,
    CachedSet,
    Key,
    Member,
    Selectable,
)
from controllers.packagevariantset.interests import Interest, Interests, interest_of
from krm.variants.revisions import Revision
from krm.variants.variant import UpstreamSpec

Json = dict[str, Any]
UPSTREAM = UpstreamSpec("blueprints", "foo", 1, "", "", allow_downgrade=False)
KEY = ("default", "my-set")
TEAM = ("bigco.com/v1", "Team")


def interests(spec: Json | None = None, **more: Any) -> Interests:
    """Return the interests of one set, whose variants go to the repository ``used`` unless said otherwise."""
    made = Interests()
    found = interest_of(spec or {"targets": [{"repositories": [{"name": "used"}]}]}, UPSTREAM)
    parts = {"repositories": frozenset({"used"}), **more}
    made.put(KEY, Interest(found.source, found.filters, publications=found.publications, **parts))
    return made


def repository(name: str, labels: Json | None = None, *, branch: str = "main", **meta: Any) -> CachedRepository:
    meta = {"namespace": "default", "name": name, "labels": labels or {}, "resourceVersion": "1", **meta}
    return CachedRepository.of({"metadata": meta, "spec": {"git": {"branch": branch}}})


SELECTING = {"targets": [{"repositorySelector": {"matchLabels": {"env": "prod"}}}]}


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        (None, repository("other", {"env": "prod"}), True),
        (repository("other", {"env": "prod"}), None, True),
        (repository("other", {"env": "prod"}), repository("other", {"env": "dev"}), True),
        (repository("other", {"env": "dev"}), repository("other", {"env": "prod"}), True),
        (repository("other", {"env": "dev"}), repository("other", {"env": "test"}), False),
        (repository("used", {"env": "dev"}), repository("used", {"env": "test"}), True),
        (repository("used"), repository("used", resourceVersion="2"), False),
        (repository("used"), repository("used", branch="trunk"), False),
        (repository("blueprints"), repository("blueprints", branch="trunk"), True),
        (repository("used"), repository("used", deletionTimestamp="2026-01-01T00:00:00Z"), True),
    ],
)
def test_repositories(old: CachedRepository | None, new: CachedRepository | None, woken: bool) -> None:
    assert wakeups.by_repository(old, new, interests(SELECTING)) == ({KEY} if woken else set())


def test_every_repository_concerns_a_set_while_it_is_not_known_where_its_variants_go() -> None:
    made = interests(repositories=frozenset(), every_repository=True)

    assert wakeups.by_repository(None, repository("any"), made) == {KEY}


def test_repositories_of_another_namespace_concern_nobody() -> None:
    assert wakeups.by_repository(None, repository("used", namespace="other"), interests()) == set()


def test_what_a_set_said_before_counts_no_more() -> None:
    made = interests()
    made.put(KEY, Interest(("blueprints", "bar"), repositories=frozenset({"another"})))
    assert made.using("default", "used") == set()
    assert made.following(("default", "blueprints", "foo")) == set()

    made.forget(KEY)
    assert made._index == {}


def revision(name: str = "v1", lifecycle: str = "Published", package: str = "foo", **meta: Any) -> Any:
    spec = {"repository": "blueprints", "packageName": package, "workspaceName": name, "lifecycle": lifecycle}
    return Revision.of(
        {"metadata": {"namespace": "default", "name": f"blueprints.{package}.{name}", **meta}, "spec": spec}
    )


@pytest.mark.parametrize(
    ("old", "new", "woken"),
    [
        (None, revision(), True),
        (revision(), None, True),
        (revision(), revision(resourceVersion="2"), False),
        (revision(), revision(labels={"tags.porch.kpt.dev/stable": ""}), True),
        (revision(), revision(annotations={"owner": "me"}), True),
        (revision(lifecycle="Draft"), revision(), True),
        (revision(lifecycle="Draft"), revision(lifecycle="Draft", annotations={"a": "b"}), False),
        (revision(), revision(deletionTimestamp="2026-01-01T00:00:00Z"), True),
        (None, revision(package="another"), False),
    ],
)
def test_revisions_of_the_source(old: Any, new: Any, woken: bool) -> None:
    assert wakeups.by_revision(old, new, interests(), lambda _package: ()) == ({KEY} if woken else set())


@pytest.mark.parametrize("settles_on", ["Published", "DraftReady"])
def test_a_package_that_is_published_concerns_a_set_that_waits_for_it(settles_on: str) -> None:
    spec = {"targets": [{"repositories": [{"name": "used"}]}], "rollout": {"settleOn": settles_on}}
    old, new = revision(package="target", lifecycle="Draft"), revision(package="target")

    woken = wakeups.by_revision(old, new, interests(spec), lambda package: {KEY} if package[2] == "target" else ())

    assert woken == ({KEY} if settles_on == "Published" else set())


def member(
    name: str = "my-variant", *, ready: str = "", version: str = "1", uid: str = "set-uid", **meta: Any
) -> Member:
    conditions = [{"type": "Ready", "status": ready, "reason": "Test"}] if ready else []
    labels = {"config.porch.kpt.dev/packagevariantset": uid} if uid else {}
    return Member.of(
        {
            "metadata": {
                "namespace": "default",
                "name": name,
                "uid": "u",
                "resourceVersion": version,
                "labels": labels,
                **meta,
            },
            "spec": {"downstream": {"repo": meta.pop("repo", "used"), "package": "foo"}},
            "status": {"conditions": conditions},
        }
    )


A_SET = CachedSet.of({"metadata": {"namespace": "default", "name": "my-set", "uid": "set-uid"}})


def woken_by(old: Member | None, new: Member | None, made: Interests | None = None) -> tuple[set[Key], set[Key]]:
    return wakeups.by_member(old, new, lambda one: [A_SET] if one.set_uid == "set-uid" else [], made or interests())


@pytest.mark.parametrize(
    ("old", "new", "soon", "later"),
    [
        (None, member(), True, False),
        (member(), None, True, False),
        (member(), member(version="2"), False, False),
        (member(), member(ready="True"), False, True),
        (member(), member(deletionTimestamp="2026-01-01T00:00:00Z"), True, False),
        (member(), member(annotations={"config.porch.kpt.dev/paused": "true"}), True, False),
        (member(), member(annotations={"note": "mine"}), False, False),
        (member(), member(uid=""), True, False),
        (member(uid=""), member(), True, False),
        (member(uid="of-another"), member(uid="of-another", ready="True"), False, False),
    ],
)
def test_variants(old: Member | None, new: Member | None, soon: bool, later: bool) -> None:
    assert woken_by(old, new) == ({KEY} if soon else set(), {KEY} if later else set())


def test_the_end_of_a_variant_wakes_the_set_that_wants_its_name() -> None:
    made = interests(taken=frozenset({"theirs"}))

    assert woken_by(member("theirs", uid=""), None, made) == ({KEY}, set())
    assert woken_by(member("another", uid=""), None, made) == (set(), set())


def team(name: str, role: str) -> Selectable:
    return Selectable.of({"metadata": {"namespace": "default", "name": name, "labels": {"role": role}}}, TEAM)


def test_objects_concern_the_sets_that_select_them() -> None:
    selector = {"apiVersion": TEAM[0], "kind": TEAM[1], "matchLabels": {"role": "dev"}}
    made = interests({"targets": [{"objectSelector": selector}]})

    assert wakeups.by_object("default", TEAM, None, team("a", "dev"), made) == {KEY}
    assert wakeups.by_object("default", TEAM, team("a", "dev"), team("a", "ops"), made) == {KEY}
    assert wakeups.by_object("default", TEAM, None, team("a", "ops"), made) == set()
    assert wakeups.by_object("other", TEAM, None, team("a", "dev"), made) == set()
    assert wakeups.by_object("default", ("bigco.com/v1", "Crew"), None, team("a", "dev"), made) == set()
