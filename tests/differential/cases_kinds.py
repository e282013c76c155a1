"""Cases: what the core kinds other than ConfigMap are held to."""

from typing import Any

from conversation import Case
from sends import (
    ACCOUNTS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NEW_EVENTS,
    SECRETS,
    config_map,
    delete,
    get,
    lease,
    patch,
    post,
    put,
    query,
    secret,
)

_TOKEN = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
_ACCOUNT = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
_ROBOT = (post(ACCOUNTS, _ACCOUNT),)
_TIME = "2026-01-02T03:04:05.000000Z"


def _secret(name: str, **fields: Any) -> Case:
    return Case(f"secret {name}", post(SECRETS, secret(**fields)))


SECRET = [
    _secret("plain"),
    _secret("with data", data={"a": "eA=="}),
    _secret("with data that is not base64", data={"a": "x"}),
    _secret("with a bad key", data={"a b": "eA=="}),
    _secret("too large", stringData={"a": "x" * 1_048_577}),
    _secret("basic auth with nothing", type="kubernetes.io/basic-auth"),
    _secret("basic auth", type="kubernetes.io/basic-auth", stringData={"username": "u", "password": "p"}),
    _secret("ssh auth with nothing", type="kubernetes.io/ssh-auth"),
    _secret("tls with nothing", type="kubernetes.io/tls"),
    _secret("docker config with nothing", type="kubernetes.io/dockerconfigjson"),
    _secret(
        "docker config that is not JSON", type="kubernetes.io/dockerconfigjson", stringData={".dockerconfigjson": "x"}
    ),
    _secret("service account token without its account", type="kubernetes.io/service-account-token"),
    _secret("of a type of ours", type="example.com/own"),
    Case(
        "secret changing its type",
        put(f"{SECRETS}/s", secret(type="example.com/b")),
        (post(SECRETS, secret(type="example.com/a")),),
    ),
    Case(
        "secret immutable",
        put(f"{SECRETS}/s", secret(data={"a": "eQ=="})),
        (post(SECRETS, secret(data={"a": "eA=="}, immutable=True)),),
    ),
    Case(
        "secret by type",
        get(query(SECRETS, fieldSelector="type=example.com/a")),
        (post(SECRETS, secret(type="example.com/a")), post(SECRETS, secret("t"))),
    ),
    Case("secrets by data", get(query(SECRETS, fieldSelector="data.a=x"))),
]

NAMESPACE = [
    Case("namespace created", post(NAMESPACES, {"metadata": {"name": "{ns}-x"}})),
    Case(
        "namespace created with a phase",
        post(
            NAMESPACES,
            {
                "metadata": {"name": "{ns}-x"},
                "status": {"phase": "Terminating"},
                "spec": {"finalizers": ["example.com/f"]},
            },
        ),
    ),
    Case("namespace existing", post(NAMESPACES, {"metadata": {"name": "default"}})),
    Case("namespace with a dot", post(NAMESPACES, {"metadata": {"name": "a.b"}})),
    Case("namespace with a long name", post(NAMESPACES, {"metadata": {"name": "a" * 64}})),
    Case(
        "namespace with a bad finalizer",
        post(NAMESPACES, {"metadata": {"name": "{ns}-x"}, "spec": {"finalizers": ["bad"]}}),
    ),
    Case("namespace read", get(f"{NAMESPACES}/{{ns}}")),
    Case("namespace status read", get(f"{NAMESPACES}/{{ns}}/status")),
    Case("namespace finalize read", get(f"{NAMESPACES}/{{ns}}/finalize")),
    Case("namespace unknown subresource", get(f"{NAMESPACES}/{{ns}}/nonsense")),
    Case("namespace labelled", patch(f"{NAMESPACES}/{{ns}}", {"metadata": {"labels": {"team": "x"}}})),
    Case("namespace without its own label", patch(f"{NAMESPACES}/{{ns}}", {"metadata": {"labels": None}})),
    Case("namespace status patched", patch(f"{NAMESPACES}/{{ns}}/status", {"status": {"phase": "Terminating"}})),
    Case(
        "namespace finalizers changed by update",
        patch(f"{NAMESPACES}/{{ns}}", {"spec": {"finalizers": ["example.com/f"]}}),
    ),
    Case("namespace default deleted", delete(f"{NAMESPACES}/default")),
    Case("namespace kube-system deleted", delete(f"{NAMESPACES}/kube-system")),
    Case("namespace missing deleted", delete(f"{NAMESPACES}/none-such")),
    Case("namespaces deleted together", delete(NAMESPACES)),
    Case("namespace deleted", delete(f"{NAMESPACES}/{{ns}}")),
    Case("namespace gone", get(f"{NAMESPACES}/{{ns}}", until=404), (delete(f"{NAMESPACES}/{{ns}}"),)),
    Case(
        "create in a terminating namespace",
        post("/api/v1/namespaces/{ns}/configmaps", config_map("b")),
        (
            post("/api/v1/namespaces/{ns}/configmaps", config_map(finalizers=["example.com/f"])),
            delete(f"{NAMESPACES}/{{ns}}"),
        ),
    ),
    Case("namespaces by phase", get(query(NAMESPACES, fieldSelector="status.phase=Active,metadata.name={ns}"))),
    Case("namespaced kind under a namespace's subresource", get("/api/v1/namespaces/{ns}/status/a")),
]

