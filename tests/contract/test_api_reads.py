"""Gets, lists, Tables, selectors and pages over HTTP, and the paths where nothing is served."""

import gzip
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
import yaml
from api_fixture import Api, api_server

from apiserver.machinery.continuation import Continuation
from apiserver.machinery.negotiate import Shape, View, negotiate
from apiserver.machinery.request import duration, request_info
from apiserver.machinery.table import human_duration
from krm.meta.errors import BadRequest, NotAcceptable

MAPS = "/api/v1/namespaces/default/configmaps"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
METADATA = {
    "accept": "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,"
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
}
Json = dict[str, Any]


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with api_server(http=False) as server:
        yield server


async def fill(api: Api, *names: str, namespace: str = "default") -> None:
    for number, name in enumerate(names):
        body = {"metadata": {"name": name, "labels": {"n": str(number)}}, "data": {"k": "v"}}
        answer = await api.client.post(f"/api/v1/namespaces/{namespace}/configmaps", json=body)
        assert answer.status_code == 201


async def names_of(api: Api, path: str = MAPS, **query: str) -> list[str]:
    answer = await api.client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return [item["metadata"]["name"] for item in answer.json()["items"]]


async def test_a_list_has_the_revision_of_its_snapshot_and_full_items(api: Api) -> None:
    empty = (await api.client.get(MAPS)).json()
    await fill(api, "b", "a")
    full = (await api.client.get(MAPS)).json()

    assert empty["items"] == []
    assert full["kind"] == "ConfigMapList"
    assert full["metadata"] == {"resourceVersion": str(api.store.rv)}
    assert [item["metadata"]["name"] for item in full["items"]] == ["a", "b"]
    assert full["items"][0]["kind"] == "ConfigMap"


async def test_selectors_choose(api: Api) -> None:
    await fill(api, "a", "b", "c")
    await fill(api, "a", namespace="kube-system")
    everywhere = "/api/v1/configmaps"

    assert await names_of(api, labelSelector="n in (0,2)") == ["a", "c"]
    assert await names_of(api, labelSelector="n>0,n!=2") == ["b"]
    assert await names_of(api, fieldSelector="metadata.name=b") == ["b"]
    assert await names_of(api, fieldSelector="metadata.name!=b", labelSelector="n") == ["a", "c"]
    assert await names_of(api, everywhere, fieldSelector="metadata.namespace=kube-system") == ["a"]
    assert len(await names_of(api, everywhere)) == 4


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"labelSelector": "a in x"}, 400),
        ({"fieldSelector": "spec.foo=x"}, 400),
        ({"limit": "x"}, 400),
        ({"timeoutSeconds": "soon"}, 400),
        ({"resourceVersion": "x"}, 400),
        ({"resourceVersion": "-1"}, 400),
        ({"continue": "%%%"}, 400),
        ({"continue": "e30"}, 400),
        ({"resourceVersionMatch": "Exact"}, 422),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, 422),
        ({"resourceVersionMatch": "Sometimes", "resourceVersion": "1"}, 422),
        ({"sendInitialEvents": "true"}, 422),
        ({"watch": "true", "sendInitialEvents": "true"}, 422),
        ({"watch": "true", "resourceVersionMatch": "NotOlderThan"}, 422),
        ({"timeout": "soon"}, 400),
    ],
)
async def test_parameters_that_make_no_sense_are_refused(api: Api, query: dict[str, str], code: int) -> None:
    assert (await api.client.get(MAPS, params=query)).status_code == code


async def test_pages_come_from_one_snapshot(api: Api) -> None:
    await fill(api, "a", "b", "c", "d", "e")
    first = (await api.client.get(MAPS, params={"limit": "2"})).json()
    await api.client.delete(f"{MAPS}/d")
    await fill(api, "aa", "z")
    token = first["metadata"]["continue"]
    second = (await api.client.get(MAPS, params={"limit": "2", "continue": token})).json()
    third = (await api.client.get(MAPS, params={"limit": "2", "continue": second["metadata"]["continue"]})).json()

    pages = [[item["metadata"]["name"] for item in page["items"]] for page in (first, second, third)]
    assert pages == [["a", "b"], ["c", "d"], ["e"]]
    assert first["metadata"]["remainingItemCount"] == 3
    assert {page["metadata"]["resourceVersion"] for page in (first, second, third)} == {
        first["metadata"]["resourceVersion"]
    }
    assert "continue" not in third["metadata"]


