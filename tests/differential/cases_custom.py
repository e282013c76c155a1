"""Cases: custom resources; their definitions are in ``cases_definitions.py``."""

from typing import Any

from conversation import Case
from sends import (
    JSON_PATCH,
    OLD_WIDGETS,
    PARTIAL,
    TABLE,
    WIDGETS,
    delete,
    get,
    patch,
    post,
    put,
    query,
    widget,
)

_W = f"{WIDGETS}/w"
_MADE = (post(WIDGETS, widget(spec={"size": 1, "tags": ["one"]})),)
_LIVE = {"resourceVersion": "<0:metadata.resourceVersion>"}
_FULL = {
    "size": 3,
    "ratio": 1.5,
    "color": "green",
    "code": "abc",
    "when": "2026-01-02T03:04:05Z",
    "address": "10.0.0.1",
    "nothing": None,
    "either": "80%",
    "free": {"a": {"b": [1]}},
    "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}},
    "ports": [{"name": "a", "port": 1}],
    "one": {"a": "x"},
}


def _create(name: str, **spec: Any) -> Case:
    return Case(f"custom {name}", post(WIDGETS, widget(spec=spec)))


CREATE = [
    _create("with everything", **_FULL),
    _create("with nothing"),
    Case("custom without a spec", post(WIDGETS, widget())),
    Case("custom of another kind", post(WIDGETS, {**widget(), "kind": "Gadget"})),
    Case("custom of another version", post(WIDGETS, widget(version="v1beta1"))),
    Case("custom without a kind", post(WIDGETS, {"metadata": {"name": "w"}})),
    Case("custom without a version", post(WIDGETS, {"kind": "Widget", "metadata": {"name": "w"}})),
    Case("custom with a bad name", post(WIDGETS, widget("A_b"))),
    Case("custom with an unqualified finalizer", post(WIDGETS, widget(finalizers=["wait"]))),
    Case("custom with a status", post(WIDGETS, {**widget(spec={"size": 1}), "status": {"replicas": 3}})),
    Case("custom with a spec that is a list", post(WIDGETS, widget(spec=[]))),  # type: ignore[arg-type]
    Case("custom with metadata of a wrong type", post(WIDGETS, {**widget(), "metadata": []})),
    Case("custom with labels of a wrong type", post(WIDGETS, widget(labels={"a": 1}))),
    Case("custom existing", post(WIDGETS, widget()), _MADE),
    Case("custom dry", post(query(WIDGETS, dryRun="All"), widget(spec={"size": 1}))),
    _create("too small", size=-1),
    _create("too large", size=101),
    _create("of a wrong type", size="1"),
    _create("of a float where an integer is wanted", size=1.5),
    _create("of a whole float", size=2.0),
    _create("with a bad ratio", ratio=0.3),
    _create("with a ratio of zero", ratio=0),
    _create("with a bad enum", color="blue"),
    _create("with a bad pattern", code="A1"),
    _create("too short", code="a"),
    _create("too long", code="abcde"),
    _create("with a bad date", when="yesterday"),
    _create("with a bad address", address="10.0.0"),
    _create("with null where it may be", nothing=None),
    _create("with null where it is defaulted", color=None),
    _create("with null where it may not be", size=None),
    _create("with an int or string that is a list", either=[]),
    _create("with an embedded object without a kind", template={"metadata": {"name": "x"}}),
    _create("with too many labels", labels={"a": "1", "b": "2", "c": "3"}),
    _create("with a label that is a number", labels={"a": 1}),
    _create("with a duplicate in a set", tags=["a", "a"]),
    _create("with a duplicate key in a list", ports=[{"name": "a"}, {"name": "a"}]),
    _create("with an item without its key", ports=[{"port": 1}]),
    _create("with too few items", numbers=[]),
    _create("with too many items", numbers=[1, 2, 3]),
    _create("with items of a wrong type", numbers=["1"]),
    _create("with neither of one", one={}),
    _create("with both of one", one={"a": "x", "b": "y"}),
    _create("breaking a rule", low=2, high=1),
    _create("with several mistakes", size=-1, color="blue", ports=[{"name": "a", "port": 0}]),
]

