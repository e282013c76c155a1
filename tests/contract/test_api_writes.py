"""Create, update, patch and delete over HTTP: what the server sets, keeps, counts and refuses."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from api_fixture import Api, api_server
from cost import metered

MAPS = "/api/v1/namespaces/default/configmaps"
REPOSITORIES = "/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories"
UPSERTS = "/apis/test.example/v1alpha1/namespaces/default/upserts"
MERGE = {"content-type": "application/merge-patch+json"}
JSON_PATCH = {"content-type": "application/json-patch+json"}
Json = dict[str, Any]


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with api_server(http=False) as server:
        yield server


def config_map(name: str = "a", **metadata: Any) -> Json:
    return {"metadata": {"name": name, **metadata}, "data": {"k": "v"}}


def repository(name: str = "r") -> Json:
    return {"metadata": {"name": name}, "spec": {"git": {"repo": "https://git.example/r.git"}}}


async def created(api: Api, path: str, body: Json) -> Json:
    answer = await api.client.post(path, json=body)
    assert answer.status_code == 201, answer.text
    result: Json = answer.json()
    return result


async def test_times_of_metadata_may_be_sent_back_in_another_form(api: Api) -> None:
    stored = await created(api, MAPS, config_map())
    sent = {**stored, "metadata": {**stored["metadata"]}, "data": {"k": "w"}}
    sent["metadata"]["creationTimestamp"] = stored["metadata"]["creationTimestamp"].replace("Z", "+00:00")

    answer = await api.client.put(f"{MAPS}/a", json=sent)

    assert answer.status_code == 200, "the Python clients write times so"
    assert answer.json()["metadata"]["creationTimestamp"] == stored["metadata"]["creationTimestamp"]


async def test_a_time_that_utc_has_not_is_a_bad_request(api: Api) -> None:
    answer = await api.client.post(MAPS, json=config_map(creationTimestamp="9999-12-31T23:59:59-23:00"))

    assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")


async def test_create_sets_what_belongs_to_the_server(api: Api) -> None:
    sent = config_map(uid="mine", creationTimestamp="2001-01-01T00:00:00Z", generation=7, selfLink="/x")

    obj = await created(api, MAPS, sent)

    metadata = obj["metadata"]
    assert list(obj)[:3] == ["apiVersion", "kind", "metadata"]
    assert metadata["uid"] != "mine"
    assert metadata["creationTimestamp"] > "2026"
    assert metadata["namespace"] == "default"
    assert int(metadata["resourceVersion"]) > 0
    assert "selfLink" not in metadata
    assert "generation" not in metadata


async def test_create_refuses_a_resource_version_and_a_foreign_namespace(api: Api) -> None:
    with_revision = await api.client.post(MAPS, json=config_map(resourceVersion="5"))
    elsewhere = await api.client.post(MAPS, json=config_map(namespace="other"))
    nowhere = await api.client.post(MAPS.replace("default", "nope"), json=config_map())

    assert (with_revision.status_code, with_revision.json()["message"]) == (
        400,
        "resourceVersion should not be set on objects to be created",
    )
    assert elsewhere.status_code == 400
    assert (nowhere.status_code, nowhere.json()["message"]) == (404, 'namespaces "nope" not found')


async def test_a_second_create_is_already_exists(api: Api) -> None:
    await created(api, MAPS, config_map())
    again = await api.client.post(MAPS, json=config_map())

    assert again.status_code == 409
    assert again.json()["reason"] == "AlreadyExists"
    assert again.json()["message"] == 'configmaps "a" already exists'
    assert again.json()["details"] == {"name": "a", "kind": "configmaps"}


async def test_a_generated_name_that_is_taken_is_tried_eight_times(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def choose(alphabet: str) -> str:
        tried.append(alphabet)
        return "b"

    monkeypatch.setattr("apiserver.resources.writing.secrets.choice", choose)
    await created(api, MAPS, {"metadata": {"generateName": "gen-"}})
    tried.clear()
    refused = await api.client.post(MAPS, json={"metadata": {"generateName": "gen-"}})

    assert len(tried) == 8 * 5
    assert (refused.status_code, refused.headers["retry-after"]) == (409, "1")
    status = refused.json()
    assert status["reason"] == "AlreadyExists"
    assert status["message"] == (
        'configmaps "gen-bbbbb" already exists, the server was not able to generate a unique name for the object'
    )
    assert status["details"] == {"name": "gen-bbbbb", "kind": "configmaps", "retryAfterSeconds": 1}


async def test_a_hundred_thousand_bad_names_are_refused_at_once() -> None:
    owners = [{"uid": f"{number:x}", "controller": True} for number in range(10_000)]
    metadata = {
        "name": "a",
        "finalizers": [f"-{number}" for number in range(50_000)],
        "labels": {f"-{number}": "-" for number in range(20_000)},
        "ownerReferences": [*owners, *owners],
    }
    async with api_server(http=False, body_limit=6 * 1024 * 1024) as api:
        with metered() as cost:
            refused = await api.client.post(MAPS, json={"metadata": metadata})

        assert cost.seconds < 5
        assert (refused.status_code, len(refused.json()["details"]["causes"])) == (422, 100)
        assert len(refused.content) < 200_000


async def test_generated_names_have_five_characters_and_differ(api: Api) -> None:
    body = {"metadata": {"generateName": "gen-"}}
    names = {(await created(api, MAPS, body))["metadata"]["name"] for _ in range(3)}

    assert len(names) == 3
    assert all(name.startswith("gen-") and len(name) == 9 for name in names)


@pytest.mark.parametrize(
    ("metadata", "field"),
    [
        pytest.param({}, "metadata.name", id="no-name"),
        pytest.param({"name": "A_b"}, "metadata.name", id="bad-name"),
        pytest.param({"name": "a", "labels": {"a b": "c"}}, "metadata.labels", id="label-key"),
        pytest.param({"name": "a", "labels": {"a": "c/d"}}, "metadata.labels", id="label-value"),
        pytest.param({"name": "a", "annotations": {"": "c"}}, "metadata.annotations", id="annotation"),
        pytest.param({"name": "a", "finalizers": ["a b/c"]}, "metadata.finalizers", id="finalizer"),
        pytest.param({"name": "a", "finalizers": ["orphan", "foregroundDeletion"]}, "metadata.finalizers", id="both"),
    ],
)
async def test_bad_metadata_is_invalid_and_names_the_field(api: Api, metadata: Json, field: str) -> None:
    answer = await api.client.post(MAPS, json={"metadata": metadata})

    assert answer.status_code == 422
    assert {cause["field"] for cause in answer.json()["details"]["causes"]} == {field}


async def test_two_controlling_owners_are_refused_and_repeated_ones_dropped(api: Api) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u", "controller": True}
    refused = await api.client.post(MAPS, json=config_map(ownerReferences=[owner, {**owner, "uid": "w"}]))
    repeated = await api.client.post(MAPS, json=config_map(ownerReferences=[owner, owner]))

    assert refused.status_code == 422
    assert repeated.json()["metadata"]["ownerReferences"] == [owner]
    assert "duplicate" in repeated.headers["warning"]


async def test_generation_counts_wanted_state_only(api: Api) -> None:
    first = await created(api, REPOSITORIES, repository())
    labelled = await api.client.patch(f"{REPOSITORIES}/r", json={"metadata": {"labels": {"a": "b"}}}, headers=MERGE)
    described = await api.client.patch(f"{REPOSITORIES}/r", json={"spec": {"description": "x"}}, headers=MERGE)

    generations = [obj["metadata"]["generation"] for obj in (first, labelled.json(), described.json())]
    assert generations == [1, 1, 2]


async def test_status_and_the_rest_are_written_through_different_doors(api: Api) -> None:
    await created(api, REPOSITORIES, {**repository(), "status": {"packageCount": 1}})
    ready = {"status": {"packageCount": 5}, "spec": {"description": "ignored"}}
    by_status = await api.client.patch(f"{REPOSITORIES}/r/status", json=ready, headers=MERGE)
    by_main = await api.client.patch(f"{REPOSITORIES}/r", json={"status": {"packageCount": 9}}, headers=MERGE)

    assert by_status.json()["status"] == {"packageCount": 5}
    assert "description" not in by_status.json()["spec"]
    assert by_status.json()["metadata"]["generation"] == 1
    assert by_main.json() == by_status.json()


async def test_put_needs_the_revision_unless_the_kind_forgives_it(api: Api) -> None:
    stored = await created(api, REPOSITORIES, repository())
    await created(api, MAPS, config_map())

    missing = await api.client.put(f"{REPOSITORIES}/r", json=repository())
    stale = await api.client.put(
        f"{REPOSITORIES}/r", json={**repository(), "metadata": {"name": "r", "resourceVersion": "1"}}
    )
    unconditional = await api.client.put(f"{MAPS}/a", json={"metadata": {"name": "a"}, "data": {"k": "w"}})
    right = await api.client.put(f"{REPOSITORIES}/r", json={**stored, "spec": {**stored["spec"], "description": "d"}})

    assert missing.status_code == 422
    assert missing.json()["details"]["causes"][0]["field"] == "metadata.resourceVersion"
    assert stale.status_code == 409
    assert stale.json()["message"] == (
        'Operation cannot be fulfilled on repositories.config.porch.kpt.dev "r": the object has been modified; '
        "please apply your changes to the latest version and try again"
    )
    assert unconditional.json()["data"] == {"k": "w"}
    assert right.status_code == 200


async def test_an_update_that_changes_nothing_writes_nothing(api: Api) -> None:
    stored = await created(api, MAPS, config_map())
    before = api.store.rv
    put = await api.client.put(f"{MAPS}/a", json=stored)
    patched = await api.client.patch(f"{MAPS}/a", json={"metadata": {"labels": {}}}, headers=MERGE)

    assert put.json() == patched.json() == stored
    assert api.store.rv == before


async def test_identity_cannot_be_changed(api: Api) -> None:
    stored = await created(api, MAPS, config_map())
    other_time = await api.client.put(f"{MAPS}/a", json=config_map(creationTimestamp="2001-01-01T00:00:00Z"))
    other_name = await api.client.put(f"{MAPS}/a", json=config_map("b"))
    other_uid = await api.client.put(f"{MAPS}/a", json=config_map(uid="x"))
    missing = await api.client.put(f"{MAPS}/zz", json=config_map("zz"))

    assert other_name.status_code == 400
    assert other_name.json()["message"] == "the name of the object (b) does not match the name on the URL (a)"
    assert other_uid.status_code == 409
    assert other_time.json() == stored, "what is the server's alone is passed over"
    assert missing.status_code == 404
    assert (await api.client.get(f"{MAPS}/a")).json() == stored


async def test_put_may_create_where_the_kind_says_so_and_patch_may_not(api: Api) -> None:
    put = await api.client.put(f"{UPSERTS}/u", json=repository("u"))
    patch = await api.client.patch(f"{UPSERTS}/w", json={"spec": {}}, headers=MERGE)

    assert put.status_code == 201
    assert patch.status_code == 404


async def test_patches_of_one_object_at_once_all_succeed(api: Api) -> None:
    await created(api, MAPS, config_map())

    async def put_key(number: int) -> int:
        answer = await api.client.patch(f"{MAPS}/a", json={"data": {f"k{number}": "v"}}, headers=MERGE)
        return answer.status_code

    codes = await asyncio.gather(*[put_key(number) for number in range(20)])

    assert set(codes) == {200}
    assert len((await api.client.get(f"{MAPS}/a")).json()["data"]) == 21


async def test_a_patch_with_a_stale_revision_conflicts(api: Api) -> None:
    await created(api, MAPS, config_map())
    stale = await api.client.patch(f"{MAPS}/a", json={"metadata": {"resourceVersion": "1"}}, headers=MERGE)

    assert stale.status_code == 409


async def test_json_patch_test_failure_is_invalid_and_changes_nothing(api: Api) -> None:
    stored = await created(api, MAPS, config_map())
    operations = [
        {"op": "replace", "path": "/data/k", "value": "w"},
        {"op": "test", "path": "/metadata/resourceVersion", "value": "1"},
    ]
    failed = await api.client.patch(f"{MAPS}/a", json=operations, headers=JSON_PATCH)
    malformed = await api.client.patch(f"{MAPS}/a", json={"op": "add"}, headers=JSON_PATCH)

    assert failed.status_code == 422
    assert malformed.status_code == 400
    assert (await api.client.get(f"{MAPS}/a")).json() == stored


async def test_patch_formats_are_those_of_the_kind(api: Api) -> None:
    await created(api, MAPS, config_map())
    await created(api, REPOSITORIES, repository())
    strategic = {"content-type": "application/strategic-merge-patch+json; charset=utf-8"}

    core = await api.client.patch(f"{MAPS}/a", json={"data": {"k": None}}, headers=strategic)
    custom = await api.client.patch(f"{REPOSITORIES}/r", json={}, headers=strategic)

    assert core.status_code == 200
    assert "k" not in core.json().get("data", {})
    assert custom.status_code == 415
    assert custom.json()["reason"] == "UnsupportedMediaType"


async def test_dry_run_answers_as_if_and_writes_nothing(api: Api) -> None:
    stored = await created(api, MAPS, config_map())
    before = api.store.rv
    create = await api.client.post(MAPS, params={"dryRun": "All"}, json=config_map("b"))
    exists = await api.client.post(MAPS, params={"dryRun": "All"}, json=config_map())
    update = await api.client.patch(f"{MAPS}/a", params={"dryRun": "All"}, json={"data": {"k": "w"}}, headers=MERGE)
    delete = await api.client.delete(f"{MAPS}/a", params={"dryRun": "All"})
    bad = await api.client.post(MAPS, params={"dryRun": "Some"}, json=config_map("b"))

    assert create.status_code == 201
    assert "resourceVersion" not in create.json()["metadata"]
    assert exists.status_code == 409
    assert update.json()["data"] == {"k": "w"}
    assert update.json()["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
    assert delete.status_code == 200
    assert bad.status_code == 422
    assert api.store.rv == before


@pytest.mark.parametrize(
    ("validation", "code"), [("Strict", 400), ("Warn", 201), ("Ignore", 201), ("", 201), ("Other", 422)]
)
async def test_unknown_and_repeated_fields_are_handled_as_asked(api: Api, validation: str, code: int) -> None:
    body = b'{"metadata":{"name":"r"},"spec":{"foo":1,"git":{"repo":"a","repo":"https://b.example/c"}}}'
    answer = await api.client.post(REPOSITORIES, params={"fieldValidation": validation}, content=body)

    assert answer.status_code == code
    if code == 400:
        assert answer.json()["message"] == (
            'Repository in version "v1alpha1" cannot be handled as a Repository: strict decoding error: '
            'unknown field "spec.foo", duplicate field "spec.git.repo"'
        )
    if code == 201:
        warnings = answer.headers.get_list("warning")
        expected = ['299 - "unknown field \\"spec.foo\\""', '299 - "duplicate field \\"spec.git.repo\\""']
        assert warnings == ([] if validation == "Ignore" else expected)
        assert "foo" not in answer.json()["spec"]


async def test_a_wrong_type_is_a_bad_request(api: Api) -> None:
    answer = await api.client.post(MAPS, json={"metadata": {"name": "a"}, "data": {"k": 1}})

    assert answer.status_code == 400
    assert answer.json()["message"].startswith('ConfigMap in version "v1" cannot be handled as a ConfigMap: ')


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{", id="not-json"),
        pytest.param(b"[]", id="not-an-object"),
        pytest.param(b'{"kind":"Secret","metadata":{"name":"a"}}', id="other-kind"),
        pytest.param(b'{"apiVersion":"v2","metadata":{"name":"a"}}', id="other-version"),
        pytest.param(b'{"metadata":[]}', id="metadata-no-object"),
        pytest.param(b'{"metadata":{"name":"a"},"data":' + b'{"a":' * 150 + b"1" + b"}" * 151, id="too-deep"),
        pytest.param(b"[" * 60_000, id="far-too-deep"),
        pytest.param(b"\xff\xfe", id="not-utf8"),
        pytest.param(b"", id="empty"),
    ],
)
async def test_an_unreadable_body_is_a_bad_request(api: Api, body: bytes) -> None:
    answer = await api.client.post(MAPS, content=body)

    assert answer.status_code == 400
    assert answer.json()["reason"] == "BadRequest"


YAML = {"content-type": "application/yaml"}


async def test_yaml_is_taken_with_dates_as_text(api: Api) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\ndata:\n  day: 2026-01-02\n"
    answer = await api.client.post(MAPS, content=text.encode(), headers=YAML)

    assert answer.json()["data"] == {"day": "2026-01-02"}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: [", id="broken"),
        pytest.param("a: &x [1]\nb: *x\n", id="alias"),
        pytest.param("a: " + "[" * 5000, id="deep"),
        pytest.param("a: !!python/object:os.system x", id="tag"),
        pytest.param("a: 1\n---\nb: 2\n", id="two-documents"),
    ],
)
async def test_hostile_yaml_is_a_bad_request(api: Api, text: str) -> None:
    assert (await api.client.post(MAPS, content=text.encode(), headers=YAML)).status_code == 400


async def test_other_body_formats_are_unsupported(api: Api) -> None:
    cbor = await api.client.post(MAPS, content=b"\xa0", headers={"content-type": "application/cbor"})
    packed = await api.client.post(MAPS, content=b"\x1f\x8b", headers={"content-encoding": "gzip"})

    assert (cbor.status_code, cbor.json()["reason"]) == (415, "UnsupportedMediaType")
    assert packed.status_code == 415


async def test_a_body_over_the_limit_is_refused_and_the_connection_survives() -> None:
    async with api_server() as api:
        answer = await api.client.post(MAPS, content=b" " * (8 * 1024 * 1024))
        after = await api.client.get(MAPS)

    assert answer.status_code == 413
    assert answer.json()["message"].startswith("Request entity too large: ")
    assert after.json()["items"] == []


async def test_a_client_that_stops_sending_gets_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apiserver.machinery.decode._READ_SECONDS", 0.2)
    async with api_server() as api:
        host, _, port = api.url.removeprefix("http://").partition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(f"POST {MAPS} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{{".encode())
        status = await asyncio.wait_for(reader.readline(), 60)
        writer.close()

    assert b" 504 " in status


async def test_delete_answers_success_and_then_not_found(api: Api) -> None:
    stored = await created(api, MAPS, config_map())
    answer = await api.client.request("DELETE", f"{MAPS}/a", json={"propagationPolicy": "Background"})
    again = await api.client.delete(f"{MAPS}/a")

    assert answer.json()["status"] == "Success"
    assert answer.json()["details"] == {"name": "a", "kind": "configmaps", "uid": stored["metadata"]["uid"]}
    assert again.status_code == 404


async def test_delete_checks_preconditions_and_options(api: Api) -> None:
    await created(api, MAPS, config_map())
    bodies: list[tuple[Any, int]] = [
        ({"preconditions": {"uid": "x"}}, 409),
        ({"preconditions": {"resourceVersion": "1"}}, 409),
        ({"propagationPolicy": "Sideways"}, 422),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, 422),
        ({"dryRun": "All"}, 400),
        ({"kind": "ConfigMap"}, 400),
    ]
    codes = [(await api.client.request("DELETE", f"{MAPS}/a", json=body)).status_code for body, _ in bodies]

    assert codes == [code for _, code in bodies]
    assert (await api.client.get(f"{MAPS}/a")).status_code == 200


async def test_finalizers_hold_an_object_until_the_last_is_removed(api: Api) -> None:
    await created(api, REPOSITORIES, {**repository(), "metadata": {"name": "r", "finalizers": ["a.io/x"]}})
    held = await api.client.delete(f"{REPOSITORIES}/r")
    again = await api.client.delete(f"{REPOSITORIES}/r")
    create = await api.client.post(REPOSITORIES, json=repository())
    more = await api.client.patch(
        f"{REPOSITORIES}/r", json={"metadata": {"finalizers": ["a.io/x", "b.io/y"]}}, headers=MERGE
    )
    removed = await api.client.patch(f"{REPOSITORIES}/r", json={"metadata": {"finalizers": None}}, headers=MERGE)

    metadata = held.json()["metadata"]
    assert (metadata["generation"], metadata["deletionGracePeriodSeconds"]) == (2, 0)
    assert again.json() == held.json()
    assert create.json()["message"].startswith("object is being deleted: ")
    assert more.status_code == 422
    assert removed.status_code == 200
    assert (await api.client.get(f"{REPOSITORIES}/r")).status_code == 404


async def test_a_terminating_namespace_takes_nothing_new(api: Api) -> None:
    await created(api, "/api/v1/namespaces", {"metadata": {"name": "ending"}})
    await api.client.delete("/api/v1/namespaces/ending")
    answer = await api.client.post(MAPS.replace("default", "ending"), json=config_map())

    assert answer.status_code == 403
    assert answer.json()["details"]["causes"][0]["reason"] == "NamespaceTerminating"
