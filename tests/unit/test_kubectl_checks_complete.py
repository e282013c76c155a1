"""Every check that was specified for real kubectl is a test: one test a row, save the rows listed here."""

import ast
from collections import Counter
from pathlib import Path

CHECKS = Path(__file__).resolve().parents[1] / "e2e" / "kubectl_checks"
ROWS = range(1, 91)
"""The rows of ``kube-api.md`` 7.2."""
IN_CLUSTER = {
    12: "an APIService",
    53: "three replicas",
    56: "a watch through kube-apiserver",
    88: "the front proxy's certificate",
}
"""Rows that are about a server in a cluster; ``tests/data/cluster_checks.yaml`` names their tests."""


def rows_tested() -> Counter[int]:
    """Count the tests named ``test_row_NN_...`` by their row."""
    functions = (
        node.name
        for path in CHECKS.glob("test_*_checks.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return Counter(int(name.split("_")[2]) for name in functions if name.startswith("test_row_"))


def test_every_row_has_one_test_or_a_reason_why_not() -> None:
    tested = rows_tested()

    assert [row for row in ROWS if not tested[row] and row not in IN_CLUSTER] == [], "rows without a test"
    assert [row for row in tested if row not in ROWS or tested[row] > 1 or row in IN_CLUSTER] == [], (
        "rows that are no row"
    )
