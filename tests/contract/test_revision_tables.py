"""The tables of ``kube-api.md`` 2.5 and 2.7, row by row: which state a list or watch shows for the revision asked for.

``now``, ``past``, ``old`` and ``future`` stand for revisions: the newest, one that the log still has, one that was
compacted, one that is not reached.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from api_fixture import Api, api_server

pytestmark = pytest.mark.asyncio(loop_scope="module")
MAPS = "/api/v1/namespaces/default/configmaps"
Json = dict[str, Any]
EVERYTHING, BEFORE = ["a", "b", "c"], ["a", "b"]


class Past:
    """A server with a past: ``a`` and ``b`` were there at ``past``, ``c`` came later, ``old`` is compacted."""

    def __init__(self, api: Api, revisions: dict[str, str]) -> None:
        self.api = api
        self.revisions = revisions

    def query(self, text: str) -> str:
        for name, revision in self.revisions.items():
            text = text.replace(f"={name}", f"={revision}")
        return text


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def past() -> AsyncIterator[Past]:
    async with api_server() as api:
        revisions = {}
        for name in ("a", "b"):
            created = await api.client.post(MAPS, json={"metadata": {"name": name}})
            revisions["old" if name == "a" else "past"] = created.json()["metadata"]["resourceVersion"]
        await api.store.compact(int(revisions["past"]))
        # As after a restart: what is compacted is not in memory either.
        ring = api.store._resources.of("configmaps").cache.ring
        ring.floor = int(revisions["past"])
        ring.first += len(ring._events)
        del ring._events[:], ring._times[:]
        await api.client.post(MAPS, json={"metadata": {"name": "c"}})
        revisions |= {"now": str(api.store.rv), "future": str(api.store.rv + 1000)}
        yield Past(api, revisions)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", EVERYTHING),
        ("resourceVersion=", EVERYTHING),
        ("resourceVersion=0", EVERYTHING),
        ("resourceVersion=0&resourceVersionMatch=NotOlderThan", EVERYTHING),
        ("resourceVersion=0&limit=1", ["a"]),
        ("resourceVersion=past", EVERYTHING),
        ("resourceVersion=past&resourceVersionMatch=NotOlderThan", EVERYTHING),
        ("resourceVersion=past&resourceVersionMatch=NotOlderThan&limit=5", EVERYTHING),
        ("resourceVersion=old", EVERYTHING),
        ("resourceVersion=now&resourceVersionMatch=Exact", EVERYTHING),
        ("resourceVersion=past&resourceVersionMatch=Exact", BEFORE),
        ("resourceVersion=past&limit=5", BEFORE),
        ("resourceVersion=past&limit=1", ["a"]),
        ("resourceVersion=old&resourceVersionMatch=Exact", 410),
        ("resourceVersion=old&limit=5", 410),
        ("resourceVersion=x", 400),
        ("resourceVersionMatch=Exact", 422),
        ("resourceVersion=0&resourceVersionMatch=Exact", 422),
        ("resourceVersion=now&resourceVersionMatch=Newest", 422),
        ("sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=0", 422),
        ("continue=x", 400),
    ],
)
async def test_lists_show_the_state_asked_for(past: Past, query: str, expected: list[str] | int) -> None:
    answer = await past.api.client.get(f"{MAPS}?{past.query(query)}")

    if isinstance(expected, int):
        assert answer.status_code == expected, answer.text
        return
    page = answer.json()
    assert [item["metadata"]["name"] for item in page["items"]] == expected
    shown = int(page["metadata"]["resourceVersion"])
    exact = expected == BEFORE or "Exact" in query or query == "resourceVersion=past&limit=1"
    assert shown == int(past.revisions["past" if "past" in query else "now"]) if exact else shown > 0


@pytest.mark.parametrize("query", ["resourceVersion=future", "resourceVersion=future&resourceVersionMatch=Exact"])
async def test_a_revision_that_is_not_reached_is_waited_for(past: Past, query: str) -> None:
    begun = time.monotonic()
    answer = await past.api.client.get(f"{MAPS}?{past.query(query)}")

    assert answer.status_code == 504
    assert answer.headers["retry-after"] == "1"
    assert answer.json()["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert time.monotonic() - begun > 2.9


async def test_a_revision_that_is_reached_meanwhile_is_served(past: Past) -> None:
    async with api_server() as api:
        wanted = api.store.rv + 1
        listing = asyncio.create_task(api.client.get(f"{MAPS}?resourceVersion={wanted}"))
        await asyncio.sleep(0.2)
        await api.client.post(MAPS, json={"metadata": {"name": "late"}})

        assert [item["metadata"]["name"] for item in (await listing).json()["items"]] == ["late"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["+a", "+b", "+c"]),
        ("resourceVersion=0", ["+a", "+b", "+c"]),
        ("resourceVersion=past", ["+c"]),
        ("resourceVersion=now", []),
        ("sendInitialEvents=true", ["+a", "+b", "+c", "!"]),
        ("sendInitialEvents=true&resourceVersion=0", ["+a", "+b", "+c", "!"]),
        ("sendInitialEvents=true&resourceVersion=past", ["+a", "+b", "+c", "!"]),
        ("sendInitialEvents=true&resourceVersion=old", ["+a", "+b", "+c", "!"]),
        ("sendInitialEvents=false", []),
        ("sendInitialEvents=false&resourceVersion=past", ["+c"]),
        ("resourceVersion=old", [410]),
        ("sendInitialEvents=false&resourceVersion=old", [410]),
        ("resourceVersion=future", [504]),
        ("sendInitialEvents=true&resourceVersion=future", [504]),
    ],
)
async def test_watches_begin_where_they_are_told_to(past: Past, query: str, expected: list[str | int]) -> None:
    match = "&resourceVersionMatch=NotOlderThan" if "sendInitialEvents" in query else ""
    target = f"{MAPS}?watch=1&timeoutSeconds=1&allowWatchBookmarks=1&{past.query(query)}{match}"
    answer = await past.api.client.get(target)

    assert answer.status_code == 200
    assert [told(json.loads(line)) for line in answer.text.splitlines()] == expected


def told(event: Json) -> str | int:
    if event["type"] == "ERROR":
        return int(event["object"]["code"])
    metadata = event["object"]["metadata"]
    if event["type"] == "BOOKMARK":
        return "!" if metadata.get("annotations") else "?"
    return {"ADDED": "+", "MODIFIED": "~", "DELETED": "-"}[event["type"]] + str(metadata["name"])
