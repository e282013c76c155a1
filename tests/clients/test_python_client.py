"""The official Python client, unmodified: typed, custom and dynamic calls, its informer, leader election and tokens."""

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from eventually import eventually
from kubectl import Kubectl
from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.informer import SharedInformer
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

GROUP, VERSION, PLURAL = "clients.porch.test", "v1", "widgets"
WIDGET = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Widget", "metadata": {"name": "pump"}, "spec": {"size": 1}}

pytestmark = pytest.mark.usefixtures("widgets")


@pytest.fixture
def api_client(client_kubectl: Kubectl) -> Iterator[Any]:
    """A client made of the generated kubeconfig."""
    with config.new_client_from_config(str(client_kubectl.kubeconfig)) as made:
        yield made


@pytest.fixture
def core(api_client: Any) -> Any:
    return client.CoreV1Api(api_client)


def config_map(name: str, **data: str) -> Any:
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"made": "here"}), data=data)


def reason(refused: "pytest.ExceptionInfo[ApiException]") -> tuple[int, str]:
    return refused.value.status, json.loads(refused.value.body)["reason"]


def test_typed_calls_create_read_change_and_delete(core: Any, client_kubectl: Kubectl) -> None:
    namespace = client_kubectl.namespace
    created = core.create_namespaced_config_map(namespace, config_map("typed", color="red"))
    created.data["color"] = "blue"
    replaced = core.replace_namespaced_config_map("typed", namespace, created)
    with pytest.raises(ApiException) as stale:
        core.replace_namespaced_config_map("typed", namespace, created)
    merged = core.patch_namespaced_config_map("typed", namespace, {"data": {"size": "small"}})
    changed = core.patch_namespaced_config_map(
        "typed", namespace, [{"op": "replace", "path": "/data/color", "value": "green"}]
    )
    core.delete_namespaced_config_map("typed", namespace)
    with pytest.raises(ApiException) as gone:
        core.read_namespaced_config_map("typed", namespace)

    assert replaced.data == {"color": "blue"}
    assert reason(stale) == (409, "Conflict")
    assert merged.data == {"color": "blue", "size": "small"}
    assert changed.data == {"color": "green", "size": "small"}
    assert changed.metadata.creation_timestamp.tzinfo is not None
    assert reason(gone) == (404, "NotFound")


def test_secrets_are_base64_and_lists_are_read_in_pages_and_deleted_together(
    core: Any, client_kubectl: Kubectl
) -> None:
    namespace = client_kubectl.namespace
    metadata = client.V1ObjectMeta(name="login")
    secret = core.create_namespaced_secret(namespace, client.V1Secret(metadata=metadata, string_data={"user": "me"}))
    for index in range(5):
        core.create_namespaced_config_map(namespace, config_map(f"page-{index}"))
    first = core.list_namespaced_config_map(namespace, limit=3, label_selector="made=here")
    rest = core.list_namespaced_config_map(
        namespace, limit=3, label_selector="made=here", _continue=first.metadata._continue
    )
    core.delete_collection_namespaced_config_map(namespace, label_selector="made=here")

    assert (secret.data, secret.type) == ({"user": "bWU="}, "Opaque")
    assert [item.metadata.name for item in first.items + rest.items] == [f"page-{index}" for index in range(5)]
    assert rest.metadata.resource_version == first.metadata.resource_version
    assert core.list_namespaced_config_map(namespace, label_selector="made=here").items == []


def test_custom_objects_are_changed_and_their_status_apart(api_client: Any, client_kubectl: Kubectl) -> None:
    custom = client.CustomObjectsApi(api_client)
    where = (GROUP, VERSION, client_kubectl.namespace, PLURAL)
    custom.create_namespaced_custom_object(*where, WIDGET)
    changed = custom.patch_namespaced_custom_object(*where, "pump", {"spec": {"size": 2}, "status": {"ready": True}})
    changed["status"] = {"ready": True}
    reported = custom.replace_namespaced_custom_object_status(*where, "pump", changed)
    with pytest.raises(ApiException) as refused:
        custom.patch_namespaced_custom_object(*where, "pump", {"spec": {"size": -1}})
    listed = custom.list_namespaced_custom_object(*where)
    custom.delete_namespaced_custom_object(*where, "pump")

    assert "status" not in changed or changed["status"] == {"ready": True}
    assert (reported["spec"], reported["status"]) == ({"size": 2}, {"ready": True})
    assert reported["metadata"]["generation"] == 2
    assert reason(refused) == (422, "Invalid")
    assert [item["metadata"]["name"] for item in listed["items"]] == ["pump"]
    assert custom.list_namespaced_custom_object(*where)["items"] == []


def test_the_dynamic_client_discovers_a_kind_and_applies_it_on_the_server(
    api_client: Any, client_kubectl: Kubectl
) -> None:
    widgets = dynamic.DynamicClient(api_client).resources.get(api_version=f"{GROUP}/{VERSION}", kind="Widget")
    place = {"name": "pump", "namespace": client_kubectl.namespace}
    mine = widgets.server_side_apply(WIDGET, **place, field_manager="mine")
    other = {**WIDGET, "spec": {"size": 9}}
    with pytest.raises(dynamic.exceptions.ConflictError) as refused:
        widgets.server_side_apply(other, **place, field_manager="other")
    taken = widgets.server_side_apply(other, **place, field_manager="other", force_conflicts=True)
    merged = widgets.patch(
        body={"spec": {"color": "red"}}, **place, content_type="application/merge-patch+json", field_manager="third"
    )

    assert widgets.namespaced is True
    assert [entry.manager for entry in mine.metadata.managedFields] == ["mine"]
    assert 'conflict with \\"mine\\": .spec.size' in str(refused.value.body)
    assert taken.spec.size == 9
    assert {entry.manager: entry.operation for entry in merged.metadata.managedFields}["third"] == "Update"


