"""Two minutes of the mixed load that ``make soak`` keeps up for twenty."""

from pathlib import Path

import pytest
from endurance import Options, endure

SECONDS = 120.0
MOST_GROWTH = 0.25
"""The part by which memory may grow: caches are still filling, which they are not in the long form (there: 0.1)."""


@pytest.mark.timeout(600)
def test_a_mixed_load_meets_no_unexpected_answer_and_the_server_does_not_grow(tmp_path: Path) -> None:
    report = endure(tmp_path, Options(SECONDS, warm_up=0.5))

    assert not report.unexpected, report.unexpected[:5]
    assert not report.grown(MOST_GROWTH), report.table()
    assert sum(report.done.values()) > SECONDS / 4, "there was a load"
