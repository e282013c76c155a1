"""Names and uids: ``porch-api.md`` 2.1 and the vectors of 2.3."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from krm.api.revision_name import (
    UID_NAMESPACE,
    RevisionName,
    label_problem,
    object_name_problem,
    package_object_name,
    package_path_problem,
    package_uid,
    parse_revision_name,
    revision_uid,
)

LABEL = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?", fullmatch=True)


@pytest.mark.parametrize(
    ("namespace", "name", "uid"),
    [
        ("rpkg-init", "git.init-package.init-1", "45ee0692-730a-51b2-9a1d-ad4f4ad55dc8"),
        ("rpkg-copy", "git.basens-edit.copy-2", "dc403caa-3f59-5a61-8a79-adcdf40bc52a"),
        ("rpkg-push", "git.test-package.push", "0e7dd104-514e-5455-b077-6f196b04165c"),
        ("rpkg-clone", "git.empty-clone.clone-1", "e8317a47-90ce-5c75-b548-26e7de2e2508"),
    ],
)
def test_uids_are_those_that_upstreams_suite_asserts(namespace: str, name: str, uid: str) -> None:
    assert revision_uid(namespace, name) == uid


def test_a_package_is_named_as_its_revisions_without_the_workspace_and_has_a_uid_of_its_own() -> None:
    name = RevisionName("git", "net/edge", "v1")

    assert package_object_name("git", "net/edge") == "git.net.edge"
    assert name.object_name == "git.net.edge.v1"
    seed = "dbPackage:porch.kpt.dev/v1alpha1/ns/git.net.edge"
    assert package_uid("NS", "git.net.edge") == str(uuid.uuid5(UID_NAMESPACE, seed))


@given(repository=LABEL, package=st.lists(LABEL, min_size=1, max_size=3), workspace=LABEL)
def test_a_composed_name_parses_back(repository: str, package: list[str], workspace: str) -> None:
    name = RevisionName(repository, "/".join(package), workspace)

    parsed = parse_revision_name(name.object_name)

    assert parsed is not None
    assert parsed.repository == repository
    assert parsed.object_name == name.object_name


def test_a_semver_workspace_keeps_its_dots() -> None:
    assert parse_revision_name("repo.pkg.v2.0.0") == RevisionName("repo", "pkg", "v2.0.0")


@pytest.mark.parametrize("name", ["", "foo", "foo.bar", "..", "foo..v1"])
def test_what_has_no_three_parts_is_no_name(name: str) -> None:
    assert parse_revision_name(name) is None


@pytest.mark.parametrize("path", ["", "a//b", "/a", "a/", "A", "a_b", "a/../b", "x" * 64, "-a", "a/b c"])
def test_bad_package_paths_are_named(path: str) -> None:
    assert package_path_problem(path)


@pytest.mark.parametrize("path", ["a", "a/b", "core/amf-1"])
def test_good_package_paths_pass(path: str) -> None:
    assert package_path_problem(path) is None


def test_a_label_has_at_most_63_characters() -> None:
    assert label_problem("a" * 63) is None
    assert label_problem("a" * 64)


def test_a_name_over_253_characters_is_refused() -> None:
    name = RevisionName("r" * 63, "/".join(["p" * 63] * 3), "w" * 63)

    problem = object_name_problem(name)

    assert problem is not None
    assert problem.startswith("package revision kubernetes resource name invalid:\n")
