"""The plain listener for metrics: what it serves, and what it leaves alone."""

import signal

import httpx2
import pytest

from apiserver.machinery.metrics import Metrics
from apiserver.machinery.request import request_info
from apiserver.metrics_listener import metrics_listener
from apiserver.serving import CannotListen


async def test_metrics_are_served_over_plain_http_and_nothing_else() -> None:
    metrics = Metrics()
    scope = {"query_string": b"", "headers": []}
    metrics.record(request_info("GET", "/api/v1/configmaps", {}), scope, code=200, seconds=0.1, size=10)
    async with metrics_listener(metrics, "127.0.0.1", 0) as port, httpx2.AsyncClient() as client:
        found = await client.get(f"http://127.0.0.1:{port}/metrics")
        open_metrics = {"accept": "application/openmetrics-text"}
        modern = await client.get(f"http://127.0.0.1:{port}/metrics", headers=open_metrics)
        others = [await client.get(f"http://127.0.0.1:{port}{path}") for path in ("/", "/api", "/readyz")]
        posted = await client.post(f"http://127.0.0.1:{port}/metrics")

    assert found.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'apiserver_request_total{code="200",component="apiserver"' in found.text
    assert modern.text.endswith("# EOF\n")
    assert [one.status_code for one in others] == [404] * 3
    assert posted.status_code == 405


async def test_the_servers_signal_handlers_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGTERM)
    async with metrics_listener(Metrics(), "127.0.0.1", 0):
        assert signal.getsignal(signal.SIGTERM) is before


async def test_a_taken_port_is_said_so() -> None:
    async with metrics_listener(Metrics(), "127.0.0.1", 0) as port:
        with pytest.raises(CannotListen, match=str(port)):
            async with metrics_listener(Metrics(), "127.0.0.1", port):
                pytest.fail("two listeners on one port")
