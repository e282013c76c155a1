"""Server-side apply and managedFields over HTTP, as kube-apiserver 1.34 answers them."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from api_fixture import Api, api_server

Json = dict[str, Any]
MAPS = "/api/v1/namespaces/default/configmaps"
REPOSITORIES = "/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories"
APPLY = "application/apply-patch+yaml"


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with api_server(http=False) as running:
        yield running


def config_map(data: Json | None = None, **metadata: Any) -> Json:
    found: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}
    return found if data is None else {**found, "data": data}


async def patch(
    api: Api, path: str, body: Json | list[Any] | bytes, kind: str = APPLY, *, agent: str = "test/1", **query: str
) -> httpx2.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"content-type": kind, "user-agent": agent}
    return await api.client.patch(path, content=content, params=query, headers=headers)


async def applied(api: Api, body: Json, manager: str = "m", **query: str) -> Json:
    answer = await patch(api, f"{MAPS}/a", body, fieldManager=manager, **query)
    assert answer.status_code in (200, 201), answer.text
    found: Json = answer.json()
    return found


def managers(obj: Json) -> dict[str, Json]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])}


async def test_an_apply_creates_and_a_second_one_changes(api: Api) -> None:
    made = await patch(api, f"{MAPS}/a", config_map({"k": "1"}), fieldManager="m")
    changed = await patch(api, f"{MAPS}/a", config_map({"k": "2"}), fieldManager="m")

    assert (made.status_code, changed.status_code) == (201, 200)
    assert made.json()["metadata"]["uid"] == changed.json()["metadata"]["uid"]
    (entry,) = changed.json()["metadata"]["managedFields"]
    assert list(entry) == ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1"]
    assert entry["fieldsV1"] == {"f:data": {"f:k": {}}}


async def test_creates_updates_and_patches_are_recorded_by_manager_or_agent(api: Api) -> None:
    headers = {"user-agent": "tool/1.2 (linux)"}
    await api.client.post(MAPS, json=config_map({"k": "1"}), headers=headers)
    await api.client.put(f"{MAPS}/a", json=config_map({"k": "2", "n": "1"}), params={"fieldManager": "putter"})
    merge = "application/merge-patch+json"
    answer = await patch(api, f"{MAPS}/a", {"metadata": {"labels": {"x": "y"}}}, merge, agent="patcher/3")

    assert managers(answer.json()) == {
        "tool": {"f:data": {}},
        "putter": {"f:data": {"f:k": {}, "f:n": {}}},
        "patcher": {"f:metadata": {"f:labels": {".": {}, "f:x": {}}}},
    }


async def test_writes_that_change_nothing_leave_version_and_managers(api: Api) -> None:
    before = (await api.client.post(MAPS, json=config_map({"k": "1"}), params={"fieldManager": "x"})).json()
    put = await api.client.put(f"{MAPS}/a", json=config_map({"k": "1"}), params={"fieldManager": "y"})
    merged = await patch(api, f"{MAPS}/a", {"data": {"k": "1"}}, "application/merge-patch+json", fieldManager="z")
    first = await applied(api, config_map({"k": "1"}))
    again = await applied(api, config_map({"k": "1"}))

    assert put.json() == merged.json() == before
    assert set(managers(first)) == {"x", "m"}
    assert again == first


async def test_conflicts_name_managers_and_fields(api: Api) -> None:
    await api.client.post(MAPS, json=config_map({"k": "1", "l": "1"}), params={"fieldManager": "x"})
    one = await patch(api, f"{MAPS}/a", config_map({"k": "2"}), fieldManager="m")
    two = await patch(api, f"{MAPS}/a", config_map({"k": "2", "l": "2"}), fieldManager="m")

    assert (one.status_code, one.json()["reason"]) == (409, "Conflict")
    assert one.json()["message"] == 'Apply failed with 1 conflict: conflict with "x" using v1: .data.k'
    assert one.json()["details"] == {
        "causes": [
            {"reason": "FieldManagerConflict", "message": 'conflict with "x" using v1', "field": ".data.k"},
        ]
    }
    assert two.json()["message"] == 'Apply failed with 2 conflicts: conflicts with "x" using v1:\n- .data.k\n- .data.l'
    forced = await applied(api, config_map({"k": "2", "l": "2"}), force="true")
    assert managers(forced) == {"m": {"f:data": {"f:k": {}, "f:l": {}}}, "x": {"f:data": {}}}


async def test_what_was_there_before_the_first_apply_has_a_manager(api: Api) -> None:
    await api.client.post(MAPS, json=config_map({"k": "1"}))
    await patch(api, f"{MAPS}/a", {"metadata": {"managedFields": [{}]}}, "application/merge-patch+json")
    answer = await applied(api, config_map({"l": "1"}))

    assert managers(answer) == {"before-first-apply": {"f:data": {".": {}, "f:k": {}}}, "m": {"f:data": {"f:l": {}}}}


@pytest.mark.parametrize("reset", [[], [{}]])
async def test_managers_can_be_reset_and_updates_begin_none(api: Api, reset: list[Json]) -> None:
    await api.client.post(MAPS, json=config_map({"k": "1"}))
    operation = [{"op": "replace", "path": "/metadata/managedFields", "value": reset}]
    answer = await patch(api, f"{MAPS}/a", operation, "application/json-patch+json")
    after = await api.client.put(f"{MAPS}/a", json=config_map({"k": "2"}))

    assert "managedFields" not in answer.json()["metadata"]
    assert "managedFields" not in after.json()["metadata"]


async def test_managers_can_be_edited_and_nonsense_is_ignored(api: Api) -> None:
    made = (await api.client.post(MAPS, json=config_map({"k": "1"}), params={"fieldManager": "x"})).json()
    entry = {**made["metadata"]["managedFields"][0], "manager": "renamed", "operation": "Apply"}
    edit = [{"op": "replace", "path": "/metadata/managedFields", "value": [entry]}]
    edited = await patch(api, f"{MAPS}/a", edit, "application/json-patch+json", fieldManager="y")
    wrong = {"metadata": {"managedFields": [{**entry, "fieldsV1": {"nonsense": {}}}]}}
    ignored = await patch(api, f"{MAPS}/a", wrong, "application/merge-patch+json", fieldManager="y")

    assert edited.json()["metadata"]["managedFields"] == [entry]
    assert ignored.json()["metadata"]["managedFields"] == [entry]


async def test_main_and_status_have_managers_of_their_own(api: Api) -> None:
    repository = {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "Repository",
        "metadata": {"name": "r"},
        "spec": {"git": {"repo": "https://git.example/r", "branch": "main"}},
    }
    status = {"conditions": [{"type": "Ready", "status": "True", "reason": "R", "lastTransitionTime": None}]}
    main = await patch(api, f"{REPOSITORIES}/r", {**repository, "status": status}, fieldManager="m")
    path = f"{REPOSITORIES}/r/status"
    answer = await patch(api, path, {**repository, "status": {"observedGeneration": 1}}, fieldManager="s")

    assert "status" not in main.json()
    assert managers(main.json()) == {"m": {"f:spec": {"f:git": {"f:branch": {}, "f:repo": {}}}}}
    entries = {entry["manager"]: entry for entry in answer.json()["metadata"]["managedFields"]}
    assert (entries["s"]["subresource"], entries["s"]["fieldsV1"]) == (
        "status",
        {"f:status": {"f:observedGeneration": {}}},
    )
    assert answer.json()["spec"] == main.json()["spec"]


async def test_last_applied_annotations_give_kubectl_its_fields(api: Api) -> None:
    last = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(config_map({"k": "1"}))}
    made = config_map({"k": "1"}, annotations=last)
    await api.client.post(MAPS, json=made, params={"fieldManager": "kubectl-client-side-apply"})
    other = await patch(api, f"{MAPS}/a", config_map({"k": "2"}), fieldManager="other")
    moved = await applied(api, config_map({"k": "2"}), "kubectl")

    assert other.status_code == 409
    assert moved["data"] == {"k": "2"}
    assert json.loads(moved["metadata"]["annotations"].popitem()[1])["data"] == {"k": "2"}, "it is kept in step"


async def test_dry_runs_write_nothing(api: Api) -> None:
    made = await patch(api, f"{MAPS}/a", config_map({"k": "1"}), fieldManager="m", dryRun="All")

    assert made.status_code == 201
    assert (await api.client.get(f"{MAPS}/a")).status_code == 404


@pytest.mark.parametrize(
    ("body", "query", "code", "message"),
    [
        (config_map(), {"fieldManager": ""}, 422, "fieldManager: Required value: is required for apply patch"),
        ({**config_map(), "kind": "Secret"}, {}, 400, "invalid object type: /v1, Kind=Secret"),
        ({**config_map(), "apiVersion": "v2"}, {}, 400, "invalid object type: /v2, Kind=ConfigMap"),
        ({"metadata": {"name": "a"}}, {}, 400, "invalid object type: /, Kind="),
        (config_map(managedFields=[]), {}, 400, "metadata.managedFields must be nil"),
        ({**config_map(), "metadata": {"name": "b"}}, {}, 400, "does not match the name on the URL (a)"),
        ({**config_map(), "metadata": {"generateName": "b"}}, {}, 400, "name must be provided"),
        (config_map(namespace="other"), {}, 400, "does not match the namespace sent on the request"),
        (config_map(uid="5"), {}, 409, "the provided object specified uid 5, and no existing object was found"),
        ({**config_map(), "x": 1}, {}, 400, "(/a; /v1, Kind=ConfigMap): .x: field not declared in schema"),
        (config_map({"k": 1}), {}, 400, ".data.k: expected string, got integer"),
        ({**config_map(), "data": []}, {}, 400, ".data: expected object, got array"),
        ({**config_map(), "metadata": []}, {}, 400, ".metadata: expected object, got array"),
        (config_map(finalizers=["a/b", "a/b"]), {}, 400, 'duplicate entries for key [="a/b"]'),
        (b"a: [", {}, 400, "error decoding YAML: "),
        (b"- a", {}, 400, "error decoding YAML: "),
        (b"", {}, 400, "invalid object type: /, Kind="),
        (b"\xff", {}, 400, "error decoding YAML: "),
        (b"a: &x [*x]", {}, 400, "error decoding YAML: "),
        (b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","name":"a"}}', {}, 400, "duplicate field"),
    ],
)
async def test_configurations_that_make_no_sense_are_refused(
    api: Api, body: Json | bytes, query: dict[str, str], code: int, message: str
) -> None:
    answer = await patch(api, f"{MAPS}/a", body, **{"fieldManager": "m", "fieldValidation": "Strict", **query})

    assert answer.status_code == code, answer.text
    assert message in answer.json()["message"]
    assert (await api.client.get(f"{MAPS}/a")).status_code == 404


async def test_a_stale_version_is_a_conflict_and_cbor_is_not_taken(api: Api) -> None:
    await applied(api, config_map({"k": "1"}))
    stale = await patch(api, f"{MAPS}/a", config_map(resourceVersion="1"), fieldManager="m")
    another = await patch(api, f"{MAPS}/a", config_map(uid="5"), fieldManager="m")
    cbor = await patch(api, f"{MAPS}/a", b"\xa0", "application/apply-patch+cbor", fieldManager="m")
    forced = await patch(api, f"{MAPS}/a", {}, "application/merge-patch+json", force="true")

    assert (stale.status_code, cbor.status_code, forced.status_code) == (409, 415, 422)
    assert another.status_code == 422
    assert 'metadata.uid: Invalid value: "5": field is immutable' in another.json()["message"]
    assert "the object has been modified" in stale.json()["message"]
    assert "force: Forbidden: may not be specified for non-apply patch" in forced.json()["message"]


async def test_a_repeated_key_is_told_where_validation_is_not_strict(api: Api) -> None:
    body = b'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: "1", k: "2"}\n'
    answer = await patch(api, f"{MAPS}/a", body, fieldManager="m")
    silent = await patch(api, f"{MAPS}/a", body, fieldManager="m", fieldValidation="Ignore")

    assert (answer.status_code, answer.json()["data"]) == (201, {"k": "2"})
    assert "duplicate field" in answer.headers["warning"]
    assert "warning" not in silent.headers


async def test_many_appliers_at_once_all_find_their_place(api: Api) -> None:
    bodies = [config_map({f"k{number}": "v"}) for number in range(12)]
    answers = await asyncio.gather(
        *(patch(api, f"{MAPS}/a", body, fieldManager=f"m{number}") for number, body in enumerate(bodies))
    )
    found = (await api.client.get(f"{MAPS}/a")).json()

    assert sorted({answer.status_code for answer in answers}) == [200, 201]
    assert sum(answer.status_code == 201 for answer in answers) == 1
    assert set(found["data"]) == {f"k{number}" for number in range(12)}
    assert set(managers(found)) == {f"m{number}" for number in range(12)}


async def test_objects_of_many_fields_are_written_beside_the_event_loop(api: Api) -> None:
    for manager in ("one", "two", "three"):
        await applied(api, config_map({f"{manager}-{number}": "v" * 20 for number in range(800)}), manager)
    answer = await applied(api, config_map({"one-0": "v" * 20}), "one")
    put = await api.client.put(f"{MAPS}/a", json=config_map({"one-0": "w"}), params={"fieldManager": "last"})

    assert len(answer["data"]) == 1601
    assert put.json()["data"] == {"one-0": "w"}
    assert managers(put.json()) == {"last": {"f:data": {"f:one-0": {}}}}


async def test_metadata_alone_and_tables_show_managers(api: Api) -> None:
    made = await applied(api, config_map({"k": "1"}))
    partial = await api.client.get(
        f"{MAPS}/a", headers={"accept": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}
    )
    table = await api.client.get(MAPS, headers={"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"})

    entries = made["metadata"]["managedFields"]
    assert partial.json()["metadata"]["managedFields"] == entries
    rows = [row["object"]["metadata"] for row in table.json()["rows"]]
    assert [row["managedFields"] for row in rows if row["name"] == "a"] == [entries]
