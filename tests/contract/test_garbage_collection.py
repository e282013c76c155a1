"""The garbage collector over HTTP: what happens to dependents, as the deletion of their owner asked for."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from api_fixture import Api, api_server
from custom_kinds import DEFINITIONS, WIDGETS, definition, establish

from apiserver.machinery.rest import DeleteOptions, Scope, Served
from apiserver.resources.config import repository_definition
from apiserver.resources.objects import StoredObjects
from krm.meta.errors import Forbidden, NotFound, ResourceName
from storage.interfaces import Entry

Json = dict[str, Any]

MAPS = "/api/v1/namespaces/default/configmaps"
EVENTS = "/api/v1/namespaces/default/events"
NAMESPACES = "/api/v1/namespaces"


@pytest.fixture
async def api() -> AsyncIterator[Api]:
    async with api_server(http=False, controllers=True) as server:
        yield server


def owned_by(*owners: Json, block: bool = True) -> list[Json]:
    return [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": block,
        }
        for owner in owners
    ]


async def made(api: Api, name: str, path: str = MAPS, **metadata: Any) -> Json:
    answer = await api.client.post(path, json={"metadata": {"name": name, **metadata}})
    assert answer.status_code == 201, answer.text
    result: Json = answer.json()
    return result


async def deleted(api: Api, name: str, policy: str, path: str = MAPS) -> Json:
    answer = await api.client.request("DELETE", f"{path}/{name}", json={"propagationPolicy": policy})
    assert answer.status_code == 200, answer.text
    result: Json = answer.json()
    return result


async def names(api: Api, path: str = MAPS) -> list[str]:
    return [item["metadata"]["name"] for item in (await api.client.get(path)).json()["items"]]


async def until_names(api: Api, expected: list[str], path: str = MAPS) -> None:
    deadline = time.monotonic() + 60
    while (found := await names(api, path)) != expected:
        assert time.monotonic() < deadline, f"{found} instead of {expected}"
        await asyncio.sleep(0.01)


async def until_settled() -> None:
    """Give the collector the time that it would need for something wrong."""
    await asyncio.sleep(0.3)


async def test_in_the_background_dependents_go_after_their_owner(api: Api) -> None:
    owner = await made(api, "owner")
    child = await made(api, "child", ownerReferences=owned_by(owner))
    await made(api, "grandchild", ownerReferences=owned_by(child))
    await made(api, "stranger")

    status = await deleted(api, "owner", "Background")

    assert status["kind"] == "Status"
    await until_names(api, ["stranger"])


async def test_without_a_policy_dependents_go_in_the_background(api: Api) -> None:
    owner = await made(api, "owner")
    await made(api, "child", ownerReferences=owned_by(owner))

    assert (await api.client.delete(f"{MAPS}/owner")).status_code == 200

    await until_names(api, [])


async def test_in_the_foreground_the_owner_waits_for_dependents_that_block_it(api: Api) -> None:
    owner = await made(api, "owner")
    await made(api, "child", ownerReferences=owned_by(owner), finalizers=["example.com/hold"])

    answer = await deleted(api, "owner", "Foreground")
    await until_settled()
    waiting = (await api.client.get(f"{MAPS}/owner")).json()
    child = (await api.client.get(f"{MAPS}/child")).json()
    child["metadata"]["finalizers"] = []
    await api.client.put(f"{MAPS}/child", json=child)

    assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert waiting["metadata"]["deletionTimestamp"]
    assert child["metadata"]["deletionTimestamp"], "the dependent is being deleted before its owner"
    await until_names(api, [])


async def test_in_the_foreground_dependents_that_do_not_block_are_not_waited_for(api: Api) -> None:
    owner = await made(api, "owner")
    await made(api, "child", ownerReferences=owned_by(owner, block=False), finalizers=["example.com/hold"])

    await deleted(api, "owner", "Foreground")

    await until_names(api, ["child"])
    assert (await api.client.get(f"{MAPS}/child")).json()["metadata"]["deletionTimestamp"]


async def test_in_the_foreground_whole_trees_go_from_their_leaves(api: Api) -> None:
    root = await made(api, "root")
    branch = await made(api, "branch", ownerReferences=owned_by(root))
    await made(api, "leaf", ownerReferences=owned_by(branch), finalizers=["example.com/hold"])

    await deleted(api, "root", "Foreground")
    await until_settled()
    held = await names(api)
    leaf = (await api.client.get(f"{MAPS}/leaf")).json()
    leaf["metadata"]["finalizers"] = []
    await api.client.put(f"{MAPS}/leaf", json=leaf)

    assert held == ["branch", "leaf", "root"]
    await until_names(api, [])


async def test_in_the_foreground_a_circle_of_owners_is_broken(api: Api) -> None:
    first = await made(api, "first")
    second = await made(api, "second", ownerReferences=owned_by(first))
    first["metadata"]["ownerReferences"] = owned_by(second)
    await api.client.put(f"{MAPS}/first", json=first)

    await deleted(api, "first", "Foreground")

    await until_names(api, [])


async def test_what_comes_to_depend_on_an_owner_that_is_going_goes_too(api: Api) -> None:
    owner = await made(api, "owner", finalizers=["example.com/hold"])
    await made(api, "child", ownerReferences=owned_by(owner), finalizers=["example.com/hold"])
    await deleted(api, "owner", "Foreground")

    await made(api, "late", ownerReferences=owned_by(owner))

    await until_names(api, ["child", "owner"])


async def test_orphans_stay_and_no_longer_name_their_owner(api: Api) -> None:
    owner = await made(api, "owner")
    other = await made(api, "other")
    for number in range(20):
        await made(api, f"child-{number:02}", ownerReferences=owned_by(owner, other))

    answer = await deleted(api, "owner", "Orphan")

    assert answer["metadata"]["finalizers"] == ["orphan"]
    await until_names(api, [*(f"child-{number:02}" for number in range(20)), "other"])
    child = (await api.client.get(f"{MAPS}/child-07")).json()
    assert [one["name"] for one in child["metadata"]["ownerReferences"]] == ["other"]


async def test_a_dependent_stays_while_one_owner_is_there_and_forgets_the_one_that_is_not(api: Api) -> None:
    owner, other = await made(api, "owner"), await made(api, "other")
    await made(api, "child", ownerReferences=owned_by(owner, other))

    await deleted(api, "owner", "Background")

    await until_settled()
    child = (await api.client.get(f"{MAPS}/child")).json()
    assert [one["name"] for one in child["metadata"]["ownerReferences"]] == ["other"]
    await deleted(api, "other", "Background")
    await until_names(api, [])


async def test_owners_that_never_were_and_other_objects_of_their_name_do_not_keep_a_dependent(api: Api) -> None:
    owner = await made(api, "owner")
    nobody = {**owner, "metadata": {"name": "nobody", "uid": "00000000-0000-0000-0000-000000000001"}}
    another = {**owner, "metadata": {"name": "owner", "uid": "00000000-0000-0000-0000-000000000002"}}

    await made(api, "of-nobody", ownerReferences=owned_by(nobody))
    await made(api, "of-another", ownerReferences=owned_by(another))

    await until_names(api, ["owner"])


async def test_owners_of_a_kind_that_is_not_served_keep_their_dependents(api: Api) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "uid": "00000000-0000-0000-0000-000000000003"}}

    await made(api, "child", ownerReferences=owned_by(pod))

    await until_settled()
    assert await names(api) == ["child"]


async def test_dependents_of_a_kind_that_comes_later_are_looked_at_then(api: Api) -> None:
    gadget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "uid": "no-such-uid"}}
    await made(api, "child", ownerReferences=owned_by(gadget))
    await until_settled()
    assert await names(api) == ["child"]

    assert (await api.client.post(DEFINITIONS, json=definition())).status_code == 201

    await until_names(api, [])


async def test_custom_objects_own_and_are_owned(api: Api) -> None:
    await establish(api, definition())
    widget = await made(api, "w", WIDGETS)
    child = await made(api, "child", ownerReferences=owned_by(widget))
    await made(api, "part", WIDGETS, ownerReferences=owned_by(child))

    await deleted(api, "w", "Foreground", WIDGETS)

    await until_names(api, [])
    await until_names(api, [], WIDGETS)


async def test_an_owner_in_another_namespace_is_none_and_an_event_says_so(api: Api) -> None:
    await made(api, "team", NAMESPACES)
    owner = await made(api, "owner", f"{NAMESPACES}/team/configmaps")

    await made(api, "child", ownerReferences=owned_by(owner))

    await until_names(api, [])
    (event,) = (await api.client.get(EVENTS)).json()["items"]
    assert (event["type"], event["reason"]) == ("Warning", "OwnerRefInvalidNamespace")
    uid = owner["metadata"]["uid"]
    assert event["message"] == (
        f'ownerRef [v1/ConfigMap, namespace: default, name: owner, uid: {uid}] does not exist in namespace "default"'
    )
    assert event["involvedObject"]["name"] == "child"
    assert event["source"] == {"component": "garbage-collector-controller"}


async def test_objects_of_the_cluster_own_objects_of_namespaces_but_not_the_other_way_round(api: Api) -> None:
    team = await made(api, "team", NAMESPACES)
    await made(api, "child", ownerReferences=owned_by(team))
    owner = await made(api, "owner")
    await made(api, "wrong", NAMESPACES, ownerReferences=owned_by(owner))
    await until_settled()

    assert await names(api) == ["child", "owner"]
    await api.client.delete(f"{NAMESPACES}/team")
    await api.client.delete(f"{MAPS}/owner")
    await until_names(api, [])
    await until_settled()
    assert "wrong" in await names(api, NAMESPACES), "a reference that cannot be right says nothing"
    reasons = {event["reason"] for event in (await api.client.get(EVENTS)).json()["items"]}
    assert reasons == {"OwnerRefInvalidNamespace"}


class Stubborn(StoredObjects):
    """Refuses every delete, as published package revisions do."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.refused_at: list[float] = []

    async def delete(self, scope: Scope, name: str, options: DeleteOptions) -> tuple[Entry, bool]:
        self.refused_at.append(time.monotonic())
        raise Forbidden.of(self.definition.resource, name, "it is published")


