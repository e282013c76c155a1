# ruff: noqa: T201 # a program that prints
"""``halves.py``: every test, in two pytest processes side by side, which on two cores takes a third less time than one.

The second half is shown while it runs, the first one after it. Ends with a line that counts both; fails when either does.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

TESTS = Path(__file__).resolve().parent
FIRST = ("unit", "contract", "differential", "clients", "e2e/kubectl_checks", "e2e/porchctl", "e2e/upstream_scenarios")
"""Folders of the first half; the second one is everything else, whatever comes to it."""


def main() -> int:
    """Run both halves."""
    began = time.monotonic()
    folders = [str(TESTS / name) for name in FIRST]
    with tempfile.TemporaryFile("w+") as shown:
        first = subprocess.Popen([sys.executable, "-m", "pytest", *folders], stdout=shown, stderr=subprocess.STDOUT)
        second = subprocess.Popen(
            [sys.executable, "-m", "pytest", str(TESTS), *(f"--ignore={folder}" for folder in folders)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert second.stdout is not None
        ends = [_shown(second.stdout)]
        codes = [second.wait(), first.wait()]
        shown.seek(0)
        ends.append(_shown(shown))
    counts: Counter[str] = Counter()
    for end in ends:
        counts.update({word: int(number) for number, word in re.findall(r"(\d+) (failed|passed|skipped|errors?)", end)})
    told = ", ".join(f"{number} {word}" for word, number in counts.items())
    print(f"{told} in {time.monotonic() - began:.2f}s")
    return max(codes)


def _shown(lines: Iterable[str]) -> str:
    """Print lines as they come; return the last one, in which pytest counts."""
    last = ""
    for line in lines:
        print(line, end="", flush=True)
        last = line.strip() or last
    return last


if __name__ == "__main__":
    sys.exit(main())
