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
