"""The kinds of ``porch.kpt.dev`` as clients see them in tables: upstream's columns, and what a cell says.

Source: ``porch-api.md`` 1.7; the types are those of the recorded answers.
"""

from typing import Any

import pytest

from apiserver.machinery.definition import Definition
from apiserver.resources.porch import (
    package_revision_definition,
    package_revision_resources_definition,
    porch_package_definition,
)

Json = dict[str, Any]
FIRST = [("Name", "string"), ("Package", "string"), ("WorkspaceName", "string"), ("Revision", "int")]


@pytest.mark.parametrize(
    ("definition", "columns"),
    [
        (
            package_revision_definition(),
            [*FIRST, ("Latest", "boolean"), ("Lifecycle", "string"), ("Repository", "string")],
        ),
        (package_revision_resources_definition(), [*FIRST, ("Repository", "string"), ("Files", "integer")]),
        (
            porch_package_definition(),
            [("Name", "string"), ("Package", "string"), ("Repository", "string"), ("Latest Revision", "int")],
        ),
    ],
    ids=lambda value: value.kind if isinstance(value, Definition) else "",
)
def test_tables_have_upstreams_columns_and_none_of_lower_priority(
    definition: Definition, columns: list[tuple[str, str]]
) -> None:
    assert [(column.name, column.told_type or column.type) for column in definition.columns] == columns
    assert {column.priority for column in definition.columns} == {0}
    assert (definition.short_names, definition.categories) == ((), ())


def cells(definition: Definition, obj: Json) -> list[Any]:
    return [column.value(obj) for column in definition.columns]


def revision(spec: Json, labels: Json | None = None) -> Json:
    named = {"packageName": "a/b", "repository": "repo", "workspaceName": "w"}
    return {"metadata": {"name": "repo.a.b.w", "labels": labels}, "spec": {**named, **spec}, "status": {}}


def test_a_draft_prints_revision_0_and_is_never_the_latest() -> None:
    draft = revision({"lifecycle": "Draft"})

    assert cells(package_revision_definition(), draft) == ["repo.a.b.w", "a/b", "w", 0, False, "Draft", "repo"]


@pytest.mark.parametrize(
    ("labels", "latest"),
    [({"kpt.dev/latest-revision": "true"}, True), ({"kpt.dev/latest-revision": "false"}, False), (None, False)],
)
def test_the_latest_revision_is_the_one_with_the_label_true(labels: Json | None, latest: bool) -> None:
    published = revision({"lifecycle": "Published", "revision": 3}, labels)

    assert cells(package_revision_definition(), published)[3:5] == [3, latest]


def test_files_are_counted_and_a_package_that_is_not_published_has_latest_revision_0() -> None:
    files = revision({"resources": {"Kptfile": "", "a.yaml": ""}})
    package = {
        "metadata": {"name": "repo.a.b"},
        "spec": {"packageName": "a/b", "repository": "repo"},
        "status": {},
    }

    assert cells(package_revision_resources_definition(), files)[-1] == 2
    assert cells(porch_package_definition(), package) == ["repo.a.b", "a/b", "repo", 0]
