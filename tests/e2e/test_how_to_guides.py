"""The commands of the README and the how-to guides for packages in folders, typed as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KPTFILE = """apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: app
pipeline:
  mutators:
    - image: set-labels:v0.2
      configMap:
        team: blue
"""
DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: server
spec:
  replicas: {replicas} # as many as there are zones
"""
SCRIPT = """apiVersion: fn.kpt.dev/v1alpha1
kind: StarlarkRun
metadata:
  name: annotate
source: |
  for resource in ctx.resource_list["items"]:
      resource["metadata"].setdefault("annotations", {})["seen"] = "yes"
"""
FILES = {
    "app/Kptfile": KPTFILE,
    "app/server.yaml": DEPLOYMENT.format(replicas=3),
    "app/script.yaml": SCRIPT,
    "my-function": "#!/bin/sh\nexec cat\n",
    "upstream/v1/Kptfile": KPTFILE,
    "upstream/v1/server.yaml": DEPLOYMENT.format(replicas=1),
    "upstream/v2/Kptfile": KPTFILE,
    "upstream/v2/server.yaml": DEPLOYMENT.format(replicas=2) + "  paused: true\n",
    "old.yaml": DEPLOYMENT.format(replicas=1),
    "new.yaml": DEPLOYMENT.format(replicas=1) + "  paused: true\n",
    "mine.yaml": DEPLOYMENT.format(replicas=3),
}


def commands(document: str) -> list[str]:
    blocks = re.findall(r"^```(.*?)\n(.*?)^```", (ROOT / document).read_text(), re.DOTALL | re.MULTILINE)
    lines = [line for kind, block in blocks if kind in ("", "sh") for line in block.splitlines()]
    return [line for line in lines if line.startswith("porch ")]


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "my-function").chmod(0o755)
    return tmp_path


def test_functions_run_as_the_guide_says(folder: Path) -> None:
    typed = commands("docs/how-to/run-functions-locally.md")
    assert len(typed) == 9

    for command in typed:
        done = run(command, folder)
        assert done.returncode == 0, f"{command}: {done.stderr}"

    server = (folder / "app" / "server.yaml").read_text()
    assert "team: blue" in server
    assert "tier: db" in server
    assert "seen: " in server
    assert "# as many as there are zones" in server
    assert "tier: db" in (folder / "app" / "Kptfile").read_text(), "saved into the pipeline"
    assert "team: blue" in (folder / "out" / "server.yaml").read_text()
    assert "namespace: prod" in (folder / "prod" / "server.yaml").read_text()
    assert (folder / "r" / "results.yaml").exists()


def test_packages_are_compared_and_updated_as_the_guide_says(folder: Path) -> None:
    init, diff, update, merge = commands("docs/how-to/update-packages-locally.md")
    mine = run(init, folder / "upstream")
    assert mine.returncode == 0, mine.stderr

    compared = run(diff, folder)
    assert compared.returncode == 1
    assert "-  replicas: 1 # as" in compared.stdout

    updated = run(update, folder)
    assert updated.returncode == 0, updated.stderr
    server = (folder / "app" / "server.yaml").read_text()
    assert "paused: true" in server
    assert "replicas: 2 # as many as there are zones" in server
    assert "replicas" in updated.stderr, "both sides changed it"

    merged = run(merge, folder)
    assert merged.returncode == 0, merged.stderr
    assert (folder / "merged.yaml").read_text() == DEPLOYMENT.format(replicas=3) + "  paused: true\n"


def test_the_readme_says_how_packages_are_made_without_a_server(folder: Path) -> None:
    (folder / "app").rename(folder / "other")
    for command in commands("README.md"):
        done = run(command, folder)
        assert done.returncode == 0, f"{command}: {done.stderr}"

    kptfile = (folder / "app" / "Kptfile").read_text()
    assert "team: web" in kptfile
    assert "RenderSuccess" in kptfile