async def test_a_selector_leaves_the_remaining_count_out(api: Api) -> None:
    await fill(api, "a", "b", "c")
    page = (await api.client.get(MAPS, params={"limit": "1", "labelSelector": "n"})).json()

    assert "continue" in page["metadata"]
    assert "remainingItemCount" not in page["metadata"]


async def test_a_compacted_token_is_expired_and_brings_a_fresh_one(api: Api) -> None:
    await fill(api, "a", "b", "c")
    page = (await api.client.get(MAPS, params={"limit": "1"})).json()
    await fill(api, "d")
    await api.store.compact(api.store.rv)
    expired = await api.client.get(MAPS, params={"limit": "1", "continue": page["metadata"]["continue"]})
    fresh = expired.json()["metadata"]["continue"]
    rest = await names_of(api, **{"continue": fresh})

    assert (expired.status_code, expired.json()["reason"]) == (410, "Expired")
    assert Continuation.decode(fresh).rv == -1
    assert rest == ["b", "c", "d"]


async def test_exact_and_future_revisions(api: Api) -> None:
    await fill(api, "a")
    then = str(api.store.rv)
    await fill(api, "b")

    assert await names_of(api, resourceVersion=then, resourceVersionMatch="Exact") == ["a"]
    assert await names_of(api, resourceVersion=then, resourceVersionMatch="NotOlderThan") == ["a", "b"]
    assert await names_of(api, resourceVersion="0") == ["a", "b"]
    future = await api.client.get(MAPS, params={"resourceVersion": str(api.store.rv + 100)})
    assert future.status_code == 504
    assert future.json()["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    assert future.headers["retry-after"] == "1"


async def test_a_table_has_columns_rows_and_metadata(api: Api) -> None:
    await fill(api, "a")
    table = (await api.client.get(MAPS, headers=TABLE)).json()
    whole = (await api.client.get(MAPS, headers=TABLE, params={"includeObject": "Object"})).json()
    bare = (await api.client.get(MAPS, headers=TABLE, params={"includeObject": "None"})).json()
    single = (await api.client.get(f"{MAPS}/a", headers=TABLE)).json()
    wrong = await api.client.get(MAPS, headers=TABLE, params={"includeObject": "Some"})

    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    assert table["columnDefinitions"][0]["format"] == "name"
    row = table["rows"][0]
    assert row["cells"][0] == "a"
    assert row["cells"][2].endswith("s")
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert row["object"]["metadata"]["labels"] == {"n": "0"}
    assert whole["rows"][0]["object"]["data"] == {"k": "v"}
    assert bare["rows"][0]["object"] is None
    assert single["rows"][0]["object"] == row["object"]
    assert wrong.status_code == 400


async def test_metadata_lists_take_the_second_clause(api: Api) -> None:
    await fill(api, "a")
    found = (await api.client.get(MAPS, headers=METADATA)).json()
    refused = await api.client.get(f"{MAPS}/a", headers={"accept": METADATA["accept"].rpartition(",")[0]})

    assert found["kind"] == "PartialObjectMetadataList"
    assert list(found["items"][0]) == ["kind", "apiVersion", "metadata"]
    assert refused.status_code == 406


async def test_yaml_and_pretty_answers(api: Api) -> None:
    await fill(api, "a")
    as_yaml = await api.client.get(f"{MAPS}/a", headers={"accept": "application/yaml"})
    pretty = await api.client.get(f"{MAPS}/a", headers={"user-agent": "curl/8"})
    plain = await api.client.get(f"{MAPS}/a", headers={"user-agent": "curl/8"}, params={"pretty": "false"})

    assert as_yaml.headers["content-type"] == "application/yaml"
    assert yaml.safe_load(as_yaml.text) == orjson.loads(plain.content)
    assert '\n  "kind"' in pretty.text
    assert plain.text.count("\n") == 1
    assert (await api.client.get(MAPS, headers={"accept": "application/cbor"})).status_code == 406


async def test_large_lists_are_compressed_only_for_who_offers_it(api: Api) -> None:
    for number in range(30):
        body = {"metadata": {"name": f"m{number}"}, "data": {"k": "x" * 50_000}}
        await api.client.post(MAPS, json=body)
    offered = await api.client.get(MAPS, headers={"accept-encoding": "gzip"})
    plain = await api.client.get(MAPS, headers={"accept-encoding": "identity"})
    refused = await api.client.get(MAPS, headers={"accept-encoding": "gzip;q=0"})

    assert offered.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert "content-length" not in plain.headers
    assert offered.json() == plain.json() == refused.json()
    assert len(plain.json()["items"]) == 30
    assert len(gzip.compress(plain.content)) < len(plain.content)


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/apis/nothing.example.com/v1/things",
        "/apis/config.porch.kpt.dev/v1alpha1/nothings",
    ],
)
async def test_unknown_groups_are_plain_not_found(api: Api, path: str) -> None:
    answer = await api.client.get(path)

    assert (answer.status_code, answer.text) == (404, "404 page not found\n")


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/nothings",
        "/api/v2/configmaps",
        "/api/v2",
        "/api/v1/configmaps/a",
        "/api/v1//namespaces/default/configmaps",
        "/api/v1/namespaces/default/configmaps/a/status",
        "/api/v1/namespaces/default/configmaps/a/b/c",
    ],
)
async def test_unknown_paths_of_a_group_are_a_status(api: Api, path: str) -> None:
    answer = await api.client.get(path)

    assert answer.status_code == 404
    assert (answer.json()["reason"], answer.json()["details"]) == ("NotFound", {})
    assert answer.json()["message"] == "the server could not find the requested resource"


