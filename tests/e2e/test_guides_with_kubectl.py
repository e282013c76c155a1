"""The guides about a running server, typed as they stand there: every ``sh guide`` block, one after the other."""

import os
import re
import subprocess
import sys
from pathlib import Path

from porch_process import PorchProcess

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"


def follow(guide: str, server: PorchProcess, folder: Path) -> str:
    blocks = re.findall(r"```sh guide\n(.*?)```", (HOW_TO / guide).read_text(), re.DOTALL)
    assert blocks, f"{guide} has nothing to type"
    own = {
        "KUBECONFIG": str(server.kubeconfig),
        "PORCH_DATA": str(server.data),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(folder),
    }
    typed = subprocess.run(
        ["sh", "-eu", "-c", "".join(blocks)],
        cwd=folder,
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert typed.returncode == 0, typed.stdout + typed.stderr
    return typed.stdout


def test_people_and_programs_get_access_as_the_guide_says(porch_server: PorchProcess, tmp_path: Path) -> None:
    said = follow("give-people-access.md", porch_server, tmp_path)

    assert re.search(r"^Username +ann$", said, re.MULTILINE)
    assert re.search(r"^yes$", said, re.MULTILINE), "an author may create package revisions"
    assert "as it should be" in said, "and may not approve them"
    assert (tmp_path / "pipeline.token").read_text().count(".") == 2


def test_custom_resources_live_without_a_cluster_as_the_guide_says(porch_server: PorchProcess, tmp_path: Path) -> None:
    said = follow("use-custom-resources.md", porch_server, tmp_path)

    assert re.search(r"^NAME +CODE$", said, re.MULTILINE) or re.search(r"^NAME +CODE +AGE$", said, re.MULTILINE)
    assert "Who pays." in said
    assert 'customresourcedefinition.apiextensions.k8s.io "teams.hr.example.com" deleted' in said