CHANGE = [
    Case("custom with a generated name", post(WIDGETS, widget("", {"size": 1}, generateName="gen-"))),
    Case("custom many by pages", get(query(WIDGETS, limit="1")), (*_MADE, post(WIDGETS, widget("x")))),
    Case(
        "custom by label",
        get(query(WIDGETS, labelSelector="app=x")),
        (post(WIDGETS, widget("x", labels={"app": "x"})), *_MADE),
    ),
    Case(
        "custom across namespaces",
        get(query("/apis/diff.example.com/v1/widgets", fieldSelector="metadata.namespace={ns}")),
        _MADE,
    ),
    Case("custom deleted together", delete(WIDGETS), _MADE),
    Case(
        "custom of a namespace that is not there",
        post("/apis/diff.example.com/v1/namespaces/none-such/widgets", widget()),
    ),
    Case("custom unchanged but broken before", patch(_W, {"metadata": {"labels": {"a": "b"}}}), _MADE),
    Case("custom with another namespace", post(WIDGETS, widget(namespace="elsewhere"))),
    Case(
        "custom with its owner",
        post(
            WIDGETS,
            widget(
                "x",
                ownerReferences=[
                    {"apiVersion": "diff.example.com/v1", "kind": "Widget", "name": "w", "uid": "<0:metadata.uid>"}
                ],
            ),
        ),
        _MADE,
    ),
    Case("custom as YAML", get(_W, accept="application/yaml"), _MADE),
    Case(
        "custom updated in the other version",
        put(f"{OLD_WIDGETS}/w", widget(spec={"size": 7}, version="v1beta1", **_LIVE)),
        _MADE,
    ),
    Case("custom patched in the other version", patch(f"{OLD_WIDGETS}/w", {"spec": {"size": 7}}), _MADE),
    Case("custom missing in the other version", get(f"{OLD_WIDGETS}/w")),
    Case("custom read", get(_W), _MADE),
    Case("custom missing", get(_W)),
    Case("custom listed", get(WIDGETS), _MADE),
    Case("custom read in the other version", get(f"{OLD_WIDGETS}/w"), _MADE),
    Case("custom listed in the other version", get(OLD_WIDGETS), _MADE),
    Case("custom made in the other version", post(OLD_WIDGETS, widget(spec={"size": 1}, version="v1beta1"))),
    Case(
        "custom by a selectable field",
        get(query(WIDGETS, fieldSelector="spec.color=green")),
        (*_MADE, post(WIDGETS, widget("g", {"color": "green"}))),
    ),
    Case("custom by another field", get(query(WIDGETS, fieldSelector="spec.size=1")), _MADE),
    Case("custom table", get(WIDGETS, accept=TABLE), (*_MADE, post(WIDGETS, widget("g", {"color": "green"})))),
    Case("custom table of the other version", get(OLD_WIDGETS, accept=TABLE), _MADE),
    Case("custom partial metadata", get(_W, accept=PARTIAL), _MADE),
    Case("custom updated", put(_W, widget(spec={"size": 2}, **_LIVE)), _MADE),
    Case("custom updated without a revision", put(_W, widget(spec={"size": 2})), _MADE),
    Case("custom updated without a change", put(_W, widget(spec={"size": 1, "tags": ["one"]}, **_LIVE)), _MADE),
    Case(
        "custom updated with a label",
        put(_W, widget(spec={"size": 1, "tags": ["one"]}, labels={"a": "b"}, **_LIVE)),
        _MADE,
    ),
    Case(
        "custom updated stale", put(_W, widget(spec={"size": 5}, **_LIVE)), (*_MADE, patch(_W, {"spec": {"size": 2}}))
    ),
    Case("custom updated where there is none", put(_W, widget(resourceVersion="1"))),
    Case("custom updated into invalid", put(_W, widget(spec={"size": -2}, **_LIVE)), _MADE),
    Case(
        "custom updated against a transition rule",
        patch(_W, {"spec": {"fixed": "b"}}),
        (post(WIDGETS, widget(spec={"fixed": "a"})),),
    ),
    Case("custom given a generation", patch(_W, {"metadata": {"generation": 7}}), _MADE),
    Case("custom json patched", patch(_W, [{"op": "replace", "path": "/spec/size", "value": 9}], JSON_PATCH), _MADE),
    Case(
        "custom planet",
        post(
            "/apis/diff.example.com/v1/planets",
            {
                "apiVersion": "diff.example.com/v1",
                "kind": "Planet",
                "metadata": {"name": "{ns}"},
                "anything": {"goes": True},
            },
        ),
    ),
    Case(
        "custom planet in a namespace",
        post(
            "/apis/diff.example.com/v1/namespaces/{ns}/planets",
            {"apiVersion": "diff.example.com/v1", "kind": "Planet", "metadata": {"name": "x"}},
        ),
    ),
    Case(
        "custom planet with a namespace",
        post(
            "/apis/diff.example.com/v1/planets",
            {"apiVersion": "diff.example.com/v1", "kind": "Planet", "metadata": {"name": "{ns}-n", "namespace": "x"}},
        ),
    ),
]