async def test_known_paths_refuse_verbs_they_have_not(api: Api) -> None:
    await fill(api, "a")
    answers = [
        await api.client.post("/api/v1/configmaps", json={"metadata": {"name": "x"}}),
        await api.client.post(f"{MAPS}/a", json={}),
        await api.client.delete("/api/v1/configmaps"),
        await api.client.request("OPTIONS", MAPS),
        await api.client.post("/version"),
        await api.client.put(MAPS, json={"metadata": {"name": "a"}}),
        await api.client.patch(MAPS, json={}, headers={"content-type": "application/merge-patch+json"}),
    ]

    assert [answer.status_code for answer in answers] == [405] * 7
    assert answers[0].json()["message"] == "the server does not allow this method on the requested resource"


async def test_every_answer_can_be_traced_and_is_not_cached(api: Api) -> None:
    answer = await api.client.get(MAPS, headers={"audit-id": "my-id"})
    missing = await api.client.get(f"{MAPS}/zz")

    assert answer.headers["audit-id"] == "my-id"
    assert answer.headers["cache-control"] == "no-cache, private"
    assert len(missing.headers["audit-id"]) == 36
    assert missing.json()["message"] == 'configmaps "zz" not found'


async def test_strangers_see_health_and_version_only(api: Api) -> None:
    stranger = {"x-nobody": "1"}

    assert (await api.client.get("/readyz", headers=stranger)).status_code == 200
    assert (await api.client.get("/version", headers=stranger)).json()["gitVersion"] == "v1.34.0+porch"
    for path in (MAPS, "/apis", "/openapi/v3", "/nothing"):
        refused = await api.client.get(path, headers=stranger)
        assert (refused.status_code, refused.json()["message"]) == (401, "Unauthorized")


