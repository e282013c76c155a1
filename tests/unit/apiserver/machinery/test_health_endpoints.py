"""Health endpoints: which checks they make, what they say, and how long they wait."""

import asyncio
from collections.abc import Awaitable

import httpx2
import pytest
from starlette.applications import Starlette

from apiserver.machinery import health
from apiserver.machinery.health import Health


def client(**checks: health.Check) -> httpx2.AsyncClient:
    app = Starlette(routes=Health(checks).routes())
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://health")


async def text(answer: Awaitable[httpx2.Response]) -> tuple[int, str]:
    response = await answer
    assert response.headers["content-type"] == "text/plain; charset=utf-8"
    assert response.headers["x-content-type-options"] == "nosniff"
    return response.status_code, response.text


async def reachable() -> bool:
    return True


async def unreachable() -> bool:
    return False


async def hanging() -> bool:
    await asyncio.sleep(60)
    return True


async def test_all_checks_pass() -> None:
    async with client(database=reachable) as server:
        assert await text(server.get("/readyz")) == (200, "ok")
        assert await text(server.get("/readyz/database")) == (200, "ok")
        assert await text(server.get("/healthz?verbose=")) == (
            200,
            "[+]ping ok\n[+]log ok\n[+]database ok\nhealthz check passed\n",
        )


async def test_a_failed_check_withholds_its_reason() -> None:
    async with client(database=unreachable) as server:
        assert await text(server.get("/readyz")) == (
            500,
            "[+]ping ok\n[+]log ok\n[-]database failed: reason withheld\n[+]shutdown ok\nreadyz check failed\n",
        )
        assert (await text(server.get("/readyz/database")))[0] == 500
        assert await text(server.get("/readyz?exclude=database")) == (200, "ok")


async def test_a_restart_is_not_asked_for_because_of_the_database() -> None:
    async with client(database=unreachable) as server:
        assert await text(server.get("/livez")) == (200, "ok")
        assert (await server.get("/livez/database")).status_code == 404


async def test_unknown_exclusions_are_named() -> None:
    async with client() as server:
        code, shown = await text(server.get("/livez?verbose&exclude=ping&exclude=nothing"))

    assert code == 200
    assert shown.splitlines() == [
        "[+]ping excluded: ok",
        "[+]log ok",
        'warn: some health checks cannot be excluded: no matches for "nothing"',
        "livez check passed",
    ]


async def test_a_check_that_hangs_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "CHECK_SECONDS", 0.05)
    async with client(database=hanging, other=hanging) as server:
        async with asyncio.timeout(60):
            code, shown = await text(server.get("/readyz"))

    assert code == 500
    assert "[-]database failed" in shown
    assert "[-]other failed" in shown
