"""Custom resources over HTTP: established, served in several versions, scaled, selected, printed and removed."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from api_fixture import Api, api_server
from custom_kinds import (
    DEFINITIONS,
    WIDGETS,
    definition,
    establish,
    until_condition,
    until_gone,
    version,
    widget,
)

from apiserver.machinery.schema_document import document_node

Json = dict[str, Any]
MERGE = {"content-type": "application/merge-patch+json"}
TABLE = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with api_server(http=False) as server:
        yield server


@pytest.fixture
async def serving() -> AsyncIterator[Api]:
    async with api_server() as server:
        yield server


def conditions(crd: Json) -> dict[str, tuple[str, str]]:
    return {one["type"]: (one["status"], one["reason"]) for one in crd["status"]["conditions"]}


async def created(api: Api, path: str, body: Json) -> Json:
    answer = await api.client.post(path, json=body)
    assert answer.status_code == 201, answer.text
    result: Json = answer.json()
    return result


async def test_a_definition_is_established_at_once_and_its_names_are_filled_in(api: Api) -> None:
    started = time.monotonic()
    crd = await establish(api, definition(shortNames=["wd"], categories=["all"]))

    assert time.monotonic() - started < 20
    assert conditions(crd) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    assert crd["status"]["acceptedNames"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
        "shortNames": ["wd"],
        "categories": ["all"],
    }
    assert crd["status"]["storedVersions"] == ["v1"]
    assert crd["spec"]["conversion"] == {"strategy": "None"}
    assert crd["metadata"]["generation"] == 1


async def test_objects_of_a_custom_kind_have_all_verbs_defaults_and_generations(api: Api) -> None:
    await establish(api, definition(version(subresources={"status": {}})))

    made = await created(api, WIDGETS, {**widget(size=1), "status": {"replicas": 9}})
    spec_change = await api.client.patch(f"{WIDGETS}/one", json={"spec": {"size": 2}}, headers=MERGE)
    status_change = await api.client.patch(f"{WIDGETS}/one/status", json={"status": {"replicas": 3}}, headers=MERGE)
    no_revision = await api.client.put(f"{WIDGETS}/one", json=widget(size=3))
    strategic = await api.client.patch(
        f"{WIDGETS}/one", json={}, headers={"content-type": "application/strategic-merge-patch+json"}
    )
    listed = (await api.client.get(WIDGETS)).json()
    deleted = await api.client.delete(f"{WIDGETS}/one")

    assert made["spec"] == {"size": 1, "color": "red"}
    assert "status" not in made
    assert made["metadata"]["generation"] == 1
    assert spec_change.json()["metadata"]["generation"] == 2
    assert status_change.json()["metadata"]["generation"] == 2
    assert status_change.json()["status"] == {"replicas": 3}
    assert no_revision.status_code == 422
    assert strategic.status_code == 415
    assert (listed["kind"], [item["metadata"]["name"] for item in listed["items"]]) == ("WidgetList", ["one"])
    assert deleted.json()["status"] == "Success"


async def test_versions_share_their_objects_and_only_the_api_version_differs(serving: Api) -> None:
    await establish(serving, definition(version("v1"), version("v1beta1", storage=False)))
    beta = WIDGETS.replace("/v1/", "/v1beta1/")

    async with serving.client.stream("GET", f"{beta}?watch=true&timeoutSeconds=10") as answer:
        lines = answer.aiter_lines()
        made = await created(serving, beta, widget("two", "v1beta1", size=1))
        event = orjson.loads(await asyncio.wait_for(anext(lines), 60))
    stored = (await serving.client.get(f"{WIDGETS}/two")).json()
    table = (await serving.client.get(beta, headers=TABLE)).json()
    changed = await serving.client.patch(f"{beta}/two", json={"spec": {"size": 2}}, headers=MERGE)
    after = (await serving.client.get(f"{WIDGETS}/two")).json()

    assert made["apiVersion"] == "example.com/v1beta1"
    assert event["object"] == made
    assert stored == {**made, "apiVersion": "example.com/v1"}
    assert table["rows"][0]["cells"][0] == "two"
    assert changed.json()["apiVersion"] == "example.com/v1beta1"
    assert after["spec"]["size"] == 2
    assert after["apiVersion"] == "example.com/v1"


async def test_another_storage_version_is_noted_and_old_objects_are_read_in_it(api: Api) -> None:
    crd = await establish(api, definition(version("v1"), version("v2", storage=False)))
    await created(api, WIDGETS, widget(size=1))
    crd["spec"]["versions"][0]["storage"] = False
    crd["spec"]["versions"][1]["storage"] = True
    crd["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["extra"] = {
        "type": "string",
        "default": "new",
    }

    answer = await api.client.put(f"{DEFINITIONS}/{crd['metadata']['name']}", json=crd)
    assert answer.status_code == 200, answer.text
    path = f"{WIDGETS.replace('/v1/', '/v2/')}/one"
    for _ in range(100):
        shown = (await api.client.get(path)).json()
        if shown["spec"].get("extra"):
            break
        await asyncio.sleep(0.01)

    assert answer.json()["status"]["storedVersions"] == ["v1", "v2"]
    assert shown["apiVersion"] == "example.com/v2"
    assert shown["spec"] == {"size": 1, "color": "red", "extra": "new"}
    gone = {**answer.json()}
    gone["spec"]["versions"] = gone["spec"]["versions"][1:]
    refused = await api.client.put(f"{DEFINITIONS}/{crd['metadata']['name']}", json=gone)
    assert refused.status_code == 422
    assert "v1 was previously a storage version" in refused.json()["message"]


async def test_a_deprecated_version_warns_and_names_what_replaces_it(api: Api) -> None:
    old = version("v1alpha1", storage=False, deprecated=True)
    silent = version("v1alpha2", storage=False, deprecated=True, deprecationWarning="no more")
    await establish(api, definition(version("v1"), version("v1beta1", storage=False), old, silent))

    warned = await api.client.get(WIDGETS.replace("/v1/", "/v1alpha1/"))
    own = await api.client.get(WIDGETS.replace("/v1/", "/v1alpha2/"))
    current = await api.client.get(WIDGETS)

    assert warned.headers["warning"] == '299 - "example.com/v1alpha1 Widget is deprecated; use example.com/v1 Widget"'
    assert own.headers["warning"] == '299 - "no more"'
    assert "warning" not in current.headers


async def test_scale_reads_and_writes_the_replicas_of_an_object(api: Api) -> None:
    scale = {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    await establish(api, definition(version(subresources={"status": {}, "scale": scale})))
    made = await created(api, WIDGETS, widget(replicas=2))
    await api.client.patch(f"{WIDGETS}/one/status", json={"status": {"replicas": 1, "selector": "a=b"}}, headers=MERGE)

    read = (await api.client.get(f"{WIDGETS}/one/scale")).json()
    put = await api.client.put(f"{WIDGETS}/one/scale", json={**read, "spec": {"replicas": 4}})
    stale = await api.client.put(f"{WIDGETS}/one/scale", json={**read, "spec": {"replicas": 5}})
    patched = await api.client.patch(f"{WIDGETS}/one/scale", json={"spec": {"replicas": 6}}, headers=MERGE)
    negative = await api.client.patch(f"{WIDGETS}/one/scale", json={"spec": {"replicas": -1}}, headers=MERGE)
    after = (await api.client.get(f"{WIDGETS}/one")).json()

    assert (read["apiVersion"], read["kind"]) == ("autoscaling/v1", "Scale")
    assert read["metadata"]["uid"] == made["metadata"]["uid"]
    assert (read["spec"], read["status"]) == ({"replicas": 2}, {"replicas": 1, "selector": "a=b"})
    assert (put.status_code, put.json()["spec"]) == (200, {"replicas": 4})
    assert (stale.status_code, stale.json()["reason"]) == (409, "Conflict")
    assert patched.json()["spec"] == {"replicas": 6}
    assert (negative.status_code, negative.json()["details"]["causes"][0]["field"]) == (422, ".spec.replicas")
    assert after["spec"]["replicas"] == 6
    assert after["metadata"]["generation"] == 3


async def test_an_object_without_replicas_has_no_scale(api: Api) -> None:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    await establish(api, definition(version(subresources={"scale": scale})))
    await created(api, WIDGETS, widget())

    answer = await api.client.get(f"{WIDGETS}/one/scale")

    assert answer.status_code == 500
    assert '".spec.replicas" does not exist' in answer.json()["message"]


async def test_columns_are_evaluated_by_type_and_missing_values_are_empty(api: Api) -> None:
    columns = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Spec", "type": "string", "jsonPath": ".spec"},
        {"name": "Ready", "type": "boolean", "jsonPath": ".status.ready", "priority": 1},
        {"name": "Made", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    await establish(api, definition(version(additionalPrinterColumns=columns)))
    await created(api, WIDGETS, widget(size=7))

    table = (await api.client.get(WIDGETS, headers=TABLE)).json()

    assert [(one["name"], one["type"], one["priority"]) for one in table["columnDefinitions"]] == [
        ("Name", "string", 0),
        ("Size", "integer", 0),
        ("Spec", "string", 0),
        ("Ready", "boolean", 1),
        ("Made", "date", 0),
    ]
    name, size, spec, ready, made = table["rows"][0]["cells"]
    assert (name, size, orjson.loads(spec), ready) == ("one", 7, {"color": "red", "size": 7}, None)
    assert made.endswith("s")


async def test_changed_columns_are_shown_for_objects_that_were_printed_before(api: Api) -> None:
    crd = await establish(api, definition(version(additionalPrinterColumns=[column("Size", ".spec.size")])))
    await created(api, WIDGETS, widget(size=7))
    before = (await api.client.get(WIDGETS, headers=TABLE)).json()
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = [column("Color", ".spec.color")]

    await api.client.put(f"{DEFINITIONS}/widgets.example.com", json=crd)
    for _ in range(100):
        after = (await api.client.get(WIDGETS, headers=TABLE)).json()
        if after["columnDefinitions"] != before["columnDefinitions"]:
            break
        await asyncio.sleep(0.01)

    assert before["rows"][0]["cells"] == ["one", "7"]
    assert after["rows"][0]["cells"] == ["one", "red"]


def column(name: str, path: str) -> Json:
    return {"name": name, "type": "string", "jsonPath": path}


async def test_selectable_fields_narrow_lists_and_others_are_refused(api: Api) -> None:
    await establish(
        api, definition(version(selectableFields=[{"jsonPath": ".spec.color"}, {"jsonPath": ".spec.size"}]))
    )
    await created(api, WIDGETS, widget("a", color="blue", size=1))
    await created(api, WIDGETS, widget("b", size=2))

    blue = (await api.client.get(f"{WIDGETS}?fieldSelector=spec.color=blue")).json()
    large = (await api.client.get(f"{WIDGETS}?fieldSelector=spec.size=2")).json()
    unknown = await api.client.get(f"{WIDGETS}?fieldSelector=spec.replicas=2")

    assert [item["metadata"]["name"] for item in blue["items"]] == ["a"]
    assert [item["metadata"]["name"] for item in large["items"]] == ["b"]
    assert (unknown.status_code, unknown.json()["message"]) == (400, "field label not supported: spec.replicas")


async def test_unknown_fields_are_refused_warned_of_or_dropped(api: Api) -> None:
    await establish(api, definition())

    strict = await api.client.post(f"{WIDGETS}?fieldValidation=Strict", json=widget(nope=1))
    warned = await api.client.post(f"{WIDGETS}?fieldValidation=Warn", json=widget("b", nope=1))

    assert strict.status_code == 400
    assert 'unknown field "spec.nope"' in strict.json()["message"]
    assert warned.status_code == 201
    assert 'unknown field \\"spec.nope\\"' in warned.headers["warning"]
    assert "nope" not in warned.json()["spec"]


async def test_cluster_scoped_kinds_have_no_namespace(api: Api) -> None:
    await establish(api, definition(scope="Cluster"))

    made = await created(api, "/apis/example.com/v1/widgets", widget())
    namespaced = await api.client.get(WIDGETS)

    assert "namespace" not in made["metadata"]
    assert namespaced.status_code == 404


async def test_a_name_that_another_definition_has_is_accepted_when_that_one_goes(api: Api) -> None:
    await establish(api, definition(shortNames=["wd"]))
    rival = definition(kind="Widget", plural="wodgets", shortNames=["wd"])
    await api.client.post(DEFINITIONS, json=rival)

    refused = await until_condition(api, "wodgets.example.com", "NamesAccepted", "False")
    unserved = await api.client.get("/apis/example.com/v1/wodgets")
    await api.client.delete(f"{DEFINITIONS}/widgets.example.com")
    accepted = await until_condition(api, "wodgets.example.com", "Established", "True")

    assert conditions(refused) == {
        "NamesAccepted": ("False", "ListKindConflict"),
        "Established": ("False", "NotAccepted"),
    }
    assert unserved.status_code == 404
    assert accepted["status"]["acceptedNames"]["kind"] == "Widget"


async def test_deleting_a_definition_removes_its_objects_and_its_documents_and_it_can_come_back(api: Api) -> None:
    await establish(api, definition())
    await created(api, WIDGETS, widget("a"))
    await created(api, WIDGETS, widget("b"))

    deleted = await api.client.delete(f"{DEFINITIONS}/widgets.example.com")
    await until_gone(api, f"{DEFINITIONS}/widgets.example.com")
    await until_gone(api, "/apis/example.com/v1")
    missing = await api.client.get(WIDGETS)
    groups = (await api.client.get("/apis")).json()["groups"]
    documents = (await api.client.get("/openapi/v3")).json()["paths"]
    await establish(api, definition())
    again = (await api.client.get(WIDGETS)).json()

    assert deleted.json()["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert missing.status_code == 404
    assert "example.com" not in {group["name"] for group in groups}
    assert "apis/example.com/v1" not in documents
    assert again["items"] == []


async def test_instances_with_finalizers_hold_their_definition_and_nothing_new_is_created(api: Api) -> None:
    await establish(api, definition())
    held = widget("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await created(api, WIDGETS, held)

    await api.client.delete(f"{DEFINITIONS}/widgets.example.com")
    crd = await until_condition(api, "widgets.example.com", "Terminating", "True")
    for _ in range(6000):
        instance = (await api.client.get(f"{WIDGETS}/held")).json()
        if instance["metadata"].get("deletionTimestamp"):
            break
        await asyncio.sleep(0.01)
    refused = await api.client.post(WIDGETS, json=widget("late"))
    released = await api.client.patch(f"{WIDGETS}/held", json={"metadata": {"finalizers": None}}, headers=MERGE)
    started = time.monotonic()
    await until_gone(api, f"{DEFINITIONS}/widgets.example.com")

    assert conditions(crd)["Terminating"][0] == "True"
    assert instance["metadata"]["deletionTimestamp"]
    assert refused.status_code == 403
    why = "create not allowed while custom resource definition is terminating"
    assert refused.json()["message"] == f'widgets.example.com "late" is forbidden: {why}'
    assert released.status_code == 200
    assert time.monotonic() - started < 20


async def test_watches_end_when_their_definition_goes(serving: Api) -> None:
    await establish(serving, definition())

    async with serving.client.stream("GET", f"{WIDGETS}?watch=true&timeoutSeconds=20") as answer:
        await serving.client.delete(f"{DEFINITIONS}/widgets.example.com")
        rest = [line async for line in answer.aiter_lines()]

    assert rest == []


async def test_discovery_and_openapi_follow_a_definition(api: Api) -> None:
    before = (await api.client.get("/openapi/v3")).json()["paths"]
    crd = await establish(api, definition(shortNames=["wd"]))

    resources = (await api.client.get("/apis/example.com/v1")).json()["resources"]
    after = (await api.client.get("/openapi/v3")).json()["paths"]
    document = (await api.client.get(after["apis/example.com/v1"]["serverRelativeURL"])).json()
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "Something else."
    await api.client.put(f"{DEFINITIONS}/widgets.example.com", json=crd)
    for _ in range(100):
        changed = (await api.client.get("/openapi/v3")).json()["paths"]
        if changed != after:
            break
        await asyncio.sleep(0.01)

    assert [(one["name"], one["shortNames"]) for one in resources] == [("widgets", ["wd"])]
    assert {name: after[name] for name in before} == before
    assert "color" in document["components"]["schemas"]["com.example.v1.Widget"]["properties"]["spec"]["properties"]
    assert {name for name in changed if changed[name] != after[name]} == {"apis/example.com/v1"}
    stale = await api.client.get(after["apis/example.com/v1"]["serverRelativeURL"])
    assert (stale.status_code, stale.headers["location"]) == (301, changed["apis/example.com/v1"]["serverRelativeURL"])


async def test_objects_can_be_created_as_soon_as_the_definition_is_answered(api: Api) -> None:
    for number in range(20):
        group = f"g{number}.example.com"
        answer = await api.client.post(DEFINITIONS, json=definition(group=group))
        assert answer.status_code == 201, answer.text

        path = f"/apis/{group}/v1/namespaces/default/widgets"
        await created(api, path, {**widget(), "apiVersion": f"{group}/v1"})


async def test_a_change_is_in_force_when_it_is_answered(api: Api) -> None:
    crd = await establish(api, definition())
    properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    properties["added"] = {"type": "string"}

    await api.client.put(f"{DEFINITIONS}/widgets.example.com", json=crd)
    made = await created(api, f"{WIDGETS}?fieldValidation=Strict", widget(added="x"))

    assert made["spec"]["added"] == "x"


async def test_the_document_of_definitions_shows_schemas_of_schemas_whole(api: Api) -> None:
    document = (await api.client.get("/openapi/v3/apis/apiextensions.k8s.io/v1")).json()
    schemas = document["components"]["schemas"]
    package = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"

    versions = schemas[f"{package}.CustomResourceDefinition"]["properties"]["spec"]["properties"]["versions"]
    shown = versions["items"]["properties"]["schema"]["properties"]["openAPIV3Schema"]
    references = {part.partition('"')[0] for part in orjson.dumps(document).decode().split('"$ref":"')[1:]}
    assert shown["allOf"] == [{"$ref": f"#/components/schemas/{package}.JSONSchemaProps"}]
    assert {reference.rpartition("/")[2] for reference in references} <= set(schemas)
    assert set(schemas[f"{package}.JSONSchemaProps"]["properties"]) == set(document_node().properties)


async def test_each_version_selects_by_its_own_fields(api: Api) -> None:
    by_size = version("v1", selectableFields=[{"jsonPath": ".spec.size"}])
    by_color = version("v2", storage=False, selectableFields=[{"jsonPath": ".spec.color"}])
    await establish(api, definition(by_size, by_color))
    await created(api, WIDGETS, widget("a", color="blue", size=1))
    await created(api, WIDGETS, widget("b", size=2))
    other = WIDGETS.replace("/v1/", "/v2/")

    large = (await api.client.get(f"{WIDGETS}?fieldSelector=spec.size=2")).json()
    blue = (await api.client.get(f"{other}?fieldSelector=spec.color=blue")).json()
    refused = await api.client.get(f"{other}?fieldSelector=spec.size=2")

    assert [item["metadata"]["name"] for item in large["items"]] == ["b"]
    assert [item["metadata"]["name"] for item in blue["items"]] == ["a"]
    assert refused.status_code == 400
