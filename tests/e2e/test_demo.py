"""``porch demo`` plays its whole story, kill -9 included, and leaves nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from porch_process import PorchProcess

COMMAND = [sys.executable, "-m", "apiserver", "demo"]


@pytest.mark.timeout(600)
def test_the_demo_tells_its_story_on_a_server_of_its_own(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    environment |= {"TMPDIR": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "home")}

    done = subprocess.run(COMMAND, capture_output=True, text=True, timeout=500, check=False, env=environment)

    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    for command in (
        "$ kubectl get packagerevisions\n",
        "$ kubectl replace -f assets.yaml",
        "$ git clone",
        "--subresource=approval",
    ):
        assert command in done.stdout
    assert "✓ it saw deployments.assets.v1 go through" in done.stdout
    assert done.stdout.count("# kill -9 after") == 4
    assert list(tmp_path.glob("porch-demo-*")) == [], "its folder is removed"


@pytest.mark.timeout(600)
def test_the_demo_plays_on_a_running_server_without_killing_it(porch_server: PorchProcess) -> None:
    done = subprocess.run(
        [*COMMAND, "--data", str(porch_server.data)], capture_output=True, text=True, timeout=500, check=False
    )

    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    assert "# kill -9 after" not in done.stdout
    client = porch_server.client()
    namespaces = client.request("GET", "/api/v1/namespaces").object["items"]
    client.close()
    assert not [name for name in namespaces if name["metadata"]["name"].startswith("porch-demo")]
