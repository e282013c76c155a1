"""Reports of the engine become Events beside the requests: counted, bounded, and written out before a stop."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from api_fixture import Api, api_server
from structlog.testing import capture_logs

from apiserver.machinery.rest import Updater
from apiserver.resources.queued_events import QueuedEvents
from krm.meta.errors import ResourceName

Json = dict[str, Any]
NEVER = 3600.0
"""Seconds to gather that no test waits for: what is written then was written by the stop."""


@asynccontextmanager
async def queued(api: Api, **options: Any) -> AsyncIterator[QueuedEvents]:
    """Queue events of a server's own; leaving the block stops the queue."""
    (served,) = api.kinds.find(ResourceName("events"))
    assert isinstance(served.resource, Updater)
    events = QueuedEvents(served.resource, **options)
    events.start()
    yield events
    await events.stop()


def revision(name: str, namespace: str = "default") -> Json:
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": {"large": "x"}}
    return {"apiVersion": "porch.kpt.dev/v1alpha1", "kind": "PackageRevision", "metadata": metadata, "spec": {}}


async def written(api: Api) -> list[Json]:
    items: list[Json] = (await api.client.get("/api/v1/namespaces/default/events")).json()["items"]
    return items


async def test_a_stop_writes_what_was_reported() -> None:
    async with api_server(http=False) as api:
        async with queued(api, gather=NEVER) as events:
            events.report(revision("a"), "RenderFailed", "it failed", warning=True)
            assert await written(api) == []

        (event,) = await written(api)
        assert (event["reason"], event["message"], event["type"]) == ("RenderFailed", "it failed", "Warning")
        assert event["involvedObject"] == {
            "apiVersion": "porch.kpt.dev/v1alpha1",
            "kind": "PackageRevision",
            "name": "a",
            "namespace": "default",
            "uid": "uid-a",
        }


async def test_the_same_report_is_one_event_with_a_count() -> None:
    async with api_server(http=False) as api:
        for _ in range(2):
            async with queued(api, gather=NEVER) as events:
                for _ in range(3):
                    events.report(revision("a"), "Proposed", "proposed by somebody")
                events.report(revision("b"), "Proposed", "proposed by somebody")

        assert {event["involvedObject"]["name"]: event["count"] for event in await written(api)} == {"a": 6, "b": 2}


async def test_more_reports_than_wait_at_most_are_dropped_and_the_log_says_so() -> None:
    async with api_server(http=False) as api:
        with capture_logs() as logs:
            async with queued(api, gather=NEVER, waiting=2) as events:
                for number in range(5):
                    events.report(revision(f"r{number}"), "Created", "created by somebody")

        assert len(await written(api)) == 2
        assert [line["events"] for line in logs if line["event"].startswith("events dropped")] == [3]


async def test_warnings_find_a_place_where_there_is_none_left_for_others() -> None:
    async with api_server(http=False) as api:
        async with queued(api, gather=NEVER, waiting=2) as events:
            for number in range(5):
                events.report(revision(f"r{number}"), "Created", "created by somebody")
            for number in range(5):
                events.report(revision(f"r{number}"), "PushRefused", "no", warning=True)

        assert sorted(event["reason"] for event in await written(api)) == ["Created"] * 2 + ["PushRefused"] * 2


async def test_an_event_that_cannot_be_written_does_not_stop_those_after_it() -> None:
    async with api_server(http=False) as api:
        async with queued(api, gather=NEVER) as events:
            events.report(revision("a", "no-such-namespace"), "Created", "created by somebody")
            events.report(revision("b"), "Created", "created by somebody")

        assert [event["involvedObject"]["name"] for event in await written(api)] == ["b"]


async def test_a_long_message_is_cut() -> None:
    async with api_server(http=False) as api:
        async with queued(api, gather=NEVER) as events:
            events.report(revision("a"), "SyncFailed", "x" * 5000, warning=True)

        (event,) = await written(api)
        assert len(event["message"]) == 1024


@pytest.mark.parametrize("count", [0, 1, 30])
async def test_reports_are_written_a_moment_later_without_a_stop(count: int) -> None:
    async with api_server() as api, queued(api, gather=0.01) as events:
        for number in range(count):
            events.report(revision(f"r{number}"), "Created", "created by somebody")
        response = await api.client.get("/api/v1/namespaces/default/events?watch=true&timeoutSeconds=1")

        assert response.text.count('"type":"ADDED"') == count


async def test_of_a_long_message_only_what_an_event_keeps_is_held_until_then() -> None:
    async with api_server(http=False) as api:
        async with queued(api, gather=NEVER) as events:
            events.report(revision("a"), "RenderFailed", "x" * 10_000_000 + "1")
            events.report(revision("a"), "RenderFailed", "x" * 10_000_000 + "2")

        (event,) = await written(api)
        assert (event["message"], event["count"]) == ("x" * 1024, 2)
