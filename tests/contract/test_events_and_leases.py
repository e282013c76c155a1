"""Events in both groups, Leases and service accounts over HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from api_fixture import Api, api_server

Json = dict[str, Any]

CORE = "/api/v1/namespaces/default/events"
V1 = "/apis/events.k8s.io/v1/namespaces/default/events"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
MERGE = {"content-type": "application/merge-patch+json"}
TABLE = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
TIME = "2026-01-02T03:04:05.000006Z"


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with api_server(http=False) as server:
        yield server


def core_event(name: str = "old", **fields: Any) -> Json:
    return {
        "metadata": {"name": name},
        "involvedObject": {"kind": "ConfigMap", "name": "a", "namespace": "default"},
        "reason": "Synced",
        "message": "all is well",
        "source": {"component": "syncer", "host": "node-1"},
        "firstTimestamp": "2026-01-02T04:04:05+01:00",
        "lastTimestamp": "2026-01-02T03:04:05Z",
        "count": 3,
        "type": "Normal",
        **fields,
    }


def v1_event(name: str = "new", **fields: Any) -> Json:
    return {
        "metadata": {"name": name},
        "eventTime": TIME,
        "reportingController": "example.com/syncer",
        "reportingInstance": "syncer-1",
        "action": "Sync",
        "reason": "Synced",
        "type": "Normal",
        "note": "all is well",
        "regarding": {"kind": "ConfigMap", "name": "a", "namespace": "default"},
        **fields,
    }


async def created(api: Api, path: str, body: Json) -> Json:
    answer = await api.client.post(path, json=body)
    assert answer.status_code == 201, answer.text
    result: Json = answer.json()
    return result


def without_metadata(obj: Json) -> Json:
    return {key: value for key, value in obj.items() if key != "metadata"}


async def test_a_core_event_is_shown_in_the_newer_group_in_its_form(api: Api) -> None:
    stored = await created(api, CORE, core_event())
    shown = (await api.client.get(f"{V1}/old")).json()

    assert shown["metadata"]["uid"] == stored["metadata"]["uid"]
    assert without_metadata(shown) == {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "eventTime": None,
        "reason": "Synced",
        "note": "all is well",
        "type": "Normal",
        "regarding": {"kind": "ConfigMap", "name": "a", "namespace": "default"},
        "deprecatedSource": {"component": "syncer", "host": "node-1"},
        "deprecatedFirstTimestamp": "2026-01-02T03:04:05Z",
        "deprecatedLastTimestamp": "2026-01-02T03:04:05Z",
        "deprecatedCount": 3,
    }


async def test_an_event_of_the_newer_group_is_a_core_event(api: Api) -> None:
    answer = await created(api, V1, v1_event())
    core = (await api.client.get(f"{CORE}/new")).json()

    assert answer["apiVersion"] == "events.k8s.io/v1"
    assert without_metadata(core) == {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {"kind": "ConfigMap", "name": "a", "namespace": "default"},
        "reason": "Synced",
        "message": "all is well",
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "type": "Normal",
        "eventTime": TIME,
        "action": "Sync",
        "reportingComponent": "example.com/syncer",
        "reportingInstance": "syncer-1",
    }


async def test_lists_of_both_groups_hold_the_same_events_and_answer_their_own_selectors(api: Api) -> None:
    await created(api, CORE, core_event(involvedObject={"kind": "Secret", "name": "s", "namespace": "default"}))
    await created(api, V1, v1_event())

    async def found(path: str, selector: str) -> list[str]:
        answer = await api.client.get(path, params={"fieldSelector": selector})
        assert answer.status_code == 200, answer.text
        assert {item["apiVersion"] for item in answer.json()["items"]} <= {answer.json()["apiVersion"]}
        return [item["metadata"]["name"] for item in answer.json()["items"]]

    assert await found(CORE, "") == await found(V1, "") == ["new", "old"]
    assert await found(CORE, "involvedObject.kind=Secret") == await found(V1, "regarding.kind=Secret") == ["old"]
    assert await found(CORE, "reportingComponent=example.com/syncer") == ["new"]
    assert await found(V1, "reportingController=example.com/syncer,type=Normal") == ["new"]
    assert await found(CORE, "source=syncer") == ["old"]
    assert (await api.client.get(V1, params={"fieldSelector": "source=syncer"})).status_code == 400


async def test_a_change_in_one_group_is_seen_in_the_other(api: Api) -> None:
    await created(api, V1, v1_event())
    series = {"count": 2, "lastObservedTime": TIME}

    patched = await api.client.patch(f"{V1}/new", content=json.dumps({"series": series}), headers=MERGE)
    core = (await api.client.get(f"{CORE}/new")).json()
    again = await api.client.patch(f"{CORE}/new", content=b'{"series":{"count":3}}', headers=MERGE)
    deleted = await api.client.delete(f"{V1}/new")

    assert patched.json()["apiVersion"] == "events.k8s.io/v1"
    assert core["series"] == series
    assert again.json()["series"]["count"] == 3
    assert deleted.json()["status"] == "Success"
    assert (await api.client.get(f"{CORE}/new")).status_code == 404


async def test_a_put_may_create_an_event_in_either_group(api: Api) -> None:
    old = await api.client.put(f"{CORE}/old", json=core_event())
    new = await api.client.put(f"{V1}/new", json=v1_event())

    assert (old.status_code, old.json()["apiVersion"]) == (201, "v1")
    assert (new.status_code, new.json()["apiVersion"]) == (201, "events.k8s.io/v1")


@pytest.mark.parametrize(
    ("fields", "causes"),
    [
        pytest.param({"eventTime": None}, ["eventTime"], id="no-time"),
        pytest.param({"type": "Odd"}, ["type"], id="type"),
        pytest.param({"action": "", "reason": ""}, ["action", "reason"], id="no-action-nor-reason"),
        pytest.param({"note": "x" * 1025}, ["message"], id="long-note"),
        pytest.param({"deprecatedCount": 2}, ["count"], id="count"),
        pytest.param({"series": {"count": 1}}, ["series.count", "series.lastObservedTime"], id="series"),
        pytest.param({"reportingController": "a b"}, ["reportingController"], id="reporter"),
        pytest.param({"regarding": {"namespace": "other"}}, [], id="of-another-namespace"),
    ],
)
async def test_the_newer_group_is_strict(api: Api, fields: Json, causes: list[str]) -> None:
    answer = await api.client.post(V1, json=v1_event(**fields))

    assert answer.status_code == (422 if causes else 201)
    assert [cause["field"] for cause in answer.json().get("details", {}).get("causes", [])] == causes


async def test_what_a_new_event_says_cannot_change_through_the_newer_group(api: Api) -> None:
    await created(api, V1, v1_event())
    patch = b'{"note":"otherwise","reportingController":"example.com/other"}'
    refused = await api.client.patch(f"{V1}/new", content=patch, headers=MERGE)

    assert refused.status_code == 422
    fields = [cause["field"] for cause in refused.json()["details"]["causes"]]
    assert fields == ["message", "reportingController"]


async def test_a_core_event_lies_in_the_namespace_of_its_object(api: Api) -> None:
    refused = await api.client.post(CORE, json=core_event(involvedObject={"kind": "Secret", "namespace": "other"}))

    assert refused.status_code == 422
    assert refused.json()["details"]["causes"] == [
        {
            "reason": "FieldValueInvalid",
            "message": 'Invalid value: "other": does not match event.namespace',
            "field": "involvedObject.namespace",
        }
    ]


@pytest.mark.parametrize("path", [CORE, V1])
async def test_both_groups_print_the_same_row(api: Api, path: str) -> None:
    await created(api, CORE, core_event())
    table = (await api.client.get(path, headers=TABLE)).json()

    columns = [(column["name"], column["type"], column["priority"]) for column in table["columnDefinitions"]]
    assert columns == [
        ("Last Seen", "string", 0),
        ("Type", "string", 0),
        ("Reason", "string", 0),
        ("Object", "string", 0),
        ("Subobject", "string", 1),
        ("Source", "string", 1),
        ("Message", "string", 0),
        ("First Seen", "string", 1),
        ("Count", "string", 1),
        ("Name", "string", 1),
    ]
    cells = table["rows"][0]["cells"]
    assert cells[1:7] == ["Normal", "Synced", "configmap/a", "", "syncer, node-1", "all is well"]
    assert cells[8:] == [3, "old"]


async def test_an_event_without_times_was_seen_at_an_unknown_one(api: Api) -> None:
    await created(api, CORE, core_event(firstTimestamp=None, lastTimestamp=None, count=0))
    cells = (await api.client.get(CORE, headers=TABLE)).json()["rows"][0]["cells"]

    assert (cells[0], cells[7], cells[8]) == ("<unknown>", "<unknown>", 1)


async def test_watchers_of_both_groups_see_each_change_in_their_form() -> None:
    async with api_server() as api:
        seen: dict[str, list[tuple[str, str, str]]] = {CORE: [], V1: []}

        async def watch(path: str) -> None:
            async with api.client.stream("GET", path, params={"watch": "true", "timeoutSeconds": "20"}) as answer:
                async for line in answer.aiter_lines():
                    event = json.loads(line)
                    obj = event["object"]
                    seen[path].append((event["type"], obj["apiVersion"], obj.get("note") or obj["message"]))
                    if event["type"] == "DELETED":
                        return

        await created(api, CORE, core_event())
        async with asyncio.timeout(60), asyncio.TaskGroup() as watchers:
            for path in seen:
                watchers.create_task(watch(path))
            while not all(seen.values()):
                await asyncio.sleep(0.01)
            await api.client.patch(f"{V1}/old", content=b'{"type":"Normal"}', headers=MERGE)  # changes nothing
            await api.client.patch(f"{CORE}/old", content=b'{"message":"changed"}', headers=MERGE)
            await api.client.delete(f"{CORE}/old")

        expected = [("ADDED", "all is well"), ("MODIFIED", "changed"), ("DELETED", "changed")]
        assert seen[CORE] == [(type_, "v1", text) for type_, text in expected]
        assert seen[V1] == [(type_, "events.k8s.io/v1", text) for type_, text in expected]


async def test_a_lease_is_taken_renewed_and_not_overwritten_blindly(api: Api) -> None:
    spec = {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": TIME, "leaseTransitions": 0}
    taken = await api.client.put(f"{LEASES}/leader", json={"metadata": {"name": "leader"}, "spec": spec})
    lease = taken.json()
    renewed = await api.client.put(f"{LEASES}/leader", json={**lease, "spec": {**spec, "leaseTransitions": 1}})
    stale = await api.client.put(f"{LEASES}/leader", json=lease)
    del lease["metadata"]["resourceVersion"]
    blind = await api.client.put(f"{LEASES}/leader", json=lease)

    assert (taken.status_code, lease["spec"]) == (201, spec)
    assert renewed.json()["spec"]["leaseTransitions"] == 1
    assert (stale.status_code, stale.json()["reason"]) == (409, "Conflict")
    assert (blind.status_code, blind.json()["details"]["causes"][0]["field"]) == (422, "metadata.resourceVersion")


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        pytest.param(
            {"leaseDurationSeconds": 0},
            "spec.leaseDurationSeconds",
            "Invalid value: 0: must be greater than 0",
            id="no-time",
        ),
        pytest.param(
            {"leaseTransitions": -1},
            "spec.leaseTransitions",
            "Invalid value: -1: must be greater than or equal to 0",
            id="transitions",
        ),
    ],
)
async def test_impossible_leases_are_invalid(api: Api, spec: Json, field: str, message: str) -> None:
    refused = await api.client.post(LEASES, json={"metadata": {"name": "l"}, "spec": spec})

    assert refused.status_code == 422
    (cause,) = refused.json()["details"]["causes"]
    assert (cause["field"], cause["message"]) == (field, message)


async def test_times_of_leases_have_microseconds(api: Api) -> None:
    lease = await created(
        api, LEASES, {"metadata": {"name": "l"}, "spec": {"renewTime": "2026-01-02T04:04:05.000006+01:00"}}
    )
    refused = await api.client.post(
        LEASES, json={"metadata": {"name": "m"}, "spec": {"renewTime": "2026-01-02T03:04:05Z"}}
    )

    assert lease["spec"]["renewTime"] == TIME
    assert refused.status_code == 400
    assert refused.json()["message"] == (
        'Lease in version "v1" cannot be handled as a Lease: parsing time "2026-01-02T03:04:05Z" as '
        '"2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"'
    )


async def test_secrets_of_a_service_account_are_merged_by_name(api: Api) -> None:
    await created(api, ACCOUNTS, {"metadata": {"name": "robot"}, "secrets": [{"name": "a"}, {"name": "b"}]})
    strategic = {"content-type": "application/strategic-merge-patch+json"}
    patch = b'{"secrets":[{"name":"a","$patch":"delete"},{"name":"c"}],"automountServiceAccountToken":false}'

    merged = (await api.client.patch(f"{ACCOUNTS}/robot", content=patch, headers=strategic)).json()

    assert sorted(one["name"] for one in merged["secrets"]) == ["b", "c"]
    assert merged["automountServiceAccountToken"] is False
