"""kubernetes-asyncio, unmodified: typed, custom and dynamic calls, watches, leader election, the generated kubeconfig."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kubectl import Kubectl
from kubernetes_asyncio import client, config, dynamic, watch
from kubernetes_asyncio.client.exceptions import ApiException
from kubernetes_asyncio.leaderelection.electionconfig import Config
from kubernetes_asyncio.leaderelection.leaderelection import LeaderElection
from kubernetes_asyncio.leaderelection.resourcelock.leaselock import LeaseLock

GROUP, VERSION, PLURAL = "clients.porch.test", "v1", "widgets"
WIDGET = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Widget", "metadata": {"name": "pump"}, "spec": {"size": 1}}
SECONDS = 60.0
"""For what takes one or two."""

pytestmark = pytest.mark.usefixtures("widgets")


@pytest.fixture
async def api_client(client_kubectl: Kubectl) -> AsyncIterator[Any]:
    """A client made of the generated kubeconfig."""
    async with await config.new_client_from_config(str(client_kubectl.kubeconfig)) as made:
        yield made


@pytest.fixture
def core(api_client: Any) -> Any:
    return client.CoreV1Api(api_client)


def config_map(name: str, **data: str) -> Any:
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data=data)


def reason(refused: "pytest.ExceptionInfo[ApiException]") -> tuple[int | None, str]:
    return refused.value.status, json.loads(refused.value.body or b"")["reason"]


async def test_typed_calls_create_read_change_and_delete(core: Any, client_kubectl: Kubectl) -> None:
    namespace = client_kubectl.namespace
    created = await core.create_namespaced_config_map(namespace, config_map("typed", color="red"))
    created.data["color"] = "blue"
    replaced = await core.replace_namespaced_config_map("typed", namespace, created)
    with pytest.raises(ApiException) as stale:
        await core.replace_namespaced_config_map("typed", namespace, created)
    merged = await core.patch_namespaced_config_map("typed", namespace, {"data": {"size": "small"}})
    operations = [{"op": "test", "path": "/metadata/resourceVersion", "value": "1"}]
    with pytest.raises(ApiException) as failed:
        await core.patch_namespaced_config_map("typed", namespace, operations)
    await core.delete_namespaced_config_map("typed", namespace)
    with pytest.raises(ApiException) as gone:
        await core.read_namespaced_config_map("typed", namespace)

    assert replaced.data == {"color": "blue"}
    assert reason(stale) == (409, "Conflict")
    assert merged.data == {"color": "blue", "size": "small"}
    assert reason(failed) == (422, "Invalid"), "kopf guards its patches so"
    assert reason(gone) == (404, "NotFound")


async def test_custom_objects_are_changed_and_their_status_apart(api_client: Any, client_kubectl: Kubectl) -> None:
    custom: Any = client.CustomObjectsApi(api_client)
    where = (GROUP, VERSION, client_kubectl.namespace, PLURAL)
    await custom.create_namespaced_custom_object(*where, WIDGET)
    merge = {"_content_type": "application/merge-patch+json"}  # it would send an object as a JSON patch
    changed = await custom.patch_namespaced_custom_object(*where, "pump", {"spec": {"size": 2}}, **merge)
    status = {"status": {"ready": True}}
    reported = await custom.patch_namespaced_custom_object_status(*where, "pump", status, **merge)
    listed = await custom.list_namespaced_custom_object(*where)
    await custom.delete_namespaced_custom_object(*where, "pump")

    assert (changed["spec"], changed["metadata"]["generation"]) == ({"size": 2}, 2)
    assert (reported["status"], reported["metadata"]["generation"]) == ({"ready": True}, 2)
    assert (listed["kind"], len(listed["items"])) == ("WidgetList", 1)
    assert (await custom.list_namespaced_custom_object(*where))["items"] == []


async def test_the_dynamic_client_discovers_a_kind_and_applies_it_on_the_server(
    api_client: Any, client_kubectl: Kubectl
) -> None:
    place = {"name": "pump", "namespace": client_kubectl.namespace}
    async with dynamic.DynamicClient(api_client) as everything:
        widgets = await everything.resources.get(api_version=f"{GROUP}/{VERSION}", kind="Widget")
        mine = await widgets.server_side_apply(WIDGET, **place, field_manager="mine")
        other = {**WIDGET, "spec": {"size": 9}}
        refused = await widgets.server_side_apply(other, **place, field_manager="other")
        taken = await widgets.server_side_apply(other, **place, field_manager="other", force_conflicts=True)
        await widgets.delete(**place)

    assert [entry.manager for entry in mine.metadata.managedFields] == ["mine"]
    assert (refused.kind, refused.code) == ("Status", 409), "this client raises no errors here"
    assert [cause.field for cause in refused.details.causes] == [".spec.size"]
    assert taken.spec.size == 9


async def test_a_watch_goes_on_from_the_revision_of_a_list_and_from_its_own(core: Any, client_kubectl: Kubectl) -> None:
    namespace = client_kubectl.namespace
    version = (await core.list_namespaced_config_map(namespace)).metadata.resource_version
    for name in ("first", "second", "third"):
        await core.create_namespaced_config_map(namespace, config_map(name))
    await core.delete_namespaced_config_map("first", namespace)

    async with asyncio.timeout(SECONDS):
        events = await follow(core, namespace, version, 2)
        later = await follow(core, namespace, events[-1]["object"].metadata.resource_version, 2)

    assert [(each["type"], each["object"].metadata.name) for each in [*events, *later]] == [
        ("ADDED", "first"),
        ("ADDED", "second"),
        ("ADDED", "third"),
        ("DELETED", "first"),
    ]


async def follow(core: Any, namespace: str, version: str, count: int) -> list[Any]:
    """Return the first events after a revision, Kubernetes' own ConfigMap left out."""
    events = []
    async with watch.Watch() as watching:
        stream = watching.stream(
            core.list_namespaced_config_map, namespace, resource_version=version, allow_watch_bookmarks=True
        )
        async for event in stream:
            if event["type"] != "BOOKMARK" and event["object"].metadata.name != "kube-root-ca.crt":
                events.append(event)
            if len(events) == count:
                break
    return events