ACCOUNT = [
    Case("account created", post(ACCOUNTS, _ACCOUNT)),
    Case(
        "account with everything",
        post(
            ACCOUNTS,
            {
                **_ACCOUNT,
                "secrets": [{"name": "x"}],
                "imagePullSecrets": [{"name": "y"}],
                "automountServiceAccountToken": False,
            },
        ),
    ),
    Case("account default", get(f"{ACCOUNTS}/default", until=200)),
    Case(
        "account secrets merged",
        patch(f"{ACCOUNTS}/robot", {"secrets": [{"name": "b"}]}, "application/strategic-merge-patch+json"),
        (post(ACCOUNTS, {**_ACCOUNT, "secrets": [{"name": "a"}]}),),
    ),
    Case("token", post(f"{ACCOUNTS}/robot/token", {**_TOKEN, "spec": {}}), _ROBOT),
    Case(
        "token for ten minutes",
        post(f"{ACCOUNTS}/robot/token", {**_TOKEN, "spec": {"audiences": ["x"], "expirationSeconds": 600}}),
        _ROBOT,
    ),
    Case("token too short", post(f"{ACCOUNTS}/robot/token", {**_TOKEN, "spec": {"expirationSeconds": 60}}), _ROBOT),
    Case(
        "token too long", post(f"{ACCOUNTS}/robot/token", {**_TOKEN, "spec": {"expirationSeconds": 2**32 + 1}}), _ROBOT
    ),
    Case("token without an account", post(f"{ACCOUNTS}/robot/token", {**_TOKEN, "spec": {}})),
    Case("token with an empty body", post(f"{ACCOUNTS}/robot/token", {}), _ROBOT),
    Case(
        "token named otherwise",
        post(f"{ACCOUNTS}/robot/token", {**_TOKEN, "metadata": {"name": "other"}, "spec": {}}),
        _ROBOT,
    ),
    Case(
        "token bound to a missing secret",
        post(
            f"{ACCOUNTS}/robot/token",
            {**_TOKEN, "spec": {"boundObjectRef": {"kind": "Secret", "apiVersion": "v1", "name": "x"}}},
        ),
        _ROBOT,
    ),
    Case(
        "token bound to a wrong kind",
        post(
            f"{ACCOUNTS}/robot/token",
            {**_TOKEN, "spec": {"boundObjectRef": {"kind": "ConfigMap", "apiVersion": "v1", "name": "x"}}},
        ),
        _ROBOT,
    ),
    Case("token read", get(f"{ACCOUNTS}/robot/token"), _ROBOT),
    Case("token dry", post(query(f"{ACCOUNTS}/robot/token", dryRun="All"), {**_TOKEN, "spec": {}}), _ROBOT),
]

