"""Work beside the server goes on, whatever trips it, and ends with the server."""

import asyncio

import pytest
from structlog.testing import capture_logs

from apiserver import background as background_module
from apiserver.background import background


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for the next attempt."""
    monkeypatch.setattr(background_module, "AGAIN_SECONDS", 0.0)


async def test_work_that_fails_or_ends_is_told_and_begun_again_and_the_other_work_goes_on() -> None:
    begun: list[str] = []
    done = asyncio.Event()

    async def trips() -> None:
        begun.append("trips")
        if begun.count("trips") == 1:
            raise ValueError("a round of it")
        if begun.count("trips") == 3:
            done.set()
            await asyncio.sleep(3600)

    async def goes_on() -> None:
        begun.append("goes on")
        await asyncio.sleep(3600)

    with capture_logs() as lines:
        async with background([trips, goes_on]), asyncio.timeout(60):
            await done.wait()

    assert begun.count("goes on") == 1
    assert [(line["log_level"], line["event"]) for line in lines] == [
        ("error", "background work has failed and begins again"),
        ("error", "background work has ended and begins again"),
    ]
    assert all("trips" in line["work"] for line in lines)


async def test_the_end_of_the_server_waits_for_the_end_of_the_work() -> None:
    ended: list[str] = []

    async def tidies_up() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(0.01)
            ended.append("tidied up")

    async with background([tidies_up]):
        await asyncio.sleep(0)

    assert ended == ["tidied up"]
