# ruff: noqa: T201 # a program that prints
"""``endurance_run.py [--seconds 1200]``: the long mixed load; prints a table, and fails when the server grew or erred."""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from endurance import Options, endure  # noqa: E402 -- the tests' folder is on the path only now

MOST_GROWTH = 0.10
"""The part by which resident memory may grow after the warm-up."""


def main() -> int:
    """Run the load."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1200)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--pause", type=float, default=0.25, help="seconds between two writes of a client")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="porch-soak-") as folder:
        report = endure(Path(folder), Options(options.seconds, options.clients, pause=options.pause))
    print(report.table())
    for problem in report.unexpected[:20]:
        print(f"unexpected: {problem}")
    grown = report.grown(MOST_GROWTH)
    for what in grown:
        print(f"grew: {what}")
    return 1 if report.unexpected or grown else 0


if __name__ == "__main__":
    sys.exit(main())
