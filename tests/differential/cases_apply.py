"""Cases: server-side apply and managedFields."""

from conversation import Case
from sends import (
    CONFIG_MAPS,
    LEASES,
    STRATEGIC,
    WIDGETS,
    apply,
    config_map,
    get,
    lease,
    patch,
    post,
    put,
    query,
    widget,
)

_A = f"{CONFIG_MAPS}/a"
_W = f"{WIDGETS}/w"
_ONE = (apply(_A, config_map(data={"k": "v", "l": "w"}), "one"),)
_MADE = (post(CONFIG_MAPS, config_map(data={"k": "v"})),)
_PORTS = {"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}], "tags": ["one"]}
_WIDGET = (apply(_W, widget(spec=_PORTS), "one"),)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"

CASES = [
    Case("apply creating", apply(_A, config_map(data={"k": "v"}))),
    Case("apply creating by YAML", apply(_A, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n")),
    Case(
        "apply creating dry",
        patch(query(_A, fieldManager="one", dryRun="All"), config_map(), "application/apply-patch+yaml"),
    ),
    Case("apply the same", apply(_A, config_map(data={"k": "v", "l": "w"})), _ONE),
    Case("apply a change", apply(_A, config_map(data={"k": "x", "l": "w"})), _ONE),
    Case("apply a removal", apply(_A, config_map(data={"k": "v"})), _ONE),
    Case("apply a conflict", apply(_A, config_map(data={"k": "x"}), "two"), _ONE),
    Case("apply two conflicts", apply(_A, config_map(data={"k": "x", "l": "y"}), "two"), _ONE),
    Case(
        "apply conflicts with two managers",
        apply(_A, config_map(data={"k": "x", "l": "y", "m": "n"}), "three"),
        (*_ONE, apply(_A, config_map(data={"m": "z"}), "two")),
    ),
    Case("apply by force", apply(_A, config_map(data={"k": "x"}), "two", force=True), _ONE),
    Case("apply a shared value", apply(_A, config_map(data={"k": "v"}), "two"), _ONE),
    Case(
        "apply a removal of what is shared",
        apply(_A, config_map(data={"l": "w"})),
        (*_ONE, apply(_A, config_map(data={"k": "v"}), "two")),
    ),
    Case("apply over an update", apply(_A, config_map(data={"k": "x"})), _MADE),
    Case(
        "apply over an update of an applied value",
        apply(_A, config_map(data={"k": "v", "l": "w"})),
        (*_ONE, patch(query(_A, fieldManager="hand"), {"data": {"k": "x"}})),
    ),
    Case("update what is applied", put(query(_A, fieldManager="hand"), config_map(data={"k": "x"})), _ONE),
    Case("apply without a manager", patch(_A, config_map(), "application/apply-patch+yaml")),
    Case("apply with a long manager", apply(_A, config_map(), "m" * 129)),
    Case("apply another name", apply(_A, config_map("b"))),
    Case("apply without a name", apply(_A, {"apiVersion": "v1", "kind": "ConfigMap"})),
    Case("apply another namespace", apply(_A, config_map(namespace="other"))),
    Case("apply without a kind", apply(_A, {"metadata": {"name": "a"}})),
    Case("apply another kind", apply(_A, {**config_map(), "kind": "Secret"})),
    Case("apply another version", apply(_A, {**config_map(), "apiVersion": "v2"})),
    Case("apply with managed fields", apply(_A, config_map(managedFields=[{"manager": "x", "operation": "Apply"}]))),
    Case("apply with a uid", apply(_A, config_map(uid="00000000-0000-4000-8000-000000000001"))),
    Case("apply with a revision", apply(_A, config_map(resourceVersion="1")), _ONE),
    Case("apply with a revision to nothing", apply(_A, config_map(resourceVersion="1"))),
    Case("apply an unknown field", apply(_A, {**config_map(), "nonsense": 1})),
    Case("apply a wrong type", apply(_A, {**config_map(), "data": ["x"]})),
    Case("apply a list", apply(_A, "[]")),
    Case("apply a word", apply(_A, "word")),
    Case("apply nothing", apply(_A, "")),
    Case("apply bad YAML", apply(_A, "a: b: c")),
    Case(
        "apply a duplicate key", apply(_A, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: a, k: b}\n")
    ),
    Case(
        "apply a duplicate key strictly",
        patch(
            query(_A, fieldManager="one", fieldValidation="Strict"),
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: a, k: b}\n",
            "application/apply-patch+yaml",
        ),
    ),
    Case("apply in a missing namespace", apply("/api/v1/namespaces/none-such/configmaps/a", config_map())),
    Case("apply a bad name", apply(f"{CONFIG_MAPS}/A_b", config_map("A_b"))),
    Case("apply invalid data", apply(_A, config_map(data={"a/b": "x"}))),
    Case(
        "apply labels and finalizers",
        apply(_A, config_map(labels={"a": "b"}, finalizers=["example.com/f"], annotations={"c": "d"})),
    ),
    Case(
        "apply as kubectl over its own client-side apply",
        apply(_A, config_map(data={"k": "x"}, annotations={_LAST_APPLIED: "{}"}), "kubectl"),
        (
            post(
                query(CONFIG_MAPS, fieldManager="kubectl-client-side-apply"),
                config_map(
                    data={"k": "v"},
                    annotations={
                        _LAST_APPLIED: '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}'
                    },
                ),
            ),
        ),
    ),
    Case(
        "apply over what has no managed fields",
        apply(_A, config_map(data={"k": "x"})),
        (*_MADE, patch(_A, {"metadata": {"managedFields": [{}]}})),
    ),
    Case("managed fields cleared", patch(_A, {"metadata": {"managedFields": [{}]}}), _MADE),
    Case(
        "managed fields broken",
        patch(
            _A,
            {
                "metadata": {
                    "managedFields": [
                        {"manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV9"}
                    ]
                }
            },
        ),
        _MADE,
    ),
    Case(
        "managers of many updates",
        get(_A),
        (
            *_MADE,
            *(patch(query(_A, fieldManager=f"m{number:02}"), {"data": {f"k{number}": "x"}}) for number in range(12)),
        ),
    ),
    Case(
        "managers after a strategic merge", patch(query(_A, fieldManager="two"), {"data": {"l": "x"}}, STRATEGIC), _MADE
    ),
    Case("managers after nothing changed", patch(query(_A, fieldManager="two"), {"data": {"k": "v"}}), _MADE),
    Case("apply a lease", apply(f"{LEASES}/l", lease(holderIdentity="a", leaseDurationSeconds=5))),
    Case(
        "apply a lease conflict",
        apply(f"{LEASES}/l", lease(holderIdentity="b"), "two"),
        (apply(f"{LEASES}/l", lease(holderIdentity="a")),),
    ),
    Case("apply a custom resource", apply(_W, widget(spec=_PORTS))),
    Case(
        "apply one item of a list by key",
        apply(_W, widget(spec={"ports": [{"name": "b", "port": 3}]}), "two", force=True),
        _WIDGET,
    ),
    Case("apply an item conflict", apply(_W, widget(spec={"ports": [{"name": "b", "port": 3}]}), "two"), _WIDGET),
    Case("apply an item away", apply(_W, widget(spec={"ports": [{"name": "b", "port": 2}]})), _WIDGET),
    Case("apply to a set", apply(_W, widget(spec={"tags": ["two"]}), "two"), _WIDGET),
    Case("apply from a set away", apply(_W, widget(spec={"tags": []})), _WIDGET),
    Case("apply a duplicate in a set", apply(_W, widget(spec={"tags": ["one", "one"]})), _WIDGET),
    Case(
        "apply a duplicate key in a list",
        apply(_W, widget(spec={"ports": [{"name": "a", "port": 1}, {"name": "a", "port": 2}]})),
    ),
    Case("apply an item without its key", apply(_W, widget(spec={"ports": [{"port": 1}]}))),
    Case(
        "apply an atomic map",
        apply(_W, widget(spec={"selector": {"b": "2"}}), "two"),
        (apply(_W, widget(spec={"selector": {"a": "1"}})),),
    ),
    Case("apply unknown to a custom resource", apply(_W, widget(spec={"nonsense": 1}))),
    Case("apply invalid to a custom resource", apply(_W, widget(spec={"size": -1}))),
    Case("apply a status to the main resource", apply(_W, {**widget(spec={"size": 1}), "status": {"replicas": 3}})),
    Case("apply to the status", apply(f"{_W}/status", {**widget(), "status": {"replicas": 3}}, "two"), _WIDGET),
    Case("apply to the status of nothing", apply(f"{_W}/status", {**widget(), "status": {"replicas": 3}})),
    Case(
        "apply the other version",
        apply(
            "/apis/diff.example.com/v1beta1/namespaces/{ns}/widgets/w",
            widget(spec={"size": 4}, version="v1beta1"),
            "two",
            force=True,
        ),
        _WIDGET,
    ),
    Case("apply one version at the other", apply(_W, widget(spec={"size": 4}, version="v1beta1"))),
]
