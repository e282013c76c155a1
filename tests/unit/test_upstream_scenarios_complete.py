"""Each of upstream's API scenarios is a test, save those that need pods: for them, tests of the same behaviour are listed."""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "e2e" / "upstream_scenarios"
SCENARIOS = range(1, 57)
"""The scenarios of ``porch-api.md`` 11.1."""
NEED_PODS = json.loads((FOLDER / "need_pods.json").read_text())
"""By number: what the scenario is about, and the tests that cover the same behaviour."""
_TEST = re.compile(r"test_scenario_(\d\d)_")


def names_of(path: Path) -> Iterator[str]:
    """Return the names of a module's tests."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name


def test_every_scenario_has_one_test_or_needs_pods() -> None:
    found = [_TEST.match(name) for path in FOLDER.glob("test_*_scenarios.py") for name in names_of(path)]
    tested = Counter(int(match[1]) for match in found if match)
    exempt = set(map(int, NEED_PODS))

    assert [number for number in SCENARIOS if not tested[number] and number not in exempt] == [], "without a test"
    assert [number for number in tested if number not in SCENARIOS or tested[number] > 1 or number in exempt] == []


def test_what_covers_a_scenario_that_needs_pods_exists() -> None:
    for number, entry in NEED_PODS.items():
        assert entry["scenario"]
        assert entry["covered_by"], f"nothing covers scenario {number}"
        for test in entry["covered_by"]:
            path, name = test.split("::")
            assert name in names_of(ROOT / path), f"{test} is no test"
