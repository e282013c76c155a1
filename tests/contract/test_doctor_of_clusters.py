"""``porch doctor`` and a cluster that answers most, and some things not in time."""

import asyncio
import datetime as dt
from pathlib import Path

from aiohttp import web
from kube_stand_in import kubeconfig, stand_in

from krm.cli.doctor.finding import Diagnosis
from krm.cli.doctor.looking import examine_server


async def test_the_metrics_of_a_kube_apiserver_are_not_asked_for(tmp_path: Path) -> None:
    """A large cluster's take longer, and are more, than anybody waits for or reads; and they say nothing about Porch."""
    asked: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append(request.path)
        if request.path == "/metrics":
            await asyncio.Event().wait()
        if request.path in ("/readyz", "/apis/apiregistration.k8s.io/v1"):
            return web.json_response({})
        return web.json_response({"kind": "Status", "code": 403, "reason": "Forbidden", "message": "no"}, status=403)

    found = Diagnosis()
    async with stand_in(answer) as url:
        await examine_server(
            kubeconfig(tmp_path, url), "default", dt.timedelta(hours=1), found, definitions=list, account="porch"
        )

    assert "/metrics" not in asked
    assert not [one for one in found.findings if "does not answer" in one.problem]
    assert any("packagerevisions" in one for one in found.not_looked_at), "it went on to what is on the server"