LEASE = [
    Case(
        "lease created",
        post(
            LEASES,
            lease(holderIdentity="a", leaseDurationSeconds=15, acquireTime=_TIME, renewTime=_TIME, leaseTransitions=0),
        ),
    ),
    Case("lease of no duration", post(LEASES, lease(leaseDurationSeconds=0))),
    Case("lease of negative transitions", post(LEASES, lease(leaseTransitions=-1))),
    Case(
        "lease with a strategy and no holder",
        post(LEASES, lease(strategy="OldestEmulationVersion", preferredHolder="x")),
    ),
    Case("lease with a bad time", post(LEASES, lease(renewTime="yesterday"))),
    Case("lease with a time of seconds", post(LEASES, lease(renewTime="2026-01-02T03:04:05Z"))),
    Case("lease made by update", put(f"{LEASES}/l", lease(holderIdentity="a"))),
    Case(
        "lease updated without a revision",
        put(f"{LEASES}/l", lease(holderIdentity="b")),
        (post(LEASES, lease(holderIdentity="a")),),
    ),
    Case("lease deleted", delete(f"{LEASES}/l"), (post(LEASES, lease()),)),
]


def _event(**fields: object) -> dict[str, object]:
    involved = {"kind": "ConfigMap", "apiVersion": "v1", "name": "a", "namespace": "{ns}"}
    base = {
        "metadata": {"name": "e"},
        "involvedObject": involved,
        "reason": "Tried",
        "message": "It was tried.",
        "type": "Normal",
    }
    return {**base, **fields}


def _new_event(**fields: object) -> dict[str, object]:
    regarding = {"kind": "ConfigMap", "apiVersion": "v1", "name": "a", "namespace": "{ns}"}
    base = {
        "metadata": {"name": "e"},
        "eventTime": _TIME,
        "reportingController": "example.com/tester",
        "reportingInstance": "tester-1",
        "action": "Try",
        "reason": "Tried",
        "regarding": regarding,
        "note": "It was tried.",
        "type": "Normal",
    }
    return {**base, **fields}


EVENT = [
    Case(
        "event created",
        post(EVENTS, _event(count=1, firstTimestamp="2026-01-02T03:04:05Z", source={"component": "tester"})),
    ),
    Case(
        "event of another namespace",
        post(EVENTS, _event(involvedObject={"kind": "X", "name": "x", "namespace": "other"})),
    ),
    Case("event about a cluster object", post(EVENTS, _event(involvedObject={"kind": "Namespace", "name": "x"}))),
    Case("event of the new kind created", post(NEW_EVENTS, _new_event())),
    Case("event of the new kind without a time", post(NEW_EVENTS, _new_event(eventTime=None))),
    Case("event of the new kind without a controller", post(NEW_EVENTS, _new_event(reportingController="", action=""))),
    Case("event of the new kind with a bad type", post(NEW_EVENTS, _new_event(type="Odd"))),
    Case("event of the new kind with a bad controller", post(NEW_EVENTS, _new_event(reportingController="a b"))),
    Case("event with a long note", post(NEW_EVENTS, _new_event(note="x" * 1025))),
    Case(
        "event read as the new kind",
        get(f"{NEW_EVENTS}/e"),
        (post(EVENTS, _event(count=2, source={"component": "t", "host": "h"}, firstTimestamp="2026-01-02T03:04:05Z")),),
    ),
    Case("event of the new kind read as core", get(f"{EVENTS}/e"), (post(NEW_EVENTS, _new_event()),)),
    Case(
        "events by object",
        get(
            query(EVENTS, fieldSelector="involvedObject.name=a,involvedObject.kind=ConfigMap,reason=Tried,type=Normal")
        ),
        (post(EVENTS, _event()),),
    ),
    Case(
        "events of the new kind by object",
        get(query(NEW_EVENTS, fieldSelector="regarding.name=a")),
        (post(NEW_EVENTS, _new_event()),),
    ),
    Case(
        "event series patched",
        patch(
            f"{NEW_EVENTS}/e",
            {"series": {"count": 2, "lastObservedTime": _TIME}},
            "application/strategic-merge-patch+json",
        ),
        (post(NEW_EVENTS, _new_event()),),
    ),
    Case(
        "event of the new kind changed", patch(f"{NEW_EVENTS}/e", {"note": "Else."}), (post(NEW_EVENTS, _new_event()),)
    ),
]

CASES = [*SECRET, *NAMESPACE, *ACCOUNT, *LEASE, *EVENT]
