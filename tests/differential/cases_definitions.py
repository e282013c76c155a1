"""Cases: CustomResourceDefinitions, what they are held to and what becomes of what they define."""

from typing import Any

from conversation import Case, Send
from prelude import crd
from sends import CRDS, TABLE, apply, delete, get, patch, post, query


def _own(case: str, number: int, **spec: Any) -> Case:
    group = f"g{number}.example.com"
    return Case(f"definition {case}", post(CRDS, crd("things", "Thing", group, **spec)))


def _schema(case: str, number: int, schema: object) -> Case:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return _own(case, number, versions=[version])


_V1 = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
_GONE = "/apis/{ns}.example.com/v1"
_LIFE = post(CRDS, crd("things", "Thing", "{ns}.example.com"))


def _thing(name: str, **metadata: Any) -> Send:
    return post(f"{_GONE}/namespaces/{{ns}}/things", _body(name, **metadata))


def _body(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "{ns}.example.com/v1", "kind": "Thing", "metadata": {"name": name, **metadata}}


CASES = [
    _own("plain", 1),
    Case("definition read", get(f"{CRDS}/widgets.diff.example.com")),
    Case("definition status read", get(f"{CRDS}/planets.diff.example.com/status")),
    Case("definition existing", post(CRDS, crd("planets", "Planet"))),
    Case(
        "definition named wrongly",
        post(CRDS, {**crd("things", "Thing", "g2.example.com"), "metadata": {"name": "other.g2.example.com"}}),
    ),
    _own("of no scope", 3, scope=""),
    _own("of an odd scope", 4, scope="Galactic"),
    _own("without versions", 5, versions=[]),
    _own("with two storage versions", 6, versions=[_V1, {**_V1, "name": "v2"}]),
    _own("without a storage version", 7, versions=[{**_V1, "storage": False}]),
    _own("with a version twice", 8, versions=[_V1, {**_V1, "storage": False}]),
    _own("with a bad version name", 9, versions=[{**_V1, "name": "V_1"}]),
    _own("without a schema", 10, versions=[{"name": "v1", "served": True, "storage": True}]),
    _own("with unknown fields preserved", 11, preserveUnknownFields=True),
    _own("with bad names", 12, names={"plural": "things", "kind": "a b", "singular": "T"}),
    _own("with a webhook", 13, conversion={"strategy": "Webhook"}),
    _own("with defaulted names", 14, names={"plural": "things", "kind": "Thing"}),
    Case("definition of a group without a dot", post(CRDS, crd("things", "Thing", "local"))),
    Case("definition of a protected group", post(CRDS, crd("things", "Thing", "g.k8s.io"))),
    Case("definition as an empty object", post(CRDS, {})),
    Case(
        "definition with an unknown field strictly",
        post(query(CRDS, fieldValidation="Strict"), crd("things", "Thing", "g15.example.com", nonsense=1)),
    ),
    _schema("without a type", 16, {"properties": {"a": {"type": "string"}}}),
    _schema("with a property without a type", 17, {"type": "object", "properties": {"a": {}}}),
    _schema("with a reference", 18, {"type": "object", "properties": {"a": {"$ref": "#/x"}}}),
    _schema("with a bad pattern", 19, {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}),
    _schema("with a bad default", 20, {"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}),
    _schema(
        "with unique items",
        21,
        {"type": "object", "properties": {"a": {"type": "array", "uniqueItems": True, "items": {"type": "string"}}}},
    ),
    _schema(
        "with a list map without keys",
        22,
        {
            "type": "object",
            "properties": {"a": {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}}},
        },
    ),
    _schema(
        "with a bad rule",
        23,
        {"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-validations": [{"rule": "self +"}]}}},
    ),
    _schema(
        "with a rule of a wrong type",
        24,
        {"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-validations": [{"rule": "self"}]}}},
    ),
    _schema(
        "with metadata restricted",
        25,
        {
            "type": "object",
            "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}},
        },
    ),
    _schema(
        "with properties and additional properties",
        26,
        {
            "type": "object",
            "properties": {
                "a": {
                    "type": "object",
                    "properties": {"b": {"type": "string"}},
                    "additionalProperties": {"type": "string"},
                }
            },
        },
    ),
    _schema("with a type in an alternative", 27, {"type": "object", "anyOf": [{"type": "object"}]}),
    _schema(
        "with an unknown list type",
        28,
        {
            "type": "object",
            "properties": {"a": {"type": "array", "x-kubernetes-list-type": "bag", "items": {"type": "string"}}},
        },
    ),
    _schema("that is a string", 29, {"type": "string"}),
    _own(
        "with a bad column",
        30,
        versions=[{**_V1, "additionalPrinterColumns": [{"name": "A", "type": "odd", "jsonPath": "a"}]}],
    ),
    _own(
        "with a bad scale",
        31,
        versions=[{**_V1, "subresources": {"scale": {"specReplicasPath": "spec", "statusReplicasPath": ""}}}],
    ),
    _own("with a bad selectable field", 32, versions=[{**_V1, "selectableFields": [{"jsonPath": ".spec.none"}]}]),
    Case("definition table", get(query(CRDS, fieldSelector="metadata.name=planets.diff.example.com"), accept=TABLE)),
    Case("definition with another scope", patch(f"{CRDS}/planets.diff.example.com", {"spec": {"scope": "Namespaced"}})),
    Case(
        "definition with a removed stored version",
        patch(f"{CRDS}/planets.diff.example.com", {"spec": {"versions": [{**_V1, "name": "v2"}]}}),
    ),
    Case(
        "definition deleted with its objects",
        get(f"{_GONE}/namespaces/{{ns}}/things/a", until=404),
        (
            _LIFE,
            get(f"{_GONE}/things", until=200),
            _thing("a"),
            delete(f"{CRDS}/things.{{ns}}.example.com"),
            get(f"{CRDS}/things.{{ns}}.example.com", until=404),
        ),
    ),
    Case(
        "definition gone",
        get(f"{CRDS}/things.{{ns}}.example.com", until=404),
        (_LIFE, get(f"{_GONE}/things", until=200), _thing("a"), delete(f"{CRDS}/things.{{ns}}.example.com")),
    ),
    Case(
        "custom in a definition being deleted",
        Send("POST", f"{_GONE}/namespaces/{{ns}}/things", _body("b"), until=403),
        (
            _LIFE,
            get(f"{_GONE}/things", until=200),
            _thing("a", finalizers=["example.com/f"]),
            delete(f"{CRDS}/things.{{ns}}.example.com"),
        ),
    ),
    Case(
        "definition being deleted",
        get(f"{CRDS}/things.{{ns}}.example.com"),
        (
            _LIFE,
            get(f"{_GONE}/things", until=200),
            _thing("a", finalizers=["example.com/f"]),
            delete(f"{CRDS}/things.{{ns}}.example.com"),
            Send(
                "POST",
                f"{_GONE}/namespaces/{{ns}}/things",
                _body("b"),
                until=403,
            ),
        ),
        view="being deleted",
    ),
    Case(
        "definition of a name that is taken",
        get(f"{CRDS}/others.{{ns}}.example.com"),
        (
            _LIFE,
            get(f"{_GONE}/things", until=200),
            post(CRDS, crd("others", "Thing", "{ns}.example.com")),
            get(f"{_GONE}/things", until=200),
        ),
    ),
    Case("definition applied", apply(f"{CRDS}/things.g33.example.com", crd("things", "Thing", "g33.example.com"))),
    Case(
        "definition with defaulted scale names",
        post(
            CRDS,
            crd(
                "things",
                "Thing",
                "g34.example.com",
                names={"plural": "things", "kind": "Thing", "categories": ["all"], "shortNames": ["th"]},
            ),
        ),
    ),
    Case("definition of a dash in its group", post(CRDS, crd("things", "Thing", "-g.example.com"))),
    Case(
        "definition patched",
        patch(f"{CRDS}/things.{{ns}}.example.com", {"spec": {"names": {"shortNames": ["th"]}}}),
        (_LIFE, get(f"{_GONE}/things", until=200)),
    ),
    Case(
        "definition status patched",
        patch(f"{CRDS}/things.{{ns}}.example.com/status", {"status": {"storedVersions": ["v1", "v0"]}}),
        (_LIFE, get(f"{_GONE}/things", until=200)),
    ),
    Case(
        "definition without a stored version left",
        patch(f"{CRDS}/things.{{ns}}.example.com/status", {"status": {"storedVersions": []}}),
        (_LIFE, get(f"{_GONE}/things", until=200)),
    ),
    Case(
        "definition with a version no longer served",
        get(f"{_GONE}/things", until=404),
        (
            _LIFE,
            get(f"{_GONE}/things", until=200),
            patch(
                f"{CRDS}/things.{{ns}}.example.com",
                {"spec": {"versions": [{**_V1, "served": False}, {**_V1, "name": "v2", "storage": False}]}},
            ),
        ),
    ),
    Case(
        "definition with another storage version",
        get(f"{CRDS}/things.{{ns}}.example.com"),
        (
            _LIFE,
            get(f"{_GONE}/things", until=200),
            patch(
                f"{CRDS}/things.{{ns}}.example.com",
                {"spec": {"versions": [{**_V1, "storage": False}, {**_V1, "name": "v2"}]}},
            ),
            get(f"{_GONE.removesuffix('1')}2/things", until=200),
        ),
    ),
    Case("definitions by name", get(query(CRDS, fieldSelector="metadata.name=planets.diff.example.com"))),
    Case("definitions by group", get(query(CRDS, fieldSelector="spec.group=x"))),
]