async def told(api: Api, *, times: int) -> Json:
    """Wait until the only Event counts so many; return it."""
    async with asyncio.timeout(60):
        while True:
            found: list[Json] = (await api.client.get(EVENTS)).json()["items"]
            if found and found[0]["count"] >= times:
                (event,) = found
                return event
            await asyncio.sleep(0.02)


class Lost(StoredObjects):
    """Misses something else than the object, as package revisions do whose repository is gone, and then no longer."""

    missing = 1

    async def delete(self, scope: Scope, name: str, options: DeleteOptions) -> tuple[Entry, bool]:
        if self.missing:
            self.missing -= 1
            raise NotFound.of(ResourceName("repositories"), "gone")
        return await super().delete(scope, name, options)


async def test_an_object_that_is_there_is_not_given_up_because_something_else_is_missing(api: Api) -> None:
    kind = replace(repository_definition(), group="test.example", kind="Rock", plural="rocks", validate=None)
    rocks = Lost(kind, api.store)
    rocks.register()
    api.kinds.add([Served(rocks)])
    path = "/apis/test.example/v1alpha1/namespaces/default/rocks"
    owner = await made(api, "owner")
    await made(api, "rock", path, ownerReferences=owned_by(owner))

    await deleted(api, "owner", "Background")

    await until_names(api, [], path)


