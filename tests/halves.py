# ruff: noqa: T201 # a program that prints
"""``halves.py``: every test that needs no cluster, in two pytest processes side by side, which on two cores takes a third less time than one.

The second half is shown while it runs, the first one after it. Ends with a line that counts both; fails when either does.

A test that fails beside the other half is run once more, alone, when it is one of a few (``again.py``).
"""

import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from again import PYTEST, failures, once_more, show

TESTS = Path(__file__).resolve().parent
FIRST = (
    "unit",
    "contract",
    "differential",
    "clients",
    "e2e/kubectl_checks",
    "e2e/porchctl",
    "e2e/upstream_scenarios",
    "e2e/variants",
)
"""Folders of the first half; the second one is everything else, whatever comes to it."""
OF_CLUSTERS = ("aggregated", "chart")
"""Folders that ``make test-cluster`` runs, and nothing here: they need programs built from Go modules, and ten minutes."""


def main() -> int:
    """Run both halves, and the few tests that failed once more."""
    began = time.monotonic()
    code, lines, ends = both(TESTS, FIRST, OF_CLUSTERS)
    failed = failures(lines)
    if code == 1:
        code = once_more(failed)
    counts: Counter[str] = Counter()
    for end in ends:
        counts.update({word: int(number) for number, word in re.findall(r"(\d+) (failed|passed|skipped|errors?)", end)})
    if code == 0 and failed:
        counts = Counter({"passed": counts["passed"] + len(failed), "skipped": counts["skipped"], "flaky": len(failed)})
    told = ", ".join(f"{number} {word}" for word, number in counts.items())
    print(f"{told} in {time.monotonic() - began:.2f}s")
    return code


def both(tests: Path, first: Sequence[str], left_out: Sequence[str] = ()) -> tuple[int, list[str], list[str]]:
    """Run two halves of a folder of tests but for what is left out; return the worse exit code, what was printed, and both last lines.

    Each has a folder of its own for what its tests write: in the usual one, the second pytest to come locks the first one's
    PostgreSQL out, which runs as another user.
    """
    folders = [str(tests / name) for name in first]
    elsewhere = [*folders, *(str(tests / name) for name in left_out)]
    with tempfile.TemporaryFile("w+") as shown, tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as written:
        one = subprocess.Popen([*PYTEST, f"--basetemp={written}/1", *folders], stdout=shown, stderr=subprocess.STDOUT)
        other = subprocess.Popen(
            [*PYTEST, f"--basetemp={written}/2", str(tests), *(f"--ignore={folder}" for folder in elsewhere)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with other.stdout or shown as lines:
            printed = [show(lines)]
        codes = [other.wait(), one.wait()]
        shown.seek(0)
        printed.append(show(shown))
    return max(codes), [*printed[0], *printed[1]], [_last(lines) for lines in printed]


def _last(lines: Sequence[str]) -> str:
    """Return the last line that says something: there pytest counts."""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


if __name__ == "__main__":
    sys.exit(main())
