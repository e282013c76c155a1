"""CEL rules that cost much: stopped, told, and evaluated where the event loop does not wait for them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from api_fixture import Api, api_server
from custom_kinds import WIDGETS, definition, establish, version, widget

Json = dict[str, Any]


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with api_server(http=False) as server:
        yield server


async def test_the_event_loop_goes_on_while_a_costly_rule_is_evaluated_and_stopped(api: Api) -> None:
    rule = {"rule": "self.all(x, self.all(y, self.all(z, x + y + z >= 0)))"}
    numbers = {"type": "array", "maxItems": 1000, "items": {"type": "integer"}, "x-kubernetes-validations": [rule]}
    costly = version()
    costly["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["numbers"] = numbers
    await establish(api, definition(costly))
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.005)
            ticks += 1

    async with asyncio.TaskGroup() as group:
        ticking = group.create_task(tick())
        answer = await api.client.post(WIDGETS, json=widget("one", numbers=list(range(300))))
        ticking.cancel()

    assert answer.status_code == 422
    [cause] = answer.json()["details"]["causes"]
    assert cause["field"] == "spec.numbers"
    assert "no further validation rules will be run due to call cost exceeds limit" in cause["message"]
    assert ticks >= 10