async def test_a_refused_delete_is_repeated_more_and_more_rarely_and_told_in_an_event(api: Api) -> None:
    kind = replace(repository_definition(), group="test.example", kind="Rock", plural="rocks", validate=None)
    rocks = Stubborn(kind, api.store)
    rocks.register()
    api.kinds.add([Served(rocks)])
    owner = await made(api, "owner")
    await made(api, "rock", "/apis/test.example/v1alpha1/namespaces/default/rocks", ownerReferences=owned_by(owner))

    await deleted(api, "owner", "Background")
    event = await told(api, times=4)
    pauses = [later - earlier for earlier, later in pairwise(rocks.refused_at)]

    assert all(pause > least for pause, least in zip(pauses, (0.09, 0.18, 0.36), strict=False)), pauses
    assert event["reason"] == "FailedDelete"
    assert event["message"] == (
        'it cannot be garbage collected: rocks.test.example "rock" is forbidden: it is published'
    )


async def test_hundreds_of_dependents_go_while_others_are_served(api: Api) -> None:
    owner = await made(api, "owner")
    for number in range(300):
        await made(api, f"child-{number}", ownerReferences=owned_by(owner))
    await deleted(api, "owner", "Foreground")

    left = []
    deadline = time.monotonic() + 60
    while found := await names(api):
        assert time.monotonic() < deadline
        left.append(len(found))
        await asyncio.sleep(0)  # the client calls the application directly and may not wait for anything

    assert len(set(left)) > 10, "they go a few at a time, and others have their turns between"
