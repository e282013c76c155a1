"""The workspace of a variant's next draft (5.2)."""

from typing import Any

import pytest
from case_tables import cases, revision
from hypothesis import given
from hypothesis import strategies as st

from krm.api.revision_name import label_problem
from krm.variants.workspaces import next_workspace, workspace_number

Json = dict[str, Any]


@pytest.mark.parametrize("case", cases("workspaces"))
def test_next_workspace(case: Json) -> None:
    revisions = [revision([name]) for name in case["workspaces"]]
    others = [revision([name], package="other") for name in case.get("of_another_package", ())]
    of_package = [one for one in (*revisions, *others) if one.package == "bar"]

    assert next_workspace(of_package, case.get("taken", ())) == case["next"]


@pytest.mark.hypothesis
@given(st.lists(st.from_regex(r"packagevariant-[0-9]{1,12}|[a-z]{1,5}-?[0-9]{0,3}", fullmatch=True)))
def test_the_next_is_new_and_a_name_that_the_server_takes(workspaces: list[str]) -> None:
    wanted = next_workspace([], workspaces)

    assert wanted not in workspaces
    assert label_problem(wanted) is None
    assert workspace_number(wanted) > max(map(workspace_number, workspaces), default=0)
