"""Cases: watches, each of a few seconds at most."""

from typing import Any

from conversation import Case, Send
from sends import LEASES, PARTIAL, TABLE, WIDGETS, delete, get, lease, patch, post, query, widget

_ONE = (post(LEASES, lease("a", holderIdentity="x")),)
_PAGE = (*_ONE, get(LEASES))
_NOW = "<1:metadata.resourceVersion>"
_CHANGES = (
    post(LEASES, lease("b")),
    patch(f"{LEASES}/a", {"spec": {"holderIdentity": "y"}}),
    delete(f"{LEASES}/b"),
)
_STREAM: dict[str, Any] = {
    "sendInitialEvents": "true",
    "resourceVersionMatch": "NotOlderThan",
    "allowWatchBookmarks": "true",
}


def _watch(
    name: str, *during: Send, setup: tuple[Send, ...] = _PAGE, seconds: int = 1, accept: str = "", **parameters: Any
) -> Case:
    path = query(LEASES, watch="1", timeoutSeconds=seconds, **parameters)
    headers = {"Accept": accept} if accept else {}
    return Case(f"watch {name}", Send("GET", path, headers=headers, during=during), setup)


CASES = [
    _watch("from now", *_CHANGES, resourceVersion=_NOW),
    _watch("from the beginning"),
    _watch("from any revision", resourceVersion="0"),
    _watch(
        "from before",
        resourceVersion="<0:metadata.resourceVersion>",
        setup=(*_ONE, patch(f"{LEASES}/a", {"spec": {"holderIdentity": "z"}})),
    ),
    _watch("from revision one", resourceVersion="1"),
    _watch("from a bad revision", resourceVersion="abc"),
    _watch("nothing", setup=()),
    _watch("as a stream", **_STREAM),
    _watch("as a stream from any revision", resourceVersion="0", **_STREAM),
    _watch("as a stream without bookmarks", sendInitialEvents="true", resourceVersionMatch="NotOlderThan"),
    _watch("as a stream without a match rule", sendInitialEvents="true", allowWatchBookmarks="true"),
    _watch(
        "as a stream with a wrong match rule",
        sendInitialEvents="true",
        resourceVersionMatch="Exact",
        resourceVersion="0",
    ),
    _watch("as no stream", sendInitialEvents="false", resourceVersionMatch="NotOlderThan", resourceVersion=_NOW),
    _watch("with a match rule alone", resourceVersionMatch="NotOlderThan", resourceVersion="0"),
    _watch("with a bad initial events flag", sendInitialEvents="perhaps"),
    _watch("with bookmarks", seconds=3, resourceVersion=_NOW, allowWatchBookmarks="true"),
    _watch("one by name", *_CHANGES, resourceVersion=_NOW, fieldSelector="metadata.name=a"),
    _watch(
        "by label",
        patch(f"{LEASES}/a", {"metadata": {"labels": {"app": "x"}}}),
        patch(f"{LEASES}/a", {"metadata": {"labels": {"app": "y"}}}),
        patch(f"{LEASES}/a", {"metadata": {"labels": {"app": "x"}}}),
        delete(f"{LEASES}/a"),
        resourceVersion=_NOW,
        labelSelector="app=x",
    ),
    _watch("by a bad label", labelSelector="app in x"),
    _watch("by a bad field", fieldSelector="spec.x=y"),
    _watch(
        "with a finalizer",
        patch(f"{LEASES}/a", {"metadata": {"finalizers": ["example.com/f"]}}),
        delete(f"{LEASES}/a"),
        patch(f"{LEASES}/a", {"metadata": {"finalizers": None}}),
        resourceVersion=_NOW,
    ),
    _watch("as a table", *_CHANGES[:2], accept=TABLE, resourceVersion=_NOW),
    _watch("as a table from the beginning", accept=TABLE),
    _watch("as partial metadata", *_CHANGES, accept=PARTIAL, resourceVersion=_NOW),
    _watch("as a table stream", accept=TABLE, **_STREAM),
    _watch("as partial metadata stream", accept=PARTIAL, **_STREAM),
    _watch("as YAML", accept="application/yaml", resourceVersion=_NOW),
    _watch("as JSON with a stream parameter", accept="application/json;stream=watch", resourceVersion=_NOW),
    _watch("with a limit", limit="1"),
    Case("watch with a token", get(query(LEASES, watch="1", timeoutSeconds=1, **{"continue": "nonsense"})), _PAGE),
    Case(
        "watch by the old path",
        get(query("/apis/coordination.k8s.io/v1/watch/namespaces/{ns}/leases", timeoutSeconds=1)),
        _ONE,
    ),
    Case(
        "watch one by the old path",
        get(query("/apis/coordination.k8s.io/v1/watch/namespaces/{ns}/leases/a", timeoutSeconds=1)),
        _ONE,
    ),
    Case("watch an item", get(query(f"{LEASES}/a", watch="1", timeoutSeconds=1)), _ONE),
    Case(
        "watch custom resources",
        Send(
            "GET",
            query(WIDGETS, watch="1", timeoutSeconds=1, resourceVersion="<1:metadata.resourceVersion>"),
            during=(post(WIDGETS, widget("b", {"size": 2})), delete(f"{WIDGETS}/b")),
        ),
        (post(WIDGETS, widget("a", {"size": 1})), get(WIDGETS)),
    ),
    Case(
        "watch custom resources as a table",
        get(query(WIDGETS, watch="1", timeoutSeconds=1), accept=TABLE),
        (post(WIDGETS, widget("a", {"size": 1})),),
    ),
    Case(
        "watch custom resources of the other version",
        get(query("/apis/diff.example.com/v1beta1/namespaces/{ns}/widgets", watch="1", timeoutSeconds=1)),
        (post(WIDGETS, widget("a", {"size": 1})),),
    ),
]