def test_a_watch_goes_on_from_the_revision_of_a_list_and_from_its_own(core: Any, client_kubectl: Kubectl) -> None:
    namespace = client_kubectl.namespace
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, config_map("first"))
    core.create_namespaced_config_map(namespace, config_map("second"))
    core.delete_namespaced_config_map("first", namespace)

    events = follow(core, namespace, version, 2)
    later = follow(core, namespace, events[-1]["object"].metadata.resource_version, 1)

    assert [(each["type"], each["object"].metadata.name) for each in [*events, *later]] == [
        ("ADDED", "first"),
        ("ADDED", "second"),
        ("DELETED", "first"),
    ]


def follow(core: Any, namespace: str, version: str, count: int) -> list[Any]:
    """Return the first events after a revision, Kubernetes' own ConfigMap left out."""
    watching, events = watch.Watch(), []
    for event in watching.stream(
        core.list_namespaced_config_map, namespace, resource_version=version, timeout_seconds=60
    ):
        if event["object"].metadata.name != "kube-root-ca.crt":
            events.append(event)
        if len(events) == count:
            watching.stop()
    return events


def test_the_informer_keeps_a_cache(core: Any, client_kubectl: Kubectl) -> None:
    namespace = client_kubectl.namespace
    core.create_namespaced_config_map(namespace, config_map("early"))
    informer = SharedInformer(core.list_namespaced_config_map, namespace=namespace, label_selector="made=here")
    deleted: list[str] = []
    informer.add_event_handler("DELETED", lambda gone: deleted.append(gone.metadata.name))
    informer.start()
    try:
        eventually(lambda: _cached(informer, {f"{namespace}/early"}))
        core.create_namespaced_config_map(namespace, config_map("late"))
        eventually(lambda: _cached(informer, {f"{namespace}/early", f"{namespace}/late"}))
        core.delete_namespaced_config_map("early", namespace)
        eventually(lambda: _cached(informer, {f"{namespace}/late"}))
    finally:
        informer.stop()

    assert deleted == ["early"]


def _cached(informer: Any, keys: set[str]) -> None:
    assert set(informer.cache.list_keys()) == keys


def test_a_lease_is_taken_over_from_a_leader_that_gave_up(client_kubectl: Kubectl) -> None:
    config.load_kube_config(str(client_kubectl.kubeconfig))  # its lock knows only the default client
    led: list[str] = []
    first = candidate("first", client_kubectl.namespace, led)
    first.start()
    eventually(lambda: _led(led, ["first"]))
    second = candidate("second", client_kubectl.namespace, led)
    second.start()
    eventually(lambda: _led(led, ["first", "second"]), timeout=60)
    for thread in (first, second):
        thread.join(timeout=60)
        assert not thread.is_alive()

    lease = client.CoordinationV1Api().read_namespaced_lease("python", client_kubectl.namespace)
    assert lease.spec.holder_identity == "second"
    assert lease.spec.renew_time.tzinfo is not None


def _led(led: list[str], wanted: list[str]) -> None:
    assert led == wanted


def candidate(name: str, namespace: str, led: list[str]) -> threading.Thread:
    """A candidate that leads for a second and then fails, so that its lease runs out."""

    def lead() -> None:
        led.append(name)
        time.sleep(1)
        raise RuntimeError("enough")

    settings = electionconfig.Config(
        LeaseLock("python", namespace, name),
        lease_duration=3,
        renew_deadline=2,
        retry_period=1,
        onstarted_leading=lead,
        onstopped_leading=lambda: None,
    )
    return threading.Thread(target=leaderelection.LeaderElection(settings).run, daemon=True)


def test_a_bearer_token_is_a_service_account(api_client: Any, core: Any, client_kubectl: Kubectl) -> None:
    namespace = client_kubectl.namespace
    core.create_namespaced_service_account(namespace, client.V1ServiceAccount(metadata={"name": "robot"}))
    request = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=3600))
    token = core.create_namespaced_service_account_token("robot", namespace, request).status.token
    settings = client.Configuration()
    settings.host = api_client.configuration.host
    settings.ssl_ca_cert = api_client.configuration.ssl_ca_cert
    settings.api_key = {"authorization": token}
    settings.api_key_prefix = {"authorization": "Bearer"}
    with client.ApiClient(settings) as robot:
        self_review = client.AuthenticationV1Api(robot).create_self_subject_review(client.V1SelfSubjectReview())
        with pytest.raises(ApiException) as refused:
            client.CoreV1Api(robot).list_namespaced_secret(namespace)

    assert self_review.status.user_info.username == f"system:serviceaccount:{namespace}:robot"
    assert reason(refused) == (403, "Forbidden")
