"""No golden case of sets is without a row, and no ruling that concerns their rules without a test."""

import re
from pathlib import Path

from set_tables import FOLDER, table

HERE = Path(__file__).parent
TABLES = ("validation", "names", "targets", "rendering", "plan", "conversion")
GOLDEN = {"G-S": 13, "G-A": 8, "G-R": 14, "G-E": 18, "G-T": 22}
"""Sections 5.9 to 5.12: the last number of each kind of case."""
OF_THE_CONTROLLER = {"G-T13", "G-T14", "G-T21"}
"""What is written around a spec, and what wakes a set: tests/e2e/variants/test_set_fan_out.py has them."""
RULINGS = {
    "C-01": "sets_validation.yaml",
    "C-02": "sets_validation.yaml",
    "C-03": "sets_rendering.yaml",
    "C-04": "sets_rendering.yaml",
    "C-05": "sets_targets.yaml",
    "C-21": "sets_plan.yaml",
    "C-22": "sets_validation.yaml",
    "C-23": "sets_names.yaml",
    "C-24": "sets_names.yaml",
    "C-25": "sets_rendering.yaml",
    "C-26": "sets_rendering.yaml",
    "C-27": "sets_plan.yaml",
    "C-28": "sets_validation.yaml",
    "C-34": "sets_targets.yaml",
    "C-36": "sets_rendering.yaml",
    "C-37": "sets_validation.yaml",
    "C-39": "sets_validation.yaml",
    "C-43": "sets_targets.yaml",
    "ruling: '16'": "sets_rendering.yaml",
}
"""The rulings of variants.md 4 and decisions.md 16 that these rules decide; C-40 and C-41 are the controllers'."""


def ids() -> set[str]:
    return {
        number
        for name in TABLES
        for section in table(name).values()
        for case in (section if isinstance(section, list) else ())
        for number in re.findall(r"G-[A-Z]\d\d", str(case.get("id")) if isinstance(case, dict) else "")
    }


def test_every_golden_case_of_sets_has_a_row() -> None:
    wanted = {f"{kind}{number:02}" for kind, last in GOLDEN.items() for number in range(1, last + 1)}

    assert sorted(wanted - OF_THE_CONTROLLER - ids()) == []


def test_every_ruling_about_sets_is_pinned_where_it_is_said_to_be() -> None:
    for ruling, place in RULINGS.items():
        text = (HERE if place.endswith(".py") else FOLDER).joinpath(place).read_text("utf-8")
        assert re.search(rf"{re.escape(ruling)}(?!\d)", text), f"{ruling} is not in {place}"
