"""Every check that was specified for a server behind a real kube-apiserver is a test that ``make test-cluster`` runs there."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ROWS = range(1, 91)
"""The rows of ``kube-api.md`` 7.2."""
STANDALONE_ONLY, CLUSTER_ONLY = {13, 14, 59}, {12, 56, 88}
TABLE: list[dict[str, Any]] = yaml.safe_load((ROOT / "tests" / "data" / "cluster_checks.yaml").read_text())
IN_CLUSTER = [row for row in TABLE if row.get("mode") != "S"]


def run_in_a_cluster() -> list[str]:
    """Return the files and folders that ``make test-cluster`` gives to pytest."""
    listed = re.search(
        r"^THROUGH_AGGREGATOR := \$\(addprefix (\S+),(.+)\)$", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert listed
    return ["tests/aggregated", *(listed[1] + name for name in listed[2].split())]


def clustered_in(path: str) -> set[str]:
    """Return the tests of a file that are about a server in a cluster."""
    tree = ast.parse((ROOT / path).read_text())
    if any(isinstance(node, ast.Assign) and _is_standalone(node) for node in tree.body):  # pytestmark
        return set()
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {node.name for node in functions if not any(map(_is_standalone, node.decorator_list))}


def _is_standalone(node: ast.AST) -> bool:
    return "pytest.mark.standalone" in ast.unparse(node)


def test_the_table_has_every_row_once_in_its_mode() -> None:
    assert [row["row"] for row in TABLE] == list(ROWS)
    assert {row["row"] for row in TABLE if row.get("mode") == "S"} == STANDALONE_ONLY
    assert {row["row"] for row in TABLE if row.get("mode") == "A"} == CLUSTER_ONLY


@pytest.mark.parametrize("row", IN_CLUSTER, ids=lambda row: str(row["row"]))
def test_a_row_has_tests_that_are_run_in_a_cluster(row: dict[str, Any]) -> None:
    assert row["tests"], row["check"]
    for test in row["tests"]:
        path, name = test.split("::")
        assert any(path == one or path.startswith(f"{one}/") for one in run_in_a_cluster()), path
        assert name in clustered_in(path), f"{test} is not there, or is not about a server in a cluster"


def test_no_test_of_a_row_is_forgotten_in_the_table() -> None:
    listed = {test for row in IN_CLUSTER for test in row["tests"]}
    folders = (folder for one in run_in_a_cluster() if (folder := ROOT / one).is_dir())
    paths = (path.relative_to(ROOT).as_posix() for folder in folders for path in folder.glob("test_*.py"))
    named = {f"{path}::{name}" for path in paths for name in clustered_in(path) if name.startswith("test_row")}

    assert named - listed == set()
