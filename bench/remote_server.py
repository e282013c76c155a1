"""Git over HTTP on loopback for measurements: ``remote_server.py ROOT PORT [user:password]``, around git http-backend.

Stands in for the acceptance program of the same purpose where that is not at hand: reading is open, pushing needs the
credentials, connections are kept.
"""

import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

import git_server as fixture  # noqa: E402  (the test suite's server, without its faults)


def main() -> None:
    root, port = Path(sys.argv[1]), int(sys.argv[2])
    credentials = sys.argv[3] if len(sys.argv) > 3 else None
    with fixture.git_server(root, credentials, port=port):
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    main()
