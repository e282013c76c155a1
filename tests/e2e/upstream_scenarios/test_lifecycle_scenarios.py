"""Upstream's API scenarios of the lifecycle: propose, approve, delete, revision numbers, the latest one (46 to 51)."""

from typing import Any

import pytest
from eventually import eventually
from remotes import Remote
from upstream_client import Refused, UpstreamClient, labels_of, name_of, names, with_lifecycle

Object = dict[str, Any]
LATEST = "kpt.dev/latest-revision"


def edit(source: str) -> Object:
    return {"type": "edit", "edit": {"sourceRef": {"name": source}}}


def test_scenario_46_propose_and_approve_then_delete_in_every_lifecycle(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    suite.register("lifecycle", porch_test)

    _propose_and_approve(suite)
    _delete_draft(suite)
    _delete_proposed(suite)
    _delete_final(suite)


def _propose_and_approve(suite: UpstreamClient) -> None:
    draft = suite.make("lifecycle", "test-package", "workspace")
    assert draft["spec"]["lifecycle"] == "Draft"
    proposed = suite.update(with_lifecycle(suite.revision(name_of(draft)), "Proposed"))
    assert proposed["spec"]["lifecycle"] == "Proposed"

    approved = suite.update_approval(with_lifecycle(proposed, "Published"))

    assert approved["spec"]["lifecycle"] == "Published"
    assert approved["spec"]["revision"] == 1
    again = suite.revision(name_of(draft))
    assert (again["spec"]["lifecycle"], again["spec"]["revision"]) == ("Published", 1)


def _delete_draft(suite: UpstreamClient) -> None:
    draft = suite.make("lifecycle", "test-delete-draft", "test-workspace")

    suite.delete(suite.revision(name_of(draft)))

    assert not suite.exists(name_of(draft))


def _delete_proposed(suite: UpstreamClient) -> None:
    name = name_of(suite.make("lifecycle", "test-delete-proposed", "workspace"))
    proposed = suite.propose(name)

    suite.delete(proposed)

    assert not suite.exists(name)


def _delete_final(suite: UpstreamClient) -> None:
    final = suite.make_published("lifecycle", "test-delete-final", "workspace")
    with pytest.raises(Refused, match="published PackageRevisions must be proposed for deletion"):
        suite.delete(final)
    assert suite.exists(name_of(final))

    proposed = suite.update_approval(with_lifecycle(final, "DeletionProposed"))
    suite.delete(proposed)

    assert not suite.exists(name_of(final))


def test_scenario_47_a_deletion_is_proposed_and_undone_for_every_revision_the_placeholder_included(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    suite.register("test-propose-delete-and-undo", porch_test)
    suite.make_published("test-propose-delete-and-undo", "test-propose-delete-and-undo", "v1")
    found = suite.revisions()
    assert sorted(one["spec"]["workspaceName"] for one in found) == ["main", "v1"]

    for revision in found:
        proposed = suite.update_approval(with_lifecycle(revision, "DeletionProposed"))
        undone = suite.update_approval(with_lifecycle(proposed, "Published"))
        assert undone["spec"]["lifecycle"] == "Published"
        with pytest.raises(Refused, match="must be proposed for deletion"):
            suite.delete(undone)
        suite.delete(suite.update_approval(with_lifecycle(undone, "DeletionProposed")))
        assert not suite.exists(name_of(revision))

    assert suite.revisions() == []


def test_scenario_48_a_deleted_package_is_created_again_under_the_same_name(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    repository, package = "delete-and-recreate", "test-delete-and-recreate"
    suite.register(repository, porch_test)
    first = suite.make_published(repository, package, "v1")
    main = f"{repository}.{package}.main"
    assert suite.exists(main)

    suite.delete_published(name_of(first))
    assert suite.exists(main), "deleting the tagged revision leaves the branch alone"
    suite.delete_published(main)
    again = suite.make(repository, package, "v1")

    assert name_of(again) == name_of(first)
    assert again["metadata"]["uid"] == first["metadata"]["uid"]
    assert [task["type"] for task in suite.revision(name_of(again))["spec"]["tasks"]] == ["init"]
    published = suite.publish(name_of(again))
    assert published["spec"]["revision"] == 1
    assert [task["type"] for task in published["spec"]["tasks"]] == ["init"]


def test_scenario_49_placeholders_are_deleted_from_main_and_then_the_rest(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    repository, packages = "delete-main", ["test-delete-main-1", "test-delete-main-2"]
    suite.register(repository, porch_test)
    for package in packages:
        suite.make_published(repository, package, "v1")

    for workspace in ("main", "v1"):
        revisions = [f"{repository}.{package}.{workspace}" for package in packages]
        for name in revisions:
            assert suite.propose_deletion(name)["spec"]["lifecycle"] == "DeletionProposed"
        for name in revisions:
            suite.delete(suite.revision(name))
        assert not any(map(suite.exists, revisions))

    assert suite.revisions() == []


def test_scenario_50_the_latest_label_follows_publication_and_deletion(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    repository, package = "test-latest-on-delete", "test-latest-on-delete-package"
    suite.register(repository, porch_test)
    first = suite.make_published(repository, package, "v1")
    assert _latest(suite) == [name_of(first)]

    second = suite.make_published(repository, package, "v2", edit(name_of(first)))
    assert second["spec"]["revision"] == 2
    assert _latest(suite) == [name_of(second)]

    proposed = suite.update(with_lifecycle(suite.revision(name_of(second)), "DeletionProposed"))
    assert labels_of(proposed).get(LATEST) == "true", "a proposed deletion leaves the revision the latest one"
    suite.delete(proposed)

    def moved_back() -> None:
        assert _latest(suite) == [name_of(first)]

    eventually(moved_back)
    assert labels_of(suite.revision(name_of(first)))[LATEST] == "true"
    assert LATEST not in labels_of(suite.revision(f"{repository}.{package}.main"))


def _latest(suite: UpstreamClient) -> list[str]:
    by_label = names([one for one in suite.revisions() if labels_of(one).get(LATEST) == "true"])
    assert by_label == names(suite.revisions(labels=f"{LATEST}=true"))
    return by_label


def test_scenario_51_revisions_of_packages_in_folders_are_counted_up(suite: UpstreamClient, porch_test: Remote) -> None:
    # Two repositories of one branch conflict when one lies inside the other, so each has a branch of its own.
    suite.register("porch-path", porch_test, branch="subfolder-one", createBranch=True)
    _first_and_second_revision(suite, "porch-path", "random/package/folder/test-package")

    suite.register(
        "porch-folder", porch_test, branch="subfolder-two", createBranch=True, directory="random/repo/folder"
    )
    _first_and_second_revision(suite, "porch-folder", "test-package")


def _first_and_second_revision(suite: UpstreamClient, repository: str, package: str) -> None:
    first = suite.make_published(repository, package, "workspace")
    assert first["spec"]["revision"] == 1

    second = suite.make_published(repository, package, "workspace2", edit(name_of(first)))

    assert second["spec"]["revision"] == 2
    assert second["spec"]["packageName"] == package
    assert name_of(second) == f"{repository}.{package.replace('/', '.')}.workspace2"