async def test_a_lease_is_taken_over_from_a_leader_that_died(api_client: Any, client_kubectl: Kubectl) -> None:
    leading: asyncio.Queue[str] = asyncio.Queue()
    first = asyncio.create_task(campaign("first", api_client, client_kubectl.namespace, leading))
    async with asyncio.timeout(SECONDS):
        leaders = [await leading.get()]
        second = asyncio.create_task(campaign("second", api_client, client_kubectl.namespace, leading))
        first.cancel()
        leaders.append(await leading.get())
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)

    assert leaders == ["first", "second"]
    lease = await client.CoordinationV1Api(api_client).read_namespaced_lease("asyncio", client_kubectl.namespace)
    assert lease.spec.holder_identity == "second"
    assert lease.spec.lease_transitions is None, "this client does not count them"


async def campaign(name: str, api_client: Any, namespace: str, leading: "asyncio.Queue[str]") -> None:
    async def started() -> None:
        await leading.put(name)

    async def stopped() -> None:
        """Nothing to give up."""

    lock = LeaseLock("asyncio", namespace, name, api_client)
    times = {"lease_duration": 3, "renew_deadline": 2, "retry_period": 1}
    await LeaderElection(Config(lock, **times, onstarted_leading=started, onstopped_leading=stopped)).run()


async def test_a_bearer_token_is_a_service_account(api_client: Any, core: Any, client_kubectl: Kubectl) -> None:
    namespace = client_kubectl.namespace
    await core.create_namespaced_service_account(
        namespace, client.V1ServiceAccount(metadata=client.V1ObjectMeta(name="robot"))
    )
    request = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[]))
    granted = await core.create_namespaced_service_account_token("robot", namespace, request)
    settings = client.Configuration(host=api_client.configuration.host)
    settings.ssl_ca_cert = api_client.configuration.ssl_ca_cert
    settings.api_key = {"BearerToken": f"Bearer {granted.status.token}"}
    async with client.ApiClient(settings) as robot:
        review = await client.AuthenticationV1Api(robot).create_self_subject_review(client.V1SelfSubjectReview())
        with pytest.raises(ApiException) as refused:
            await client.CoreV1Api(robot).list_namespaced_secret(namespace)

    assert review.status.user_info.username == f"system:serviceaccount:{namespace}:robot"
    assert reason(refused) == (403, "Forbidden")
