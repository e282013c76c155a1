"""The tour of the README, typed as it stands there."""

import os
import re
import subprocess
from pathlib import Path

from porch_process import PorchProcess

README = Path(__file__).parents[2] / "README.md"


def test_the_tour_of_the_readme_works(porch_server: PorchProcess, tmp_path: Path) -> None:
    blocks = re.findall(r"```sh tour\n(.*?)```", README.read_text(), re.DOTALL)

    toured = subprocess.run(
        ["sh", "-eu", "-c", "".join(blocks)],
        cwd=tmp_path,
        env={**os.environ, "KUBECONFIG": str(porch_server.kubeconfig)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert toured.returncode == 0, toured.stderr
    assert re.search(r"packages\.web\.v1 +web +v1 +1 +true +Published +packages", toured.stdout)
    assert "tag: web/v1" in toured.stdout
    assert "description: A web server for the tour" in toured.stdout
    assert "drafts/" not in toured.stdout
