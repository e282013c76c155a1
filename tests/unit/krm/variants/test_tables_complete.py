"""No golden case of the rules is without a row, and no ruling that concerns them without a test."""

import re
from pathlib import Path

import yaml

HERE = Path(__file__).parent
TABLES = Path(__file__).parents[3] / "data/variants"

GOLDEN = {"G-V": 16, "G-W": 6, "G-U": 11, "G-L": 6, "G-D": 11}
"""Sections 5.1, 5.2, 5.7 and the discovery of 5.6: the last number of each kind of case."""
RETIREMENT = ["G-X01", "G-X02", "G-X03", "G-X04", "G-X05", "G-X06", "G-X08"]
"""G-X07, a delete that fails, is no rule: tests/e2e/variants has it."""

RULINGS = {
    "C-01": "upstream.yaml",
    "C-02": "upstream.yaml",
    "C-06": "downstream.yaml",
    "C-07": "retirement.yaml",
    "C-10": "locks.yaml",
    "C-11": "downstream.yaml",
    "C-14": "test_retirement_table.py",
    "C-18": "test_upstream_resolution.py",
    "C-21": "upstream.yaml",
    "C-22": "upstream.yaml",
    "C-27": "validation.yaml",
    "C-45": "upstream.yaml",
    "ruling: '16'": "downstream.yaml",
}
"""The rulings of variants.md 4 and decisions.md 16 that these rules decide, and where each is pinned."""


def ids() -> set[str]:
    found = set()
    for table in TABLES.glob("*.yaml"):
        written = yaml.safe_load(table.read_text("utf-8"))
        for section in written.values() if isinstance(written, dict) else [written]:
            found |= {str(case["id"]) for case in section if isinstance(case, dict) and "id" in case}
    return found


def test_every_golden_case_has_a_row() -> None:
    wanted = {f"{kind}{number:02}" for kind, last in GOLDEN.items() for number in range(1, last + 1)}

    assert sorted((wanted | set(RETIREMENT)) - ids()) == []


def test_every_ruling_is_pinned_where_it_is_said_to_be() -> None:
    for ruling, place in RULINGS.items():
        text = (HERE if place.endswith(".py") else TABLES).joinpath(place).read_text("utf-8")
        assert re.search(rf"{re.escape(ruling)}\b|{re.escape(ruling)}", text), f"{ruling} is not in {place}"
