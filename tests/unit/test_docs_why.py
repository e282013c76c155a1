"""``docs/why.md`` answers each of the 25 pains with something that shows it."""

import re
from pathlib import Path

WHY = Path(__file__).parents[2] / "docs" / "why.md"


def test_every_pain_has_an_answer_and_something_that_shows_it() -> None:
    rows = [line.strip("| ").split(" | ") for line in WHY.read_text().splitlines() if re.match(r"\| \d", line)]

    assert [row[0] for row in rows] == [str(rank) for rank in range(1, 26)]
    for rank, pain, answer, shown in rows:
        assert pain, rank
        assert answer, rank
        assert "`tests/" in shown or "benchmarks.md" in shown, rank
