"""Cases: delete, finalizers, preconditions, propagation, collections."""

from conversation import Case
from sends import CONFIG_MAPS, LEASES, WIDGETS, config_map, delete, get, lease, patch, post, put, query, widget

_A = f"{CONFIG_MAPS}/a"
_MADE = (post(CONFIG_MAPS, config_map(data={"k": "v"})),)
_HELD = (post(CONFIG_MAPS, config_map(finalizers=["example.com/f"])),)
_DYING = (*_HELD, delete(_A))
_OWNED = (
    post(CONFIG_MAPS, config_map("owner")),
    post(
        CONFIG_MAPS,
        config_map(
            "owned",
            ownerReferences=[
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": "owner",
                    "uid": "<0:metadata.uid>",
                    "blockOwnerDeletion": True,
                }
            ],
        ),
    ),
)
_THREE = tuple(
    post(LEASES, {**lease(name), "metadata": {"name": name, "labels": {"app": app}}})
    for name, app in (("a", "x"), ("b", "x"), ("c", "y"))
)


def _options(**fields: object) -> dict[str, object]:
    return {"kind": "DeleteOptions", "apiVersion": "v1", **fields}


def _delete(name: str, body: object = None, **parameters: str) -> Case:
    return Case(f"delete {name}", delete(query(_A, **parameters) if parameters else _A, body), _MADE)  # type: ignore[arg-type]


CASES = [
    _delete("one"),
    Case("delete what is not there", delete(_A)),
    _delete("with options", _options(propagationPolicy="Background")),
    _delete("with options without a kind", {"propagationPolicy": "Background", "gracePeriodSeconds": 0}),
    _delete("with empty options", {}),
    _delete("with options of another kind", {"kind": "ConfigMap", "apiVersion": "v1"}),
    _delete("with options that are not JSON", "nonsense"),
    _delete("with unknown options", _options(nonsense=True)),
    _delete("with options of a wrong type", _options(gracePeriodSeconds="soon")),
    _delete("by query", propagationPolicy="Foreground"),
    _delete("by a bad query", gracePeriodSeconds="soon"),
    _delete("with an unknown policy", _options(propagationPolicy="Sideways")),
    _delete("with both policies", _options(propagationPolicy="Orphan", orphanDependents=True)),
    _delete("orphaning", _options(propagationPolicy="Orphan")),
    _delete("in the foreground", _options(propagationPolicy="Foreground")),
    _delete("orphaning in the old way", _options(orphanDependents=True)),
    _delete("not orphaning in the old way", _options(orphanDependents=False)),
    _delete("dry", _options(dryRun=["All"])),
    _delete("dry by query", dryRun="All"),
    _delete("dry in a bad way", _options(dryRun=["Some"])),
    _delete("with a grace period", _options(gracePeriodSeconds=30)),
    _delete("with a negative grace period", _options(gracePeriodSeconds=-5)),
    _delete("by uid", _options(preconditions={"uid": "<0:metadata.uid>"})),
    _delete("by a wrong uid", _options(preconditions={"uid": "00000000-0000-4000-8000-000000000009"})),
    _delete("by revision", _options(preconditions={"resourceVersion": "<0:metadata.resourceVersion>"})),
    _delete("by a wrong revision", _options(preconditions={"resourceVersion": "1"})),
    Case("delete twice", delete(_A), (*_MADE, delete(_A))),
    Case("delete what a finalizer holds", delete(_A), _HELD),
    Case("delete what is being deleted", delete(_A), _DYING),
    Case(
        "delete what is being deleted in the foreground", delete(_A, _options(propagationPolicy="Foreground")), _DYING
    ),
    Case("create what is being deleted", post(CONFIG_MAPS, config_map()), _DYING),
    Case(
        "add a finalizer to what is being deleted",
        patch(_A, {"metadata": {"finalizers": ["example.com/f", "example.com/g"]}}),
        _DYING,
    ),
    Case("change what is being deleted", patch(_A, {"data": {"k": "w"}}), _DYING),
    Case("take the last finalizer", patch(_A, {"metadata": {"finalizers": None}}), _DYING),
    Case("take the last finalizer by update", put(_A, config_map()), _DYING),
    Case("gone after the last finalizer", get(_A, until=404), (*_DYING, patch(_A, {"metadata": {"finalizers": []}}))),
    Case("unset the deletion time", put(_A, config_map(finalizers=["example.com/f"], deletionTimestamp=None)), _DYING),
    Case("owned follow their owner", get(f"{CONFIG_MAPS}/owned", until=404), (*_OWNED, delete(f"{CONFIG_MAPS}/owner"))),
    Case(
        "owned go first in the foreground",
        get(f"{CONFIG_MAPS}/owner", until=404),
        (*_OWNED, delete(f"{CONFIG_MAPS}/owner", _options(propagationPolicy="Foreground"))),
    ),
    Case(
        "orphans stay",
        get(f"{CONFIG_MAPS}/owned"),
        (
            *_OWNED,
            delete(f"{CONFIG_MAPS}/owner", _options(propagationPolicy="Orphan")),
            get(f"{CONFIG_MAPS}/owner", until=404),
        ),
    ),
    Case("delete a custom resource", delete(f"{WIDGETS}/w"), (post(WIDGETS, widget()),)),
    Case(
        "delete a custom resource held", delete(f"{WIDGETS}/w"), (post(WIDGETS, widget(finalizers=["example.com/f"])),)
    ),
    Case("delete all", delete(LEASES), _THREE),
    Case("delete some", delete(query(LEASES, labelSelector="app=x")), _THREE),
    Case("delete some by a bad selector", delete(query(LEASES, labelSelector="a in x")), _THREE),
    Case("delete all dry", delete(query(LEASES, dryRun="All")), _THREE),
    Case("left after deleting some", get(LEASES), (*_THREE, delete(query(LEASES, labelSelector="app=x")))),
    Case("left after deleting all dry", get(LEASES), (*_THREE, delete(query(LEASES, dryRun="All")))),
    Case("delete none", delete(LEASES)),
    Case(
        "delete all as a table",
        delete(LEASES, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}),
        _THREE[:1],
    ),
    Case("delete all by a revision", delete(LEASES, _options(preconditions={"resourceVersion": "1"})), _THREE),
    Case("delete all with a limit", delete(query(LEASES, limit="1")), _THREE),
    Case("delete across namespaces", delete("/apis/coordination.k8s.io/v1/leases")),
]
