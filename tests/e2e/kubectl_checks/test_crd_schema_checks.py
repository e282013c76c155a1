"""Schemas of custom resources through real kubectl: defaults, pruning, value rules, CEL rules and ratcheting."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kubectl import Kubectl

Json = dict[str, Any]
pytestmark = pytest.mark.standalone(
    "what schemas mean is kube-apiserver's in a cluster; tests/differential compares it with ours"
)

UNCHECKED = (
    "* <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
SCHEMA: Json = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["host"],
            "properties": {
                "host": {"type": "string", "maxLength": 20, "pattern": "^[a-z.]+$"},
                "mode": {"type": "string", "enum": ["fast", "safe"], "default": "safe"},
                "replicas": {"type": "integer", "minimum": 1, "maximum": 5, "default": 1},
                "port": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "routes": {
                    "type": "array",
                    "maxItems": 10,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["path"],
                    "items": {
                        "type": "object",
                        "required": ["path"],
                        "properties": {
                            "path": {"type": "string", "maxLength": 50},
                            "weight": {"type": "integer", "default": 100},
                        },
                        "x-kubernetes-validations": [
                            {"rule": "self.weight >= oldSelf.weight", "message": "weight cannot shrink"}
                        ],
                    },
                },
            },
            "x-kubernetes-validations": [
                {"rule": "self.host == oldSelf.host", "message": "host is immutable", "fieldPath": ".host"},
                {
                    "rule": "self.mode != 'fast' || self.replicas > 1",
                    "messageExpression": "'fast needs replicas, got ' + string(self.replicas)",
                },
            ],
        }
    },
}


@pytest.fixture
def define(kubectl: Kubectl, namespace: str) -> Iterator[Callable[[Json], str]]:
    """Apply a definition of gateways with a schema and wait for it; returns its group."""
    group = f"{namespace}.example.com"

    def apply(schema: Json) -> str:
        names = {"plural": "gateways", "singular": "gateway", "kind": "Gateway", "listKind": "GatewayList"}
        version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        kubectl.apply(
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"gateways.{group}"},
                "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
            }
        )
        kubectl.ok("wait", "--for=condition=Established", f"crd/gateways.{group}", "--timeout=60s")
        return group

    yield apply
    kubectl("delete", "crd", f"gateways.{group}", "--ignore-not-found")


def gateway(group: str, name: str = "edge", **spec: Any) -> Json:
    return {"apiVersion": f"{group}/v1", "kind": "Gateway", "metadata": {"name": name}, "spec": spec}


def test_defaults_are_filled_in_at_every_level_and_unknown_fields_go(kubectl: Kubectl, define: Any) -> None:
    group = define(SCHEMA)
    body = gateway(group, host="a.b", colour="red", free={"any": {"thing": 1}}, routes=[{"path": "/"}], port="http")

    strict = kubectl("create", "-f", "-", stdin=body)
    warned = kubectl("create", "--validate=warn", "-f", "-", stdin=body)
    stored = kubectl.json("get", f"gateways.{group}", "edge")

    assert strict.returncode == 1
    assert 'strict decoding error: unknown field "spec.colour"' in strict.stderr
    assert 'Warning: unknown field "spec.colour"' in warned.stderr
    assert stored["spec"] == {
        "host": "a.b",
        "mode": "safe",
        "replicas": 1,
        "port": "http",
        "free": {"any": {"thing": 1}},
        "routes": [{"path": "/", "weight": 100}],
    }


def test_every_broken_value_rule_is_a_bullet_in_the_words_of_kubernetes(kubectl: Kubectl, define: Any) -> None:
    group = define(SCHEMA)
    body = gateway(group, host="NO", mode="slow", replicas=9, port=True, routes=[{"path": "/"}, {"path": "/"}, {}])

    refused = kubectl("create", "-f", "-", stdin=body)

    first, *bullets = refused.stderr.splitlines()
    assert first == 'The Gateway "edge" is invalid: '
    assert sorted(bullets) == sorted(
        [
            "* spec.host: Invalid value: \"NO\": spec.host in body should match '^[a-z.]+$'",
            '* spec.mode: Unsupported value: "slow": supported values: "fast", "safe"',
            "* spec.replicas: Invalid value: 9: spec.replicas in body should be less than or equal to 5",
            '* spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean"',
            "* spec.routes[2].path: Required value",
            '* spec.routes[1]: Duplicate value: {"path":"/"}',
            UNCHECKED,
        ]
    )


def test_a_wrong_type_is_invalid_and_not_a_bad_request(kubectl: Kubectl, define: Any) -> None:
    group = define(SCHEMA)

    refused = kubectl("create", "-f", "-", stdin=gateway(group, host="a.b", replicas="many"))

    assert 'spec.replicas in body must be of type integer: "string"' in refused.stderr
    assert refused.stderr.startswith('The Gateway "edge" is invalid: ')


def test_cel_rules_bind_on_create_and_transition_rules_on_update(kubectl: Kubectl, define: Any) -> None:
    group = define(SCHEMA)
    kind = f"gateways.{group}"

    fast = kubectl("create", "-f", "-", stdin=gateway(group, host="a.b", mode="fast"))
    kubectl.create(gateway(group, host="a.b", routes=[{"path": "/", "weight": 5}, {"path": "/x"}]))
    moved = kubectl("patch", kind, "edge", "--type=merge", "-p", '{"spec":{"host":"b.c"}}')
    shrunk = kubectl(
        "patch", kind, "edge", "--type=merge", "-p", '{"spec":{"routes":[{"path":"/x"},{"path":"/","weight":4}]}}'
    )
    grown = kubectl(
        "patch",
        kind,
        "edge",
        "--type=merge",
        "-p",
        '{"spec":{"routes":[{"path":"/new","weight":1},{"path":"/","weight":6}]}}',
    )

    assert fast.stderr == ('The Gateway "edge" is invalid: spec: Invalid value: "object": fast needs replicas, got 1\n')
    assert moved.stderr == 'The Gateway "edge" is invalid: spec.host: Invalid value: "object": host is immutable\n'
    assert shrunk.stderr == (
        'The Gateway "edge" is invalid: spec.routes[1]: Invalid value: "object": weight cannot shrink\n'
    )
    assert grown.returncode == 0


def test_what_was_valid_once_may_stay_and_may_not_change_to_something_invalid(kubectl: Kubectl, define: Any) -> None:
    loose: Json = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"note": {"type": "string"}, "count": {"type": "integer"}}}
        },
    }
    properties = {"note": {"type": "string", "maxLength": 3}, "count": {"type": "integer"}}
    tight: Json = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    group = define(loose)
    kind = f"gateways.{group}"
    kubectl.create(gateway(group, note="long text", count=1))

    define(tight)
    beside = kubectl("patch", kind, "edge", "--type=merge", "-p", '{"spec":{"count":2}}')
    changed = kubectl("patch", kind, "edge", "--type=merge", "-p", '{"spec":{"note":"other text"}}')
    fresh = kubectl("create", "-f", "-", stdin=gateway(group, "new", note="long text"))

    assert beside.returncode == 0, beside.stderr
    for refused, name in ((changed, "edge"), (fresh, "new")):
        expected = f'The Gateway "{name}" is invalid: spec.note: Too long: may not be more than 3 bytes\n'
        assert refused.stderr == expected


def test_a_schema_that_is_not_structural_is_refused_with_the_place_of_each_fault(kubectl: Kubectl) -> None:
    properties: Json = {
        "untyped": {},
        "listed": {"type": "array"},
        "pattern": {"type": "string", "pattern": "(?=x)"},
        "ruled": {"type": "string", "x-kubernetes-validations": [{"rule": "self.size() > 'a'"}]},
    }
    schema: Json = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    place = "spec.validation.openAPIV3Schema.properties[spec].properties"

    refused = kubectl("create", "-f", "-", stdin=definition)
    properties["untyped"] = {"type": "string", "maxLenght": 3, "items": [{"desc": 1}]}
    unknown = kubectl("create", "-f", "-", stdin=definition)
    properties["untyped"] = {"type": "string", "maxLength": "3"}
    mistyped = kubectl("create", "--validate=ignore", "-f", "-", stdin=definition)
    del properties["untyped"], properties["listed"], properties["pattern"]
    rule = kubectl("create", "-f", "-", stdin=definition)

    assert f"* {place}[untyped].type: Required value: must not be empty for specified object fields" in refused.stderr
    assert f"* {place}[listed].items: Required value: must be specified" in refused.stderr
    assert "must be a valid regular expression, but isn't: error parsing regexp" in refused.stderr
    start = "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.untyped"
    assert f'unknown field "{start}.items[0].desc", unknown field "{start}.maxLenght"' in unknown.stderr
    assert "(BadRequest)" in mistyped.stderr
    assert f"{start}.maxLength: expected integer, got string" in mistyped.stderr
    assert f"{place}[ruled].x-kubernetes-validations[0].rule" in rule.stderr
    assert "found no matching overload for '_>_' applied to '(int, string)'" in rule.stderr
