"""What a server tells at /metrics of approvals that are waited for, and of renders that it remembers."""

import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from eventually import eventually
from git_server import create_repository
from manifests import namespace_object, register_remotes
from porch_client import PorchClient
from porch_process import PorchProcess
from prometheus_client.parser import text_string_to_metric_families
from remotes import Remote

pytestmark = pytest.mark.timeout(400)  # the first test starts the server twice

SLOW_SCRIPT = """apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: slow
pipeline:
  mutators:
  - image: starlark:v0.5.0
    configMap:
      source: |
        def work():
          total = 0
          for number in range(50000):
            total += number
          return total
        for resource in ctx.resource_list["items"]:
          if resource["kind"] == "ConfigMap":
            resource["data"] = {"total": str(work())}
"""
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: total\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PorchProcess]:
    folder = tmp_path_factory.mktemp("metrics")
    remote = create_repository(folder / "repo.git")
    running = PorchProcess(folder / "data", environment={"PORCH_RENDER_WORKERS": "1"})
    running.start()
    with closing(running.client()) as porch:
        porch.request("POST", "/api/v1/namespaces", namespace_object("default"))
        register_remotes(porch, {"repo": Remote(remote, remote.as_uri())})
    yield running
    running.stop()


@pytest.fixture
def porch(server: PorchProcess) -> Iterator[PorchClient]:
    with closing(server.client()) as client:
        yield client


def figures(server: PorchProcess, name: str) -> dict[str, float]:
    """Return the samples of one name by their labels' values."""
    families = text_string_to_metric_families(server.metrics())
    samples = [sample for family in families for sample in family.samples if sample.name == name]
    return {" ".join(sample.labels.values()): sample.value for sample in samples}


def is_approved(porch: PorchClient, name: str) -> None:
    answer = porch.approve(name)
    assert answer.code == 200, answer.body


def test_a_proposal_goes_on_waiting_while_the_server_is_killed_and_started(server: PorchProcess) -> None:
    with closing(server.client()) as porch:
        assert porch.create_revision("repo", "waits").code == 201
        assert porch.propose("repo.waits.v1").code == 200
    proposed = time.time()
    server.kill()
    server.start()

    least = time.time() - proposed
    assert figures(server, "porch_proposals_oldest_seconds")[""] >= least
    with closing(server.client()) as porch:
        eventually(lambda: is_approved(porch, "repo.waits.v1"))  # its clone is opened after the server is ready
    assert figures(server, "porch_approval_wait_seconds_count")[""] == 1
    assert figures(server, "porch_approval_wait_seconds_sum")[""] >= least
    assert figures(server, "porch_proposals_oldest_seconds")[""] == 0


def test_what_is_remembered_of_renders_is_told_for_the_whole_and_by_function(
    server: PorchProcess, porch: PorchClient
) -> None:
    assert porch.create_revision("repo", "slow").code == 201
    for note in ("one", "two", "three", "three"):
        files: dict[str, str | None] = {"Kptfile": SLOW_SCRIPT, "total.yaml": CONFIG_MAP, "notes.txt": f"{note}\n"}
        saved = porch.save("repo.slow.v1", files)
        assert saved.code == 200, saved.body

    renders = figures(server, "porch_render_cache_lookups_total")
    calls = figures(server, "porch_function_cache_lookups_total")
    assert renders == {"hit": 1, "miss": 3}
    assert calls["starlark hit"] >= 1
    assert set(calls) <= {"starlark hit", "starlark miss"}
