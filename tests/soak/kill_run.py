# ruff: noqa: T201 # a program that prints
"""``kill_run.py [--kills 200] [--seed N]``: lives of servers that are killed again and again; ends with a table.

A life that fails prints how to run it alone. With ``--seed`` only that life is run, and its folder is kept.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from kill_life import ROUNDS, Life, Options  # noqa: E402  (the tests' folder is on the path only now)
from tight_disk import can_mount  # noqa: E402


def run_life(seed: int, folder: Path, options: Options) -> Life:
    """Run one life.

    Raises:
        AssertionError: the server did not keep what it owes; says how to run this life alone.
    """
    with Life(seed, folder, options) as life:
        try:
            life.live()
        except AssertionError as error:
            again = f"python tests/soak/kill_run.py --seed {seed}"
            raise AssertionError(f"life {seed}, {error}\nalone: {again}") from error
        return life


def main() -> int:
    """Run the lives and print what they did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--first", type=int, default=1, help="seed of the first life")
    parser.add_argument("--seed", type=int, help="run this life only, and keep its folder")
    options = parser.parse_args()
    base = Path(tempfile.mkdtemp(prefix="porch-kill-"))
    mounts = can_mount(base)
    seeds = (
        [options.seed] if options.seed is not None else range(options.first, options.first + options.kills // ROUNDS)
    )
    done: Counter[str] = Counter()
    restarts: list[float] = []
    failed: list[int] = []
    began = time.monotonic()
    for seed in seeds:
        folder = base / f"life-{seed}"
        try:
            life = run_life(seed, folder, Options(mounts=mounts))
        except AssertionError as error:
            failed.append(seed)
            print(f"FAILED {error}\nits folder: {folder}", flush=True)
            continue
        done += life.done()
        restarts += life.restarts
        print(f"life {seed} kept everything", flush=True)
    kills = ROUNDS * len(seeds)
    writes = ", ".join(f"{count} × {what}" for what, count in sorted(done.items()))
    print(f"\n{kills} kills in {time.monotonic() - began:.0f} s; acknowledged: {writes}")
    if restarts:
        print(f"ready again after at most {max(restarts):.1f} s; lives that failed: {failed or 'none'}")
    if not mounts:
        print("a small disk cannot be mounted here: lives with a full disk ran without")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
