"""Cases: lists, selectors, pages, tables and partial metadata."""

from conversation import Case
from sends import (
    CONFIG_MAPS,
    LEASES,
    PARTIAL,
    PARTIAL_LIST,
    SECRETS,
    TABLE,
    config_map,
    delete,
    get,
    lease,
    post,
    query,
    secret,
)

# Leases, because nothing else makes any in a new namespace.
_THREE = tuple(post(LEASES, lease(name, holderIdentity=name)) for name in ("b", "a", "c"))
_LABELLED = tuple(
    post(LEASES, {**lease(name), "metadata": {"name": name, "labels": labels}})
    for name, labels in {"a": {"app": "x", "n": "7"}, "b": {"app": "y"}, "c": {}}.items()
)


def _list(name: str, **parameters: str) -> Case:
    return Case(f"list {name}", get(query(LEASES, **parameters)), _THREE)


def _selected(name: str, selector: str) -> Case:
    return Case(f"select {name}", get(query(LEASES, labelSelector=selector)), _LABELLED)


def _fields(name: str, selector: str) -> Case:
    return Case(f"fields {name}", get(query(LEASES, fieldSelector=selector)), _LABELLED)


LISTS = [
    _list("all"),
    Case("list nothing", get(LEASES)),
    Case("list from a namespace that is not there", get("/apis/coordination.k8s.io/v1/namespaces/none-such/leases")),
    Case(
        "list across namespaces",
        get(query("/apis/coordination.k8s.io/v1/leases", fieldSelector="metadata.namespace={ns}")),
        _THREE,
    ),
    _list("two", limit="2"),
    _list("three", limit="3"),
    _list("none by limit", limit="0"),
    _list("a negative limit", limit="-1"),
    _list("a bad limit", limit="many"),
    Case(
        "list the next page",
        get(query(LEASES, limit="2", **{"continue": "<3:metadata.continue>"})),
        (*_THREE, get(query(LEASES, limit="2"))),
    ),
    Case(
        "list the rest without a limit",
        get(query(LEASES, **{"continue": "<3:metadata.continue>"})),
        (*_THREE, get(query(LEASES, limit="1"))),
    ),
    Case(
        "list a page after a write",
        get(query(LEASES, limit="2", **{"continue": "<3:metadata.continue>"})),
        (*_THREE, get(query(LEASES, limit="1")), delete(f"{LEASES}/c"), post(LEASES, lease("d"))),
    ),
    Case(
        "list a page with a revision",
        get(
            query(
                LEASES,
                limit="2",
                resourceVersion="<3:metadata.resourceVersion>",
                **{"continue": "<3:metadata.continue>"},
            )
        ),
        (*_THREE, get(query(LEASES, limit="2"))),
    ),
    Case(
        "list a page with a match rule",
        get(query(LEASES, limit="2", resourceVersionMatch="Exact", **{"continue": "<3:metadata.continue>"})),
        (*_THREE, get(query(LEASES, limit="2"))),
    ),
    _list("with a bad token", **{"continue": "nonsense"}),
    _list("with a token of the wrong form", **{"continue": "e30"}),
    _list("any revision", resourceVersion="0"),
    _list("any revision by pages", resourceVersion="0", limit="2"),
    _list("a bad revision", resourceVersion="abc"),
    _list("a negative revision", resourceVersion="-1"),
    _list("a future revision", resourceVersion="999999999"),
    _list("exactly a future revision", resourceVersion="999999999", resourceVersionMatch="Exact"),
    _list("exactly any revision", resourceVersion="0", resourceVersionMatch="Exact"),
    _list("with a match rule alone", resourceVersionMatch="Exact"),
    _list("with a bad match rule", resourceVersion="1", resourceVersionMatch="Roughly"),
    _list("not older than any", resourceVersion="0", resourceVersionMatch="NotOlderThan"),
    Case(
        "list exactly an old revision",
        get(query(LEASES, resourceVersion="<1:metadata.resourceVersion>", resourceVersionMatch="Exact")),
        _THREE,
    ),
    Case(
        "list not older than the first",
        get(query(LEASES, resourceVersion="<0:metadata.resourceVersion>", resourceVersionMatch="NotOlderThan")),
        _THREE,
    ),
    _list("with initial events", sendInitialEvents="true"),
    _list("with a time limit", timeoutSeconds="5"),
    _list("with a bad time limit", timeoutSeconds="soon"),
    _list("that does not watch", watch="false"),
    _list("with a bad watch", watch="maybe", timeoutSeconds="1"),
]