SUBRESOURCES = [
    Case("status read", get(f"{_W}/status"), _MADE),
    Case(
        "status updated",
        put(f"{_W}/status", {**widget(spec={"size": 9}, labels={"a": "b"}, **_LIVE), "status": {"replicas": 2}}),
        _MADE,
    ),
    Case("status patched", patch(f"{_W}/status", {"status": {"replicas": 2}, "spec": {"size": 9}}), _MADE),
    Case("status of a wrong type", patch(f"{_W}/status", {"status": {"replicas": "two"}}), _MADE),
    Case("status by the main resource", patch(_W, {"status": {"replicas": 2}}), _MADE),
    Case(
        "status kept by the main resource",
        put(_W, widget(spec={"size": 2}, resourceVersion="<1:metadata.resourceVersion>")),
        (*_MADE, patch(f"{_W}/status", {"status": {"replicas": 2}})),
    ),
    Case("status deleted", delete(f"{_W}/status"), _MADE),
    Case("status created", post(f"{_W}/status", widget()), _MADE),
    Case("status as a table", get(f"{_W}/status", accept=TABLE), _MADE),
    Case(
        "scale read",
        get(f"{_W}/scale"),
        (*_MADE, patch(f"{_W}/status", {"status": {"replicas": 2, "selector": "app=x"}})),
    ),
    Case("scale patched", patch(f"{_W}/scale", {"spec": {"replicas": 5}}), _MADE),
    Case(
        "scale updated",
        put(
            f"{_W}/scale",
            {
                "apiVersion": "autoscaling/v1",
                "kind": "Scale",
                "metadata": {"name": "w", "namespace": "{ns}", **_LIVE},
                "spec": {"replicas": 4},
            },
        ),
        _MADE,
    ),
    Case("scale negative", patch(f"{_W}/scale", {"spec": {"replicas": -1}}), _MADE),
    Case("scaled object", get(_W), (*_MADE, patch(f"{_W}/scale", {"spec": {"replicas": 5}}))),
    Case("scale of what is not there", get(f"{_W}/scale")),
    Case(
        "scale with a wrong revision",
        put(
            f"{_W}/scale",
            {
                "apiVersion": "autoscaling/v1",
                "kind": "Scale",
                "metadata": {"name": "w", "namespace": "{ns}", "resourceVersion": "1"},
                "spec": {"replicas": 4},
            },
        ),
        _MADE,
    ),
]

CASES = [*CREATE, *CHANGE, *SUBRESOURCES]