async def test_a_request_that_takes_too_long_is_a_timeout(api: Api) -> None:
    query = {"resourceVersion": str(api.store.rv + 100), "timeout": "100ms"}
    answer = await api.client.get(MAPS, params=query)

    assert answer.status_code == 504
    assert answer.json()["message"] == "Timeout: request did not complete within the allotted timeout"


async def test_a_bug_is_an_internal_error_without_details(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_args: object, **_named: object) -> None:
        raise RuntimeError("the secret inside")

    monkeypatch.setattr(api.store, "get_fresh", broken)
    answer = await api.client.get(f"{MAPS}/a")

    assert (answer.status_code, answer.json()["reason"]) == (500, "InternalError")
    assert "secret" not in answer.text
    assert answer.headers["audit-id"] in answer.text


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/namespaces", ("list", "", "namespaces", "", None, "")),
        ("/api/v1/namespaces/a", ("get", "", "namespaces", "", None, "a")),
        ("/api/v1/namespaces/a/status", ("get", "", "namespaces", "status", None, "a")),
        ("/api/v1/namespaces/a/secrets", ("list", "", "secrets", "", "a", "")),
        ("/apis/g.io/v1/namespaces/a/things/b/status", ("get", "g.io", "things", "status", "a", "b")),
        ("/apis/g.io/v1/watch/things", ("watch", "g.io", "things", "", None, "")),
        ("/apis/g.io/v1", ("get", "", "", "", None, "")),
        ("/apis/g.io", ("get", "", "", "", None, "")),
        ("/api/v1", ("get", "", "", "", None, "")),
    ],
)
def test_paths_say_what_is_asked_for(path: str, expected: tuple[object, ...]) -> None:
    info = request_info("GET", path, {})

    assert (info.verb, info.group, info.resource, info.subresource, info.namespace, info.name) == expected


@pytest.mark.parametrize(
    ("accept", "shape", "view", "yaml_form"),
    [
        ("", Shape.LIST, View.OBJECT, False),
        ("*/*", Shape.LIST, View.OBJECT, False),
        ("application/yaml;q=0.5,application/json;q=0.1", Shape.ITEM, View.OBJECT, True),
        ("application/*;q=0.2,application/yaml;q=0.2", Shape.ITEM, View.OBJECT, True),
        ("application/json;as=Table;g=meta.k8s.io;v=v1beta1", Shape.ITEM, View.TABLE, False),
        ("application/json;as=Table;g=meta.k8s.io;v=v2,application/json", Shape.LIST, View.OBJECT, False),
        ("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", Shape.WATCH, View.METADATA, False),
        ("application/json;stream=watch", Shape.WATCH, View.OBJECT, False),
        ("application/vnd.kubernetes.protobuf,application/json", Shape.LIST, View.OBJECT, False),
    ],
)
def test_negotiation_takes_the_best_clause_that_can_be_served(
    accept: str, shape: Shape, view: View, yaml_form: bool
) -> None:
    form = negotiate(accept, shape)

    assert (form.view, form.yaml) == (view, yaml_form)


@pytest.mark.parametrize("accept", ["text/html", "application/cbor", "application/json;q=0", "application/yaml"])
def test_negotiation_refuses_what_a_watch_cannot_be(accept: str) -> None:
    with pytest.raises(NotAcceptable):
        negotiate(accept, Shape.WATCH)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (125, "2m5s"), (700, "11m"), (4 * 3600 + 60, "4h1m"), (9 * 3600, "9h"),
     (50 * 3600, "2d2h"), (9 * 86400, "9d"), (800 * 86400, "2y70d"), (10 * 365 * 86400, "10y"), (-5, "<invalid>")],
)  # fmt: skip
def test_ages_are_short(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


def test_durations_are_gos() -> None:
    assert [duration(text) for text in ("32s", "1m30s", "1.5h", "100ms", "0")] == [32, 90, 5400, 0.1, 0]
    for text in ("", "5", "s", "1m 2s", "-1s", "1x", "1s" * 100):
        with pytest.raises(BadRequest):
            duration(text)