SELECTORS = [
    _selected("equal", "app=x"),
    _selected("equal twice", "app==x"),
    _selected("not equal", "app!=x"),
    _selected("in", "app in (x,y)"),
    _selected("not in", "app notin (x)"),
    _selected("having", "app"),
    _selected("not having", "!app"),
    _selected("greater", "n>5"),
    _selected("less", "n<5"),
    _selected("several", "app in (x, y),n"),
    _selected("by an empty value", "app="),
    _selected("without brackets", "app in x"),
    _selected("with an open bracket", "app in (x"),
    _selected("with no value in brackets", "app in ()"),
    _selected("by a bad key", "a b=c"),
    _selected("by a bad value", "app=a*b"),
    _selected("with a comma at the end", "app=x,"),
    _selected("by a key too long", "k" * 64),
    _selected("greater than a word", "n>many"),
    _selected("with an unknown operator", "app~x"),
    Case("select by pages", get(query(LEASES, labelSelector="app", limit="1")), _LABELLED),
    _fields("by name", "metadata.name=a"),
    _fields("by another name", "metadata.name!=a"),
    _fields("by name and namespace", "metadata.name=a,metadata.namespace={ns}"),
    _fields("by another namespace", "metadata.namespace=other"),
    _fields("unknown", "spec.holderIdentity=a"),
    _fields("without an operator", "metadata.name"),
    _fields("badly escaped", "metadata.name=a\\x"),
    _fields("by label", "metadata.labels.app=x"),
]


def _table(name: str, path: str, *setup: object) -> Case:
    return Case(f"table {name}", get(path, accept=TABLE), setup)  # type: ignore[arg-type]


TABLES = [
    _table("of leases", LEASES, *_THREE),
    _table("of nothing", LEASES),
    _table("of a page", query(LEASES, limit="2"), *_THREE),
    _table("of one lease", f"{LEASES}/a", *_THREE),
    _table("with whole objects", query(LEASES, includeObject="Object"), *_THREE),
    _table("with no objects", query(LEASES, includeObject="None"), *_THREE),
    _table("with bad objects", query(LEASES, includeObject="Some"), *_THREE),
    _table(
        "of config maps",
        query(CONFIG_MAPS, fieldSelector="metadata.name=a"),
        post(CONFIG_MAPS, config_map(data={"k": "v", "l": "w"})),
    ),
    _table("of secrets", SECRETS, post(SECRETS, secret(stringData={"a": "b"}))),
    _table("of namespaces", query("/api/v1/namespaces", fieldSelector="metadata.name={ns}")),
    _table(
        "of service accounts",
        query("/api/v1/namespaces/{ns}/serviceaccounts", fieldSelector="metadata.name=x"),
        post("/api/v1/namespaces/{ns}/serviceaccounts", {"metadata": {"name": "x"}}),
    ),
    _table("of what is not there", f"{LEASES}/a"),
    Case("table only, old", get(LEASES, accept="application/json;as=Table;v=v1beta1;g=meta.k8s.io"), _THREE),
    Case("table of an unknown version", get(LEASES, accept="application/json;as=Table;v=v9;g=meta.k8s.io"), _THREE),
    Case("table of a created object", post(LEASES, lease("a"), accept=TABLE)),
    Case("table as YAML", get(LEASES, accept="application/yaml;as=Table;v=v1;g=meta.k8s.io"), _THREE[:1]),
    Case("partial metadata", get(f"{LEASES}/a", accept=PARTIAL), _THREE),
    Case("partial metadata of a list", get(LEASES, accept=PARTIAL_LIST), _THREE),
    Case("partial list of one", get(f"{LEASES}/a", accept=PARTIAL_LIST), _THREE),
    Case("partial object of a list", get(LEASES, accept=PARTIAL), _THREE),
    Case("partial metadata of a created object", post(LEASES, lease("a"), accept=PARTIAL)),
]

CASES = [*LISTS, *SELECTORS, *TABLES]
