"""Made-up requests to everything that the server documents: never a 500, never a hang, always an answer of the right shape.

Bounded in time: a minute with the same examples each time, three minutes of new ones with ``make fuzz``.
"""

import json
import time
from collections.abc import Iterator

import pytest
from hostile import unharmed
from hypothesis import HealthCheck, given, settings
from openapi_requests import Operation, Request, operations, requests
from porch_client import PorchClient
from porch_process import PorchProcess

pytestmark = [pytest.mark.usefixtures("no_harm"), pytest.mark.timeout(600)]

SEARCHING = not settings().derandomize
SECONDS = 180 if SEARCHING else 60
EXAMPLES = 8_000 if SEARCHING else 1_500
ANSWER_SECONDS = 60.0
"""A watch made up here ends after one; the rest is for a busy machine."""


@pytest.fixture(scope="module")
def no_harm(porch_server: PorchProcess) -> Iterator[None]:
    """What must hold after all of them."""
    with unharmed(porch_server):
        yield


@pytest.fixture(scope="module")
def client(porch_server: PorchProcess) -> Iterator[PorchClient]:
    client = porch_server.client(timeout=ANSWER_SECONDS)
    yield client
    client.close()


@pytest.fixture(scope="module")
def known(client: PorchClient) -> list[Operation]:
    found = operations(client)
    assert len(found) > 50
    return found


def test_no_request_breaks_the_server(client: PorchClient, known: list[Operation]) -> None:
    end = time.monotonic() + SECONDS

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    @given(requests(known))
    def ask(request: Request) -> None:
        if time.monotonic() < end:
            check(client, request)

    ask()


def check(client: PorchClient, request: Request) -> None:
    begun = time.monotonic()
    answer = client.request(
        request.method, request.target, request.body, content_type=request.content_type, accept=request.accept
    )

    assert answer.code != 500, answer.body[:1000]
    assert answer.code < 500 or answer.code in (501, 503, 504), answer.body[:1000]
    assert time.monotonic() - begun < ANSWER_SECONDS
    if answer.code >= 400 and answer.headers.get("content-type") == "application/json":
        status = json.loads(answer.body)
        assert status["kind"] == "Status"
        assert status["code"] == answer.code
        assert status["reason"]
