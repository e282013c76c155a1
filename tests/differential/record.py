"""Ask a real kube-apiserver what every case is answered, and write it to ``tests/data/differential``.

``make record-answers`` runs it; ``ARGS="lists watches"`` names the areas to record anew. It needs the program that
``make controlplane`` builds.
"""

import json
import sys
import tempfile
from pathlib import Path

from answers import DATA, ask
from control_plane import ControlPlane
from conversation import Server, SetupFailed
from prelude import give
from table import AREAS


def record(areas: list[str], server: Server) -> int:
    """Record the answers of areas; return how many cases failed, having said why."""
    failed = 0
    for area in areas:
        recorded = {}
        for case in AREAS[area]:
            try:
                recorded[case.name] = ask(case, server)
            except SetupFailed as error:
                failed += 1
                sys.stderr.write(f"{error}\n")
        text = json.dumps(recorded, indent=1, sort_keys=True, ensure_ascii=False)
        (DATA / f"{area}.json").write_text(f"{text}\n")
        sys.stdout.write(f"{area}: {len(recorded)}\n")
    return failed


def main() -> int:
    """Record the areas named on the command line, or all."""
    with tempfile.TemporaryDirectory(prefix="control-plane-") as folder, ControlPlane(Path(folder)) as real:
        server = Server(real.url, ca=real.ca, certificate=real.client_certificate)
        give(server)
        failed = record(sys.argv[1:] or list(AREAS), server)
        server.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
