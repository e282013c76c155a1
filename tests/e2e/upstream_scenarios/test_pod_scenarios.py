"""What upstream's API scenarios with pods (19, 20, 22 to 25) show of the server itself, without a pod.

``need_pods.json`` says which test covers what.
"""

import textwrap
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from porch_process import PorchProcess, free_port
from remotes import Remote
from upstream_client import Refused, UpstreamClient, name_of

Object = dict[str, Any]
FAMILIES = [
    "apiserver_request_total",
    "apiserver_request_duration_seconds_bucket",
    "apiserver_current_inflight_requests",
    "apiserver_storage_objects",
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_open_fds",
]
"""What of upstream's families (requests served, errors by code, the process) makes sense of a server in Python."""
RENDER_FAILED = "error rendering package in kpt function pipeline"


def pipeline(image: str, script: str = "") -> str:
    source = f"      configMap:\n        source: |\n{textwrap.indent(script, ' ' * 10)}" if script else ""
    return f"pipeline:\n  mutators:\n    - image: {image}\n{source}"


FOR_EVER = """def work():
  for _ in range(1000000):
    for _ in range(1000000):
      pass
work()
"""


@pytest.fixture(scope="module")
def metrics_port() -> int:
    """The port of the server's metrics listener."""
    return free_port()


@pytest.fixture(scope="module")
def porch_server(tmp_path_factory: pytest.TempPathFactory, metrics_port: int) -> Iterator[PorchProcess]:
    """A server with a metrics listener and two workers that render."""
    environment = {"PORCH_METRICS_PORT": str(metrics_port), "PORCH_RENDER_WORKERS": "2"}
    server = PorchProcess(tmp_path_factory.mktemp("porch") / "data", environment=environment)
    server.start()
    yield server
    server.stop()


def test_an_image_that_nothing_runs_fails_the_render_and_the_next_save_succeeds(
    suite: UpstreamClient, porch_test: Remote
) -> None:
    suite.register("git", porch_test)
    draft = name_of(suite.make("git", "test-bogus-image", "workspace"))
    good = suite.resources(draft)
    bad = suite.resources(draft)
    bad["spec"]["resources"]["Kptfile"] += pipeline("ghcr.io/kptdev/krm-functions-catalog/bogus-image:v1.2.3")

    with pytest.raises(Refused, match=RENDER_FAILED) as refused:
        suite.update(bad)

    assert "bogus-image:v1.2.3" in str(refused.value)
    good["spec"]["resources"]["added.txt"] = "saved\n"
    assert suite.update(good)["spec"]["resources"]["added.txt"] == "saved\n"


def test_renders_of_different_revisions_run_side_by_side(suite: UpstreamClient, porch_test: Remote) -> None:
    suite.register("git", porch_test)
    slow, quick = (name_of(suite.make("git", package, "workspace")) for package in ("test-slow", "test-quick"))
    for_ever, short = suite.resources(slow), suite.resources(quick)
    for_ever["spec"]["resources"]["Kptfile"] += pipeline("starlark:v0.4.3", FOR_EVER)
    short["spec"]["resources"]["Kptfile"] += pipeline("starlark:v0.4.3", "pass\n")
    other = suite.another()

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(other.update, for_ever)
        time.sleep(0.5)  # until a worker has it; if it has not, the answer below comes even sooner
        saved = suite.update(short)
        assert not running.done(), "the long render has to be under way still"
        with pytest.raises(Refused, match=RENDER_FAILED):
            running.result()
    other.close()
    assert saved["status"]["renderStatus"]["error"] == ""


def test_the_metrics_listener_serves_what_upstreams_dashboards_ask_for(
    suite: UpstreamClient, porch_test: Remote, metrics_port: int
) -> None:
    suite.register("git", porch_test)
    suite.make("git", "test-metrics", "v1")

    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=60) as answer:
        assert answer.status == 200
        text = answer.read().decode()

    assert [family for family in FAMILIES if f"\n{family}" not in text] == []
    assert 'resource="packagerevisions"' in text
