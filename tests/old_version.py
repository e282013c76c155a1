"""Former versions of Porch, as the repository's history has them: their programs, to be run beside today's.

Each is the last one of its schema. A checkout without history (a release's archive, a shallow clone) has none of them.
"""

import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
from porch_process import PorchProcess

ROOT: Final = Path(__file__).resolve().parent.parent
LAST_OF: Final = {
    "0001": "b94e32db7da8c3b21e902c051e292eca83d66766",
    "0001.1": "54816421fa24ef2f425f491d47da4ff163e45ab8",
}
"""Commits by schema."""
PROGRAMS: Final = ("apiserver", "krm", "migrations", "storage")


def old_server(schema: str, folder: Path, data: Path, environment: Mapping[str, str]) -> PorchProcess:
    """Return a server of the last version that made ``schema``, unpacked in ``folder``; skips the test where there is no history."""
    made = _unpacked(schema, folder)
    server = PorchProcess(data, environment={**environment, "PYTHONPATH": str(made), "PYTHONDONTWRITEBYTECODE": "1"})
    server.wrapper = ["env", "-C", str(made)]  # Python looks for its programs where it is started first
    return server


def _unpacked(schema: str, folder: Path) -> Path:
    commit = LAST_OF[schema]
    known = subprocess.run(
        ["git", "-C", str(ROOT), "cat-file", "-e", commit], capture_output=True, check=False, timeout=60
    )
    if known.returncode:
        pytest.skip(f"this checkout has no history: version {commit[:12]} is not there")
    made, archive = folder / f"version-{schema}", folder / f"{schema}.tar"
    if not made.exists():
        made.mkdir()
        command = ["git", "-C", str(ROOT), "archive", f"--output={archive}", commit, *PROGRAMS]
        subprocess.run(command, check=True, timeout=120)
        with tarfile.open(archive) as packed:
            packed.extractall(made, filter="data")
    return made
