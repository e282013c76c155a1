# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""The guide for several servers, typed as it stands there."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from porch_process import free_port
from replica_fixtures import url  # noqa: F401 # found by name

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "run-replicas-on-postgresql.md"


@pytest.mark.timeout(600)
def test_two_servers_started_as_the_guide_says_serve_the_same_objects(url: str, tmp_path: Path) -> None:
    blocks = re.findall(r"```sh replicas\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    own = {
        "PORCH_DATABASE_URL": url,
        "PORT_ONE": str(free_port()),
        "PORT_TWO": str(free_port()),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(tmp_path),
    }
    with (tmp_path / "log").open("wb") as log:
        shell = subprocess.Popen(
            ["sh", "-eu", "-c", "".join(blocks)],
            cwd=tmp_path,
            env={**os.environ, **own},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            code = shell.wait(500)
        finally:
            os.killpg(shell.pid, signal.SIGKILL)  # the servers that it left in the background
    said = (tmp_path / "log").read_text()

    assert len(blocks) == 2
    assert code == 0, said[-4000:]
    assert "configmap/note created" in said
    assert 'configmap "note" deleted' in said
