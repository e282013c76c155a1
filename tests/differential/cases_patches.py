"""Cases: merge, JSON and strategic merge patches; server-side apply is in ``cases_apply.py``."""

from typing import Any

from conversation import Case, Send
from sends import (
    ACCOUNTS,
    CONFIG_MAPS,
    JSON_PATCH,
    LEASES,
    MERGE,
    NAMESPACES,
    STRATEGIC,
    WIDGETS,
    config_map,
    lease,
    patch,
    post,
    query,
    widget,
)

_A = f"{CONFIG_MAPS}/a"
_MADE = (post(CONFIG_MAPS, config_map(data={"k": "v", "l": "w"}, labels={"x": "y"})),)
_WIDGET = (post(WIDGETS, widget(spec={"size": 1, "ports": [{"name": "a", "port": 1}], "tags": ["one"]})),)
_W = f"{WIDGETS}/w"
_OWNERS: list[dict[str, Any]] = [
    {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": f"<{number}:metadata.uid>"}
    for number, name in enumerate("op")
]
_OWNED = (
    post(CONFIG_MAPS, config_map("o")),
    post(CONFIG_MAPS, config_map("p")),
    post(CONFIG_MAPS, config_map(ownerReferences=_OWNERS, finalizers=["example.com/a", "example.com/b"])),
)


def _merge(name: str, body: object, **parameters: str) -> Case:
    return Case(f"merge {name}", patch(query(_A, **parameters) if parameters else _A, body, MERGE), _MADE)  # type: ignore[arg-type]


def _json(name: str, body: object, path: str = _A, setup: tuple[Send, ...] = _MADE) -> Case:
    return Case(f"json patch {name}", patch(path, body, JSON_PATCH), setup)  # type: ignore[arg-type]


def _strategic(name: str, body: object, path: str = _A, setup: tuple[Send, ...] = _MADE) -> Case:
    return Case(f"strategic {name}", patch(path, body, STRATEGIC), setup)  # type: ignore[arg-type]


MERGES = [
    _merge("a value", {"data": {"k": "w"}}),
    _merge("a removal", {"data": {"k": None}}),
    _merge("nothing", {}),
    _merge("the same", {"data": {"k": "v"}}),
    _merge("an unknown field", {"nonsense": 1}),
    _merge("an unknown field strictly", {"nonsense": 1}, fieldValidation="Strict"),
    _merge("an unknown field silently", {"nonsense": 1}, fieldValidation="Ignore"),
    _merge("a wrong type", {"data": {"k": 1}}),
    _merge("a list", ["x"]),
    _merge("a word", '"x"'),
    _merge("what is not JSON", "{nonsense"),
    _merge("an empty body", ""),
    _merge("another name", {"metadata": {"name": "b"}}),
    _merge("another namespace", {"metadata": {"namespace": "b"}}),
    _merge("another kind", {"kind": "Secret"}),
    _merge("another uid", {"metadata": {"uid": "00000000-0000-4000-8000-000000000001"}}),
    _merge("a wrong revision", {"metadata": {"resourceVersion": "1"}}),
    _merge("the right revision", {"metadata": {"resourceVersion": "<0:metadata.resourceVersion>"}, "data": {"k": "w"}}),
    _merge("a bad label", {"metadata": {"labels": {"a b": "c"}}}),
    _merge("no labels", {"metadata": {"labels": None}}),
    _merge("system fields", {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z", "generation": 9}}),
    _merge("a duplicate key", '{"data":{"k":"x","k":"y"}}'),
    _merge("a duplicate key strictly", '{"data":{"k":"x","k":"y"}}', fieldValidation="Strict"),
    _merge("forced", {"data": {"k": "w"}}, force="true"),
    _merge("dry", {"data": {"k": "w"}}, dryRun="All"),
    _merge("with a bad dry run", {"data": {"k": "w"}}, dryRun="x"),
    Case("merge into what is not there", patch(_A, {"data": {"k": "w"}})),
    Case("merge by YAML", patch(_A, "data:\n  k: w\n"), _MADE),
    Case("merge into a lease", patch(f"{LEASES}/l", {"spec": {"leaseDurationSeconds": 0}}), (post(LEASES, lease()),)),
    Case("merge lists of a custom resource", patch(_W, {"spec": {"ports": [{"name": "b", "port": 2}]}}), _WIDGET),
    Case("merge invalid into a custom resource", patch(_W, {"spec": {"size": -1}}), _WIDGET),
    Case(
        "merge unknown into a custom resource",
        patch(query(_W, fieldValidation="Strict"), {"spec": {"nonsense": 1}}),
        _WIDGET,
    ),
]

JSON_PATCHES = [
    _json("adding", [{"op": "add", "path": "/data/new", "value": "x"}]),
    _json("replacing", [{"op": "replace", "path": "/data/k", "value": "x"}]),
    _json("removing", [{"op": "remove", "path": "/data/k"}]),
    _json("moving", [{"op": "move", "from": "/data/k", "path": "/data/m"}]),
    _json("copying", [{"op": "copy", "from": "/data/k", "path": "/data/m"}]),
    _json("testing", [{"op": "test", "path": "/data/k", "value": "v"}, {"op": "remove", "path": "/data/k"}]),
    _json("failing a test", [{"op": "test", "path": "/data/k", "value": "x"}]),
    _json("removing what is not there", [{"op": "remove", "path": "/data/none"}]),
    _json("replacing what is not there", [{"op": "replace", "path": "/data/none", "value": "x"}]),
    _json("adding under nothing", [{"op": "add", "path": "/none/x", "value": "x"}]),
    _json("with an unknown operation", [{"op": "guess", "path": "/data/k"}]),
    _json("without a path", [{"op": "remove"}]),
    _json("without a value", [{"op": "add", "path": "/data/x"}]),
    _json("that is an object", {"op": "add"}),
    _json("that is not JSON", "nonsense"),
    _json("of nothing", []),
    _json("of the whole", [{"op": "replace", "path": "", "value": {}}]),
    _json("with an unknown member", [{"op": "add", "path": "/data/x", "value": "y", "also": 1}]),
    _json("to a wrong type", [{"op": "add", "path": "/data/x", "value": 1}]),
    _json("too long", [{"op": "test", "path": "/data/k", "value": "v"}] * 10_001),
    _json("at the end of a list", [{"op": "add", "path": "/spec/tags/-", "value": "two"}], _W, _WIDGET),
    _json("outside of a list", [{"op": "add", "path": "/spec/tags/7", "value": "two"}], _W, _WIDGET),
    _json("of a label with a slash", [{"op": "add", "path": "/metadata/labels/a~1b", "value": "c"}]),
]

STRATEGICS = [
    _strategic("merge", {"data": {"k": "w"}}),
    _strategic("removal", {"data": {"k": None}}),
    _strategic("replacement", {"data": {"$patch": "replace", "z": "1"}}),
    _strategic("deletion", {"data": {"$patch": "delete"}}),
    _strategic("unknown directive", {"data": {"$patch": "guess"}}),
    _strategic("unknown field", {"nonsense": 1}),
    _strategic("wrong type", {"data": "x"}),
    _strategic("list", ["x"]),
    _strategic("not JSON", "{nonsense"),
    _strategic("owners by uid", {"metadata": {"ownerReferences": [{**_OWNERS[0], "name": "renamed"}]}}, _A, _OWNED),
    _strategic(
        "owner removed", {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": _OWNERS[0]["uid"]}]}}, _A, _OWNED
    ),
    _strategic("owners replaced", {"metadata": {"ownerReferences": [{"$patch": "replace"}, _OWNERS[1]]}}, _A, _OWNED),
    _strategic("owner without a key", {"metadata": {"ownerReferences": [{"name": "x"}]}}, _A, _OWNED),
    _strategic("finalizers merged", {"metadata": {"finalizers": ["example.com/c"]}}, _A, _OWNED),
    _strategic(
        "finalizer removed", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}, _A, _OWNED
    ),
    _strategic(
        "finalizers ordered",
        {
            "metadata": {
                "$setElementOrder/finalizers": ["example.com/b", "example.com/a"],
                "finalizers": ["example.com/a"],
            }
        },
        _A,
        _OWNED,
    ),
    _strategic("kept keys", {"data": {"$retainKeys": ["k"], "k": "x"}}),
    _strategic(
        "secrets of an account",
        {"secrets": [{"name": "b"}]},
        f"{ACCOUNTS}/r",
        (post(ACCOUNTS, {"metadata": {"name": "r"}, "secrets": [{"name": "a"}]}),),
    ),
    _strategic("namespace", {"metadata": {"annotations": {"a": "b"}}}, f"{NAMESPACES}/{{ns}}", ()),
    _strategic("custom resource", {"spec": {"size": 2}}, _W, _WIDGET),
    _strategic("lease", {"spec": {"holderIdentity": "x"}}, f"{LEASES}/l", (post(LEASES, lease()),)),
]

KINDS = [
    Case("patch as plain JSON", patch(_A, {"data": {}}, "application/json"), _MADE),
    Case("patch as YAML", patch(_A, "data: {}", "application/yaml"), _MADE),
    Case("patch of an unknown kind", patch(_A, "x", "text/plain"), _MADE),
    Case(
        "patch with a parameter in its kind",
        patch(_A, {"data": {"k": "w"}}, "application/merge-patch+json; charset=utf-8"),
        _MADE,
    ),
    Case("patch of the collection", patch(CONFIG_MAPS, {}), _MADE),
    Case("patch as CBOR", patch(_A, b"\xa0", "application/apply-patch+cbor"), _MADE),
    Case("patch by a manager", patch(query(_A, fieldManager="two"), {"data": {"k": "w"}}), _MADE),
]

CASES = [*MERGES, *JSON_PATCHES, *STRATEGICS, *KINDS]
