"""Which revisions and packages a selector wants: every field, every refusal. Source: ``porch-api.md`` 1.8."""

import re
from typing import Any

import pytest

from apiserver.engine.package_index import Package, revision_fields
from apiserver.machinery.rest import Scope, User
from apiserver.resources.porch import package_revision_definition
from apiserver.resources.revision_selectors import select_packages, select_revisions
from krm.meta.errors import BadRequest
from krm.meta.selectors import FieldSelector, LabelSelector
from storage.interfaces import Entry, ObjectKey

Json = dict[str, Any]
DEFINITION = package_revision_definition()
NOBODY = User("nobody")


def entry(
    package: str, workspace: str, lifecycle: str = "Draft", revision: int = 0, *, package_labels: Json | None = None
) -> Entry:
    name = f"repo.{package.replace('/', '.')}.{workspace}"
    body: Json = {
        "metadata": {"labels": {"team": "a"}},
        "spec": {
            "packageName": package,
            "repository": "repo",
            "workspaceName": workspace,
            "lifecycle": lifecycle,
            "revision": revision,
            "packageMetadata": {"labels": package_labels or {}},
        },
    }
    return Entry(ObjectKey("packagerevisions.porch.kpt.dev", "ns", name), 1, 1, "uid", b"", *revision_fields(body))


ENTRIES = [
    entry("a", "v1", "Published", 1, package_labels={"tier": "edge"}),
    entry("a", "v2", "DeletionProposed", 2, package_labels={"tier": "core", "a=b": "x,y"}),
    entry("a", "v3", "Proposed"),
    entry("a", "main", "Published", -1),
    entry("dir/a", "v1", package_labels={'not-tier":"edge': "x"}),
    entry("dir/ba", "v1"),
]


def selected(fields: str, labels: str = "", namespace: str | None = "ns") -> list[str]:
    matches, _ = select_revisions(
        DEFINITION, Scope(namespace, NOBODY), LabelSelector.parse(labels), FieldSelector.parse(fields)
    )
    return [one.name.removeprefix("repo.") for one in ENTRIES if matches is None or matches(one)]


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ("metadata.name=repo.a.v2", ["a.v2"]),
        ("metadata.name=not-a-name", []),
        ("metadata.namespace=ns,spec.workspaceName=v3", ["a.v3"]),
        ("spec.revision=1", ["a.v1"]),
        ("spec.revision=v2", ["a.v2"]),
        ("spec.revision=02", ["a.v2"]),
        ("spec.revision=-1", ["a.main"]),
        ("spec.revision=main", ["a.main"]),
        ("spec.revision=0", ["a.v3", "dir.a.v1", "dir.ba.v1"]),
        ("spec.packageName=a,spec.revision=0,spec.workspaceName=v3", ["a.v3"]),
        ("spec.packageName=a", ["a.v1", "a.v2", "a.v3", "a.main", "dir.a.v1"]),
        ("spec.packageName=dir/a", ["dir.a.v1"]),
        ("spec.repository=repo,spec.workspaceName=main", ["a.main"]),
        ("spec.repository=other", []),
        ("spec.lifecycle=Published", ["a.v1", "a.main"]),
        ("spec.lifecycle=Proposed,spec.lifecycle=DeletionProposed", ["a.v2", "a.v3"]),
        ("spec.lifecycle=Published,spec.lifecycle=Proposed,spec.revision=1", ["a.v1"]),
        ("spec.packageMetadata.labels[tier]=edge", ["a.v1"]),
        ("spec.packageMetadata.labels[tier]=edge,spec.packageMetadata.labels[tier]=core", []),
        ("spec.packageMetadata.labels[none]=edge", []),
        ("spec.workspaceName==v3", ["a.v3"]),
    ],
)
def test_every_field_selects_and_all_terms_must_hold_but_of_lifecycles_one(fields: str, found: list[str]) -> None:
    assert selected(fields) == found


def test_a_revision_number_that_nobody_can_have_finds_the_placeholders_like_any_other_word() -> None:
    assert selected("spec.revision=" + "9" * 5000) == ["a.main"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("spec.unknown=x", '"spec.unknown" is not a known field selector'),
        ("spec.packageMetadata.labels[a=x", '"spec.packageMetadata.labels[a" is not a known field selector'),
        ("spec.revision!=1", 'unsupported fieldSelector operator "!=" for field "spec.revision"'),
        ("spec.repository=", 'unsupported fieldSelector value "" for field "spec.repository" with operator "="'),
        ("spec.lifecycle=Ready", 'unsupported fieldSelector value "Ready" for field "spec.lifecycle"'),
        ("spec.packageMetadata.labels[]=x", "a label key is required"),
        ("metadata.namespace=other", 'conflicting namespaces specified: "ns" and "other"'),
    ],
)
def test_what_cannot_be_selected_is_refused_with_upstreams_sentence(fields: str, message: str) -> None:
    with pytest.raises(BadRequest, match=re.escape(message)):
        selected(fields)


def test_labels_and_fields_both_have_to_hold() -> None:
    assert selected("spec.revision=1", "team=a") == ["a.v1"]
    assert selected("spec.revision=1", "team!=a") == []


def test_a_list_over_all_namespaces_is_narrowed_by_the_namespace_that_a_term_names() -> None:
    for namespace, wanted in ((None, "ns"), ("ns", "ns")):
        _, narrowed = select_revisions(
            DEFINITION,
            Scope(namespace, NOBODY),
            LabelSelector.parse(""),
            FieldSelector.parse("metadata.namespace=ns"),
        )
        assert narrowed == wanted
    with pytest.raises(BadRequest, match="conflicting namespaces"):
        selected("metadata.namespace=a,metadata.namespace=b", namespace=None)


@pytest.mark.parametrize(
    ("fields", "labels", "found"),
    [
        ("", "", True),
        ("metadata.name=repo.dir.a", "", True),
        ("spec.packageName=a,spec.repository=repo", "", True),
        ("spec.packageName=dir/a", "", True),
        ("spec.packageName=dir", "", False),
        ("", "team", False),
        ("", "!team", True),
    ],
)
def test_packages_are_selected_by_name_path_and_repository_and_have_no_labels(
    fields: str, labels: str, found: bool
) -> None:
    package = Package("dir/a", "ns", "repo")
    matches, _ = select_packages(Scope("ns", NOBODY), LabelSelector.parse(labels), FieldSelector.parse(fields))

    assert (matches is None or matches(package)) is found
