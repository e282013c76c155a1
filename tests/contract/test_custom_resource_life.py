"""Custom resources beside the rest of the server: namespaces, our own definitions, scripts that change many at once."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from api_fixture import Api, api_server
from custom_kinds import DEFINITIONS, WIDGETS, definition, establish, until_gone, version, widget

from apiserver.machinery.rest import DeleteOptions, Scope, WriteOptions
from apiserver.resources.custom.definitions import SERVER, CustomResourceDefinitions
from krm.meta.errors import Forbidden

Json = dict[str, Any]
MERGE = {"content-type": "application/merge-patch+json"}
NAME = f"{DEFINITIONS}/widgets.example.com"


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with api_server(http=False, controllers=True) as server:
        yield server


async def test_a_namespace_that_goes_takes_its_custom_resources_along(api: Api) -> None:
    await establish(api, definition(version("v1"), version("v2", storage=False)))
    await api.client.post("/api/v1/namespaces", json={"metadata": {"name": "gone"}})
    for namespace in ("gone", "default"):
        answer = await api.client.post(WIDGETS.replace("default", namespace), json=widget())
        assert answer.status_code == 201, answer.text

    await api.client.delete("/api/v1/namespaces/gone")
    await until_gone(api, "/api/v1/namespaces/gone")
    left = (await api.client.get("/apis/example.com/v1/widgets")).json()["items"]

    assert [item["metadata"]["namespace"] for item in left] == ["default"]


async def test_many_definitions_come_and_go_at_once(api: Api) -> None:
    groups = [f"g{number}.example.com" for number in range(30)]

    async def live(group: str) -> None:
        await establish(api, definition(group=group))
        path = f"/apis/{group}/v1/namespaces/default/widgets"
        made = await api.client.post(path, json={**widget(), "apiVersion": f"{group}/v1"})
        assert made.status_code == 201, made.text
        await api.client.delete(f"{DEFINITIONS}/widgets.{group}")
        await until_gone(api, f"{DEFINITIONS}/widgets.{group}")

    started = time.monotonic()
    await asyncio.gather(*map(live, groups))

    assert time.monotonic() - started < 90
    assert not [kind for kind in api.kinds.all if kind.resource.definition.group in groups]


async def test_definitions_change_while_objects_are_written_and_nothing_is_lost(api: Api) -> None:
    crd = await establish(api, definition())
    written: list[str] = []

    async def write() -> None:
        for number in range(150):
            answer = await api.client.post(WIDGETS, json=widget(f"w{number:03}", size=number))
            assert answer.status_code == 201, answer.text
            written.append(answer.json()["metadata"]["name"])

    async def change() -> None:
        for number in range(15):
            columns = [{"name": f"C{number}", "type": "integer", "jsonPath": ".spec.size"}]
            patch = {"spec": {"versions": [{**crd["spec"]["versions"][0], "additionalPrinterColumns": columns}]}}
            answer = await api.client.patch(NAME, json=patch, headers=MERGE)
            assert answer.status_code == 200, answer.text

    await asyncio.gather(write(), change())
    listed = (await api.client.get(WIDGETS)).json()["items"]

    assert [item["metadata"]["name"] for item in listed] == sorted(written)


async def test_a_version_that_is_no_longer_served_is_gone_and_its_objects_are_not(api: Api) -> None:
    crd = await establish(api, definition(version("v1"), version("v1beta1", storage=False)))
    beta = WIDGETS.replace("/v1/", "/v1beta1/")
    await api.client.post(beta, json=widget("one", "v1beta1", size=1))
    crd["spec"]["versions"][1]["served"] = False

    await api.client.put(NAME, json=crd)

    assert (await api.client.get(beta)).status_code == 404
    assert (await api.client.get(f"{WIDGETS}/one")).json()["spec"]["size"] == 1


async def test_a_definition_that_serves_nothing_still_removes_its_objects(api: Api) -> None:
    crd = await establish(api, definition())
    await api.client.post(WIDGETS, json=widget())
    crd["spec"]["versions"][0]["served"] = False
    await api.client.put(NAME, json=crd)

    await api.client.delete(NAME)
    await until_gone(api, NAME)
    await establish(api, definition())

    assert (await api.client.get(WIDGETS)).json()["items"] == []


async def test_definitions_of_our_own_stay_as_the_server_was_built_and_are_not_deleted() -> None:
    own = definition(shortNames=["wd"])
    async with api_server(http=False) as api:
        definitions = CustomResourceDefinitions(api.store, {"widgets.example.com": own})
        await definitions.store_own()
        scope, options = Scope(None, SERVER), WriteOptions()

        def other(current: Json) -> Json:
            current["spec"]["scope"] = "Cluster"
            current["metadata"]["labels"] = {"a": "b"}
            return current

        entry, _ = await definitions.update(scope, "widgets.example.com", other, options)
        with pytest.raises(Forbidden):
            await definitions.delete(scope, "widgets.example.com", DeleteOptions())
        kept = (await api.client.get(NAME)).json()

    assert kept["spec"]["scope"] == "Namespaced"
    assert kept["metadata"]["labels"] == {"a": "b"}
    assert options.warnings == ["widgets.example.com is a kind of this server: its own definition of it stays in force"]
    assert entry.name == "widgets.example.com"


async def test_an_earlier_versions_definition_of_our_own_is_brought_up_to_date() -> None:
    earlier, now = definition(), definition(shortNames=["wd"])
    async with api_server(http=False) as api:
        await CustomResourceDefinitions(api.store, {"widgets.example.com": earlier}).store_own()
        await CustomResourceDefinitions(api.store, {"widgets.example.com": now}).store_own()
        stored = (await api.client.get(NAME)).json()

    assert stored["spec"]["names"]["shortNames"] == ["wd"]
