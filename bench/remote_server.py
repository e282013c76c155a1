"""Git over HTTP on loopback for measurements: ``remote_server.py ROOT PORT [user:password]``, around git http-backend.

Stands in for the acceptance program of the same purpose where that is not at hand: the test suite's server, on a port
that the caller chooses.
"""

import sys
from http.server import ThreadingHTTPServer
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

import git_server


def main() -> None:
    root, port = Path(sys.argv[1]), int(sys.argv[2])
    credentials = sys.argv[3] if len(sys.argv) > 3 else None
    served = git_server.GitServer(root, port, credentials)
    ThreadingHTTPServer.request_queue_size = 256
    ThreadingHTTPServer(("127.0.0.1", port), git_server._handler(served)).serve_forever()  # noqa: SLF001


if __name__ == "__main__":
    main()
