"""The package index: what creates, approvals and deletions ask instead of listing."""

from typing import Any

from apiserver.engine.package_index import PackageIndex, revision_fields
from storage.interfaces import Entry, Event, EventType, ObjectKey


def entry(name: str, package: str, workspace: str, revision: int = 0, lifecycle: str = "Draft", **more: Any) -> Entry:
    body = {
        "metadata": {"labels": more.get("labels", {})},
        "spec": {
            "packageName": package,
            "repository": "repo",
            "workspaceName": workspace,
            "lifecycle": lifecycle,
            "revision": revision,
            "tasks": more.get("tasks", []),
        },
        "status": {},
    }
    labels, fields = revision_fields(body)
    return Entry(ObjectKey("packagerevisions.porch.kpt.dev", "ns", name), 1, 1, "uid", b"", labels, fields)


def filled(*entries: Entry) -> PackageIndex:
    index = PackageIndex()
    for one in entries:
        index.observe(Event(1, EventType.ADDED, one, None))
    return index


def test_the_next_revision_follows_the_highest_published_one() -> None:
    index = filled(
        entry("a.v1", "a", "v1", 1, "Published"),
        entry("a.v3", "a", "v3", 3, "DeletionProposed"),
        entry("a.main", "a", "main", -1, "Published"),
        entry("a.v4", "a", "v4"),
    )

    package = index.package("ns", "repo", "a")

    assert package is not None
    assert package.next_revision() == 4
    latest = package.latest()
    assert latest is not None
    assert latest.name == "a.v3"


def test_packages_cannot_lie_in_each_other_in_either_direction() -> None:
    index = filled(entry("x", "core/amf", "v1"))

    assert index.nesting_conflict("ns", "repo", "core") == "core/amf"
    assert index.nesting_conflict("ns", "repo", "core/amf/sub") == "core/amf"
    assert index.nesting_conflict("ns", "repo", "core/smf") is None
    assert index.nesting_conflict("ns", "repo", "co") is None
    assert index.nesting_conflict("ns", "other", "core") is None


def test_nothing_is_left_of_the_directories_of_packages_that_come_and_go() -> None:
    index = filled(entry("stays", "stays", "v1"))
    for number in range(3):
        one = entry("x", f"core{number}/amf", "v1")
        index.observe(Event(2, EventType.ADDED, one, None))
        index.observe(Event(3, EventType.DELETED, one, one))

    assert not index._repositories["ns", "repo"].directories


def test_a_package_without_revisions_is_forgotten_with_its_directories() -> None:
    one = entry("x", "core/amf", "v1")
    index = filled(one)

    index.observe(Event(2, EventType.DELETED, one, one))

    assert index.package("ns", "repo", "core/amf") is None
    assert index.nesting_conflict("ns", "repo", "core") is None
    assert list(index.revisions("ns", "repo")) == []


def test_a_change_replaces_what_was_indexed() -> None:
    old = entry("a.v1", "a", "v1")
    index = filled(old)

    index.observe(Event(2, EventType.MODIFIED, entry("a.v1", "a", "v1", 1, "Published"), old))

    package = index.package("ns", "repo", "a")
    assert package is not None
    assert [one.name for one in package.published()] == ["a.v1"]


def test_clones_and_upgrades_refer_to_their_upstream() -> None:
    clone = {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": "base.v1"}}}}
    upgrade = {"type": "upgrade", "upgrade": {"newUpstreamRef": {"name": "base.v1"}}}
    one, two = entry("b", "b", "v1", tasks=[clone]), entry("a", "a", "v1", tasks=[upgrade])
    index = filled(one, two)

    assert index.referenced_by("ns", "base.v1") == ["a", "b"]

    index.observe(Event(2, EventType.DELETED, one, one))

    assert index.referenced_by("ns", "base.v1") == ["a"]


def test_packages_are_found_by_their_object_names_and_listed_in_order() -> None:
    index = filled(entry("c.v1", "c", "v1"), entry("a.v1", "a/b", "v1"), entry("b.v1", "b", "v1"))

    named = index.named("ns")

    found = named.get("repo.a.b")
    assert found is not None
    assert (found.path, found.repository, found.namespace) == ("a/b", "repo", "ns")
    assert [package.name for package in named.after("")] == ["repo.a.b", "repo.b", "repo.c"]
    assert [package.name for package in named.after("repo.b")] == ["repo.c"]
    assert index.namespaces() == ["ns"]


def test_a_package_is_gone_by_name_with_its_last_revision() -> None:
    first, second = entry("a.v1", "a", "v1"), entry("a.v2", "a", "v2")
    index = filled(first, second)

    index.observe(Event(2, EventType.DELETED, first, first))
    kept = index.named("ns").get("repo.a")
    assert kept is not None
    assert kept.changed == 2
    index.observe(Event(3, EventType.DELETED, second, second))

    assert index.named("ns").get("repo.a") is None
    assert index.namespaces() == []


def test_a_name_that_comes_to_mean_another_package_leaves_the_first_one() -> None:
    """``r.a.v1.0`` is package ``a`` in workspace ``v1.0`` and package ``a/v1`` in workspace ``0``."""
    before, after = entry("repo.a.v1.0", "a", "v1.0"), entry("repo.a.v1.0", "a/v1", "0")
    index = filled(before)

    index.observe(Event(2, EventType.MODIFIED, after, before))

    assert index.package("ns", "repo", "a") is None
    assert index.package("ns", "repo", "a/v1") is not None
    assert [package.path for package in index.named("ns").after("")] == ["a/v1"]


def test_who_refers_to_an_upstream_follows_a_change_of_the_task() -> None:
    def clone(upstream: str) -> Entry:
        task = {"type": "clone", "clone": {"upstreamRef": {"upstreamRef": {"name": upstream}}}}
        return entry("a.v1", "a", "v1", tasks=[task])

    index = filled(clone("up.v1"))
    index.observe(Event(2, EventType.MODIFIED, clone("up.v2"), clone("up.v1")))

    assert index.referenced_by("ns", "up.v1") == []
    assert index.referenced_by("ns", "up.v2") == ["a.v1"]


def test_the_revisions_of_a_repository_are_counted_as_they_come_change_and_go() -> None:
    first, second = entry("a.v1", "a", "v1"), entry("b.v1", "b", "v1")
    index = filled(first, second)
    index.observe(Event(2, EventType.MODIFIED, entry("a.v1", "a", "v1", lifecycle="Proposed"), first))
    assert index.count("ns", "repo") == 2

    index.observe(Event(3, EventType.DELETED, second, second))

    assert index.count("ns", "repo") == 1
    assert index.count("ns", "other") == 0
