# ruff: noqa: T201 # a program that prints
"""``contest_run.py [--seconds 300] [--seed 1]``: processes of controllers contend for a Lease while they are killed and stopped."""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1])]

from contest import Contest  # noqa: E402 -- the tests' folder is on the path only now
from git_server import git_server  # noqa: E402
from porch_process import PorchProcess  # noqa: E402
from remotes import PUSHER  # noqa: E402
from variant_place import new_place, with_blueprint  # noqa: E402


def main() -> int:
    """Run one contest; an AssertionError says what was left undone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variants", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="porch-contest-") as folder:
        (remotes := Path(folder) / "remotes").mkdir()
        server = PorchProcess(Path(folder) / "data")
        server.start()
        try:
            with git_server(remotes, ":".join(PUSHER)) as git:
                place = with_blueprint(new_place(server, git, "contest"))
                contest = Contest(place, Path(folder), options.seed, options.variants)
                contest.run(options.seconds)
                place.porch.close()
        finally:
            server.stop()
    print(f"{options.variants} variants, {options.seconds:.0f} s: {dict(contest.acts)}; nothing undone, nothing twice")
    return 0


if __name__ == "__main__":
    sys.exit(main())
