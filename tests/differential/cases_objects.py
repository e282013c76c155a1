"""Cases: create, get and update of ConfigMaps, and what every kind's metadata is held to."""

from collections.abc import Mapping
from typing import Any

from conversation import Case
from sends import CONFIG_MAPS, SECRETS, config_map, get, post, put, query

_A = f"{CONFIG_MAPS}/a"
_OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "00000000-0000-4000-8000-000000000001"}
_MADE = (post(CONFIG_MAPS, config_map(data={"k": "v"})),)
_LIVE = {"uid": "<0:metadata.uid>", "resourceVersion": "<0:metadata.resourceVersion>"}


def _create(title: str, /, *, query_: Mapping[str, str] | None = None, **metadata: Any) -> Case:
    body = config_map(**{"name": "a", **metadata})
    return Case(f"create {title}", post(query(CONFIG_MAPS, **query_) if query_ else CONFIG_MAPS, body))


CREATE = [
    Case("create", post(CONFIG_MAPS, config_map(data={"k": "v"}))),
    Case("create existing", post(CONFIG_MAPS, config_map()), _MADE),
    Case("create in a missing namespace", post("/api/v1/namespaces/none-such/configmaps", config_map())),
    Case("create with a name on the URL", post(_A, config_map())),
    Case("create across namespaces", post("/api/v1/configmaps", config_map(namespace="{ns}"))),
    Case("create without a body", post(CONFIG_MAPS, None)),
    Case("create an empty object", post(CONFIG_MAPS, {})),
    Case("create without kind and version", post(CONFIG_MAPS, {"metadata": {"name": "a"}})),
    Case("create another kind", post(CONFIG_MAPS, {**config_map(), "kind": "Secret"})),
    Case("create another version", post(CONFIG_MAPS, {**config_map(), "apiVersion": "v2"})),
    Case("create another group", post(CONFIG_MAPS, {**config_map(), "apiVersion": "example.com/v1"})),
    Case("create an unknown kind", post(CONFIG_MAPS, {**config_map(), "kind": "Nonsense"})),
    Case("create a list", post(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMapList", "items": []})),
    _create("in another namespace than the URL", namespace="elsewhere"),
    _create("with the namespace of the URL", namespace="{ns}"),
    _create("with an upper-case name", name="A_b"),
    _create("with a long name", name="a" * 254),
    _create("with a name ending in a dot", name="a."),
    _create("without a name", name=""),
    _create("with a generated name", name="", generateName="gen-"),
    _create("with a bad generated name", name="", generateName="Gen_"),
    _create("with name and generateName", generateName="gen-"),
    _create("with a resource version", resourceVersion="5"),
    _create(
        "with system fields",
        uid=_OWNER["uid"],
        creationTimestamp="2001-01-01T00:00:00Z",
        deletionTimestamp="2001-01-01T00:00:00Z",
        deletionGracePeriodSeconds=5,
        generation=7,
        selfLink="/x",
    ),
    _create("with a bad label key", labels={"a b": "x"}),
    _create("with a bad label value", labels={"a": "x y"}),
    _create("with two bad labels", labels={"-a": "x", "b": "y" * 64}),
    _create("with a label that is a number", labels={"a": 1}),
    _create("with a bad annotation key", annotations={"a/b/c": "x"}),
    _create("with annotations too large", annotations={"a": "x" * 262_144}),
    _create("with labels and annotations", labels={"a": "x", "b": ""}, annotations={"c": "anything goes: é"}),
    _create("with an owner", ownerReferences=[_OWNER]),
    _create("with an owner twice", ownerReferences=[_OWNER, _OWNER]),
    _create("with an incomplete owner", ownerReferences=[{"apiVersion": "v1", "kind": "", "name": "", "uid": ""}]),
    _create(
        "with two controllers",
        ownerReferences=[
            {**_OWNER, "controller": True},
            {**_OWNER, "uid": "00000000-0000-4000-8000-000000000002", "controller": True},
        ],
    ),
    _create("owned by an event", ownerReferences=[{**_OWNER, "kind": "Event"}]),
    _create("with a finalizer", finalizers=["example.com/wait"]),
    _create("with a bad finalizer", finalizers=["no good"]),
    _create("with an unqualified finalizer", finalizers=["wait"]),
    _create("with both deletion finalizers", finalizers=["orphan", "foregroundDeletion"]),
    _create("with managed fields reset", managedFields=[]),
    _create("with a bad managed fields entry", managedFields=[{"manager": "x", "operation": "Guess"}]),
    _create("dry", query_={"dryRun": "All"}),
    _create("dry in a bad way", query_={"dryRun": "Some"}),
    _create("named by a field manager", query_={"fieldManager": "hand"}),
    _create("by a field manager too long", query_={"fieldManager": "m" * 129}),
    _create("by an unprintable field manager", query_={"fieldManager": "a\tb"}),
    _create("with bad field validation", query_={"fieldValidation": "Loose"}),
    _create("with several bad options", query_={"fieldValidation": "Loose", "dryRun": "x", "fieldManager": "\n"}),
    _create("with a bad timeout", query_={"timeout": "soon"}),
    _create("with an unknown parameter", query_={"nonsense": "1"}),
    _create("prettily", query_={"pretty": "true"}),
    Case("create an existing one dry", post(query(CONFIG_MAPS, dryRun="All"), config_map()), _MADE),
]

GET = [
    Case("get", get(_A), _MADE),
    Case("get what is not there", get(_A)),
    Case("get from a namespace that is not there", get("/api/v1/namespaces/none-such/configmaps/a")),
    Case("get any revision", get(query(_A, resourceVersion="0"), until=200), _MADE),
    Case("get a bad revision", get(query(_A, resourceVersion="abc")), _MADE),
    Case("get a future revision", get(query(_A, resourceVersion="999999999")), _MADE),
    Case("get a bad name", get(f"{CONFIG_MAPS}/A%20b")),
    Case("get prettily", get(query(_A, pretty="true")), _MADE),
    Case(
        "get with a match rule",
        get(query(_A, resourceVersion="<0:metadata.resourceVersion>", resourceVersionMatch="Exact")),
        _MADE,
    ),
]

UPDATE = [
    Case("update", put(_A, config_map(data={"k": "w"}, **_LIVE)), _MADE),
    Case("update without a revision", put(_A, config_map(data={"k": "w"})), _MADE),
    Case("update changing nothing", put(_A, config_map(data={"k": "v"}, **_LIVE)), _MADE),
    Case("update a stale one", put(_A, config_map(data={"k": "x"}, **_LIVE)), (*_MADE, put(_A, config_map()))),
    Case("update with a bad revision", put(_A, config_map(resourceVersion="abc")), _MADE),
    Case("update another uid", put(_A, config_map(uid=_OWNER["uid"])), _MADE),
    Case("update another name", put(_A, config_map("b")), _MADE),
    Case("update without a name", put(_A, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}), _MADE),
    Case("update in another namespace", put(_A, config_map(namespace="elsewhere")), _MADE),
    Case("update what is not there", put(_A, config_map())),
    Case("update what is not there by revision", put(_A, config_map(resourceVersion="1"))),
    Case("update another kind", put(_A, {**config_map(), "kind": "Secret"}), _MADE),
    Case("update the collection", put(CONFIG_MAPS, config_map())),
    Case("update dry", put(query(_A, dryRun="All"), config_map(data={"k": "w"})), _MADE),
    Case("update another creation time", put(_A, config_map(creationTimestamp="2001-01-01T00:00:00Z")), _MADE),
    Case("update with a deletion time", put(_A, config_map(deletionTimestamp="2001-01-01T00:00:00Z")), _MADE),
    Case("update in a bad way", put(query(_A, fieldValidation="Loose"), config_map()), _MADE),
    Case("update labels badly", put(_A, config_map(labels={"a b": "c"})), _MADE),
    Case("update by another manager", put(query(_A, fieldManager="two"), config_map(data={"k": "w", "l": "x"})), _MADE),
    Case(
        "update an immutable one",
        put(_A, config_map(data={"k": "w"})),
        (post(CONFIG_MAPS, {**config_map(data={"k": "v"}), "immutable": True}),),
    ),
    Case(
        "make immutable one mutable",
        put(_A, {**config_map(data={"k": "v"}), "immutable": False}),
        (post(CONFIG_MAPS, {**config_map(data={"k": "v"}), "immutable": True}),),
    ),
]

CONTENT = [
    Case("data with a bad key", post(CONFIG_MAPS, config_map(data={"a/b": "x"}))),
    Case("data with a key of dots", post(CONFIG_MAPS, config_map(data={"..": "x"}))),
    Case("data that is a number", post(CONFIG_MAPS, config_map(data={"a": 1}))),
    Case("data that is a list", post(CONFIG_MAPS, {**config_map(), "data": ["x"]})),
    Case("data that is null", post(CONFIG_MAPS, {**config_map(), "data": None})),
    Case(
        "data and binary data with one key",
        post(CONFIG_MAPS, {**config_map(data={"a": "x"}), "binaryData": {"a": "eA=="}}),
    ),
    Case("binary data that is not base64", post(CONFIG_MAPS, {**config_map(), "binaryData": {"a": "***"}})),
    Case("binary data", post(CONFIG_MAPS, {**config_map(), "binaryData": {"a": "AAEC"}})),
    Case("data too large", post(CONFIG_MAPS, config_map(data={"a": "x" * 1_048_577}))),
    Case("body too large", post(CONFIG_MAPS, config_map(data={"a": "x" * 3_200_000}))),
    Case("immutable that is a string", post(CONFIG_MAPS, {**config_map(), "immutable": "yes"})),
    Case(
        "secret from strings",
        post(SECRETS, {"metadata": {"name": "s"}, "data": {"a": "eA=="}, "stringData": {"a": "y", "b": "z"}}),
    ),
]

CASES = [*CREATE, *GET, *UPDATE, *CONTENT]
