"""Deletes over HTTP: options, preconditions, finalizers, collections, and what is answered."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from api_fixture import Api, api_server

Json = dict[str, Any]

MAPS = "/api/v1/namespaces/default/configmaps"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
HOLD = ["example.com/hold"]


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with api_server(http=False) as server:
        yield server


async def made(api: Api, name: str, path: str = MAPS, **metadata: Any) -> Json:
    answer = await api.client.post(path, json={"metadata": {"name": name, **metadata}})
    assert answer.status_code == 201, answer.text
    result: Json = answer.json()
    return result


async def delete(api: Api, path: str, body: Json | None = None) -> tuple[int, Json]:
    answer = await api.client.request("DELETE", path, json=body)
    return answer.status_code, answer.json()


async def test_a_deleted_object_is_answered_with_a_status_that_names_it(api: Api) -> None:
    created = await made(api, "a")

    assert await delete(api, f"{MAPS}/a") == (
        200,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {"name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"]},
        },
    )


async def test_a_deleted_service_account_is_answered_with_itself(api: Api) -> None:
    created = await made(api, "robot", ACCOUNTS)
    code, answer = await delete(api, f"{ACCOUNTS}/robot")

    assert (code, answer["kind"], answer["metadata"]["uid"]) == (200, "ServiceAccount", created["metadata"]["uid"])


@pytest.mark.parametrize(
    ("options", "finalizers"),
    [
        pytest.param({"propagationPolicy": "Foreground"}, ["foregroundDeletion"], id="foreground"),
        pytest.param({"propagationPolicy": "Orphan"}, ["orphan"], id="orphan"),
        pytest.param({"orphanDependents": True}, ["orphan"], id="orphan-dependents"),
    ],
)
async def test_a_policy_that_needs_the_collector_holds_the_object(
    api: Api, options: Json, finalizers: list[str]
) -> None:
    await made(api, "a")
    code, answer = await delete(api, f"{MAPS}/a", options)

    assert code == 200
    assert answer["metadata"]["finalizers"] == finalizers
    assert answer["metadata"]["deletionGracePeriodSeconds"] == 0


async def test_policies_may_stand_in_the_query(api: Api) -> None:
    await made(api, "a")
    answer = await api.client.delete(f"{MAPS}/a?propagationPolicy=Orphan&gracePeriodSeconds=5")

    assert answer.json()["metadata"]["finalizers"] == ["orphan"]


async def test_the_collectors_finalizers_apply_without_a_policy_and_give_way_to_one(api: Api) -> None:
    for name in ("kept", "overruled", "exchanged"):
        await made(api, name, finalizers=["foregroundDeletion"])

    _, kept = await delete(api, f"{MAPS}/kept")
    _, overruled = await delete(api, f"{MAPS}/overruled", {"propagationPolicy": "Background"})
    _, exchanged = await delete(api, f"{MAPS}/exchanged", {"propagationPolicy": "Orphan"})

    assert kept["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert overruled["status"] == "Success"
    assert exchanged["metadata"]["finalizers"] == ["orphan"]


async def test_an_object_that_is_held_answers_202_to_those_who_ask_not_to_orphan(api: Api) -> None:
    await made(api, "a", finalizers=HOLD)
    code, answer = await delete(api, f"{MAPS}/a", {"orphanDependents": False})
    again, unchanged = await delete(api, f"{MAPS}/a")

    assert (code, again) == (202, 200)
    assert answer == unchanged


@pytest.mark.parametrize(
    ("options", "field", "message"),
    [
        pytest.param(
            {"propagationPolicy": "Sideways"},
            "propagationPolicy",
            'Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"',
            id="unknown-policy",
        ),
        pytest.param(
            {"propagationPolicy": "Orphan", "orphanDependents": True},
            "propagationPolicy",
            'Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set',
            id="both",
        ),
        pytest.param(
            {"dryRun": ["Some"]}, "dryRun", 'Unsupported value: ["Some"]: supported values: "All"', id="dry-run"
        ),
    ],
)
async def test_bad_options_are_invalid_and_delete_nothing(api: Api, options: Json, field: str, message: str) -> None:
    await made(api, "a")
    for path in (f"{MAPS}/a", MAPS):
        code, answer = await delete(api, path, options)

        assert (code, answer["reason"]) == (422, "Invalid")
        assert answer["message"] == f'DeleteOptions.meta.k8s.io "" is invalid: {field}: {message}'
    assert (await api.client.get(f"{MAPS}/a")).status_code == 200


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"gracePeriodSeconds": "soon"}, id="grace-period"),
        pytest.param({"orphanDependents": "yes"}, id="orphan"),
        pytest.param({"preconditions": ["uid"]}, id="preconditions"),
        pytest.param({"preconditions": {"uid": 7}}, id="uid"),
        pytest.param({"dryRun": "All"}, id="dry-run-text"),
        pytest.param({"dryRun": [True]}, id="dry-run-flag"),
        pytest.param({"kind": "ConfigMap"}, id="kind"),
    ],
)
async def test_bodies_that_are_no_delete_options_are_bad_requests(api: Api, options: Json) -> None:
    await made(api, "a")
    code, answer = await delete(api, f"{MAPS}/a", options)

    assert (code, answer["reason"]) == (400, "BadRequest")
    assert (await api.client.get(f"{MAPS}/a")).status_code == 200


async def test_preconditions_that_do_not_hold_are_conflicts_that_name_both_values(api: Api) -> None:
    metadata = (await made(api, "a"))["metadata"]
    uid, revision = metadata["uid"], metadata["resourceVersion"]

    code, other_uid = await delete(api, f"{MAPS}/a", {"preconditions": {"uid": "x"}})
    _, other_revision = await delete(api, f"{MAPS}/a", {"preconditions": {"resourceVersion": "1"}})
    _, gone = await delete(api, f"{MAPS}/a", {"preconditions": {"uid": uid, "resourceVersion": revision}})

    assert code == 409
    assert other_uid["message"] == (
        f'Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (x) does not match the UID in record '
        f"({uid}). The object might have been deleted and then recreated"
    )
    assert other_revision["message"] == (
        'Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not match the '
        f"ResourceVersion in record ({revision}). The object might have been modified"
    )
    assert gone["status"] == "Success"


async def test_a_dry_run_deletes_nothing_and_marks_nothing(api: Api) -> None:
    await made(api, "a")
    before = await made(api, "held", finalizers=HOLD)

    _, status = await delete(api, f"{MAPS}/a", {"dryRun": ["All"]})
    _, held = await delete(api, f"{MAPS}/held?dryRun=All")
    _, collection = await delete(api, f"{MAPS}?dryRun=All")

    assert status["status"] == "Success"
    assert held["metadata"]["deletionTimestamp"]
    assert len(collection["items"]) == 2
    assert (await api.client.get(f"{MAPS}/held")).json() == before
    assert (await api.client.get(f"{MAPS}/a")).status_code == 200


async def test_no_finalizer_is_added_once_deletion_has_begun(api: Api) -> None:
    await made(api, "a", finalizers=HOLD)
    _, held = await delete(api, f"{MAPS}/a")
    held["metadata"]["finalizers"] = [*HOLD, "example.com/more"]

    refused = await api.client.put(f"{MAPS}/a", json=held)

    assert refused.status_code == 422
    assert refused.json()["message"] == (
        'ConfigMap "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being '
        'deleted, found new finalizers []string{"example.com/more"}'
    )


async def test_a_collection_goes_by_its_selectors_and_answers_with_what_it_was(api: Api) -> None:
    for name, color in (("a", "red"), ("b", "blue"), ("c", "red")):
        await made(api, name, labels={"color": color})
    await made(api, "d", labels={"color": "red"}, finalizers=HOLD)

    code, answer = await delete(api, f"{MAPS}?labelSelector=color%3Dred")

    assert (code, answer["kind"]) == (200, "ConfigMapList")
    assert [item["metadata"]["name"] for item in answer["items"]] == ["a", "c", "d"]
    assert "deletionTimestamp" not in answer["items"][2]["metadata"], "items are shown as they were listed"
    left = (await api.client.get(MAPS)).json()["items"]
    assert [item["metadata"]["name"] for item in left] == ["b", "d"]
    assert left[1]["metadata"]["deletionTimestamp"]


async def test_a_limit_bounds_how_many_of_a_collection_go(api: Api) -> None:
    for name in ("a", "b", "c"):
        await made(api, name)

    _, answer = await delete(api, f"{MAPS}?limit=2")

    assert len(answer["items"]) == 2
    assert answer["metadata"]["remainingItemCount"] == 1
    assert [item["metadata"]["name"] for item in (await api.client.get(MAPS)).json()["items"]] == ["c"]


async def test_an_empty_collection_is_deleted_too(api: Api) -> None:
    code, answer = await delete(api, MAPS)

    assert (code, answer["items"]) == (200, [])


@pytest.mark.parametrize("path", ["/api/v1/configmaps", "/api/v1/namespaces"])
async def test_there_is_no_delete_across_namespaces_nor_of_all_namespaces(api: Api, path: str) -> None:
    code, answer = await delete(api, path)

    assert (code, answer["reason"]) == (405, "MethodNotAllowed")


async def test_discovery_offers_what_can_be_deleted_at_once(api: Api) -> None:
    resources = {one["name"]: one["verbs"] for one in (await api.client.get("/api/v1")).json()["resources"]}

    assert "deletecollection" in resources["configmaps"]
    assert "deletecollection" not in resources["namespaces"]


async def test_finalizers_of_a_namespace_are_put_and_not_patched(api: Api) -> None:
    path = "/api/v1/namespaces/default/finalize"
    resources = {one["name"]: one["verbs"] for one in (await api.client.get("/api/v1")).json()["resources"]}
    patched = await api.client.patch(path, content=b"{}", headers={"content-type": "application/merge-patch+json"})
    bad = await api.client.put(path, json={"metadata": {"name": "default"}, "spec": {"finalizers": ["plain"]}})

    assert resources["namespaces/finalize"] == ["update"]
    assert patched.status_code == 405
    assert bad.status_code == 422
    assert bad.json()["message"] == (
        'Namespace "default" is invalid: spec.finalizers[0]: Invalid value: "plain": name is neither a standard finalizer '
        "name nor is it fully qualified"
    )


async def test_an_object_that_refuses_ends_the_deletion_of_its_collection(api: Api) -> None:
    await made(api, "a")
    code, answer = await delete(api, MAPS, {"preconditions": {"uid": "x"}})

    assert (code, answer["reason"]) == (409, "Conflict")
