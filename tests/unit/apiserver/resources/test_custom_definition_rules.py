"""What a CustomResourceDefinition may say, and what a change of one may change."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from custom_kinds import definition, version

from apiserver.resources.custom.definitions import crd_definition
from apiserver.resources.custom.validation import approval_condition, definition_causes

Json = dict[str, Any]
Edit = Callable[[Json], None]


def prepared(*versions: Json, **names: Any) -> Json:
    """Return a definition as it is when it is checked: with everything filled in."""
    crd = definition(*versions, **names)
    prepare = crd_definition().prepare
    assert prepare is not None
    prepare(crd, None)
    return crd


def fields(causes: Any) -> dict[str, str]:
    return {cause.field: cause.message for cause in causes}


def edited(path: str, value: Any) -> Edit:
    def edit(crd: Json) -> None:
        node: Any = crd
        *parents, last = path.split(".")
        for name in parents:
            node = node[int(name)] if name.isdigit() else node.setdefault(name, {})
        node[last] = value

    return edit


def test_a_plain_definition_is_valid() -> None:
    assert definition_causes(prepared(), None) == []


@pytest.mark.parametrize(
    ("path", "value", "field", "message"),
    [
        ("metadata.name", "x.example.com", "metadata.name", 'must be spec.names.plural+"."+spec.group'),
        ("spec.group", "", "spec.group", "Required value"),
        ("spec.group", "example", "spec.group", "should be a domain with at least one dot"),
        ("spec.group", "Example.com", "spec.group", "RFC 1123 subdomain"),
        ("spec.scope", "", "spec.scope", "Required value"),
        ("spec.scope", "Everywhere", "spec.scope", 'supported values: "Cluster", "Namespaced"'),
        ("spec.names.kind", "1Widget", "spec.names.kind", "may have mixed case, but should otherwise match"),
        ("spec.names.listKind", "Widget", "spec.names.listKind", "kind and listKind may not be the same"),
        ("spec.names.singular", "Widget", "spec.names.singular", "DNS-1035"),
        ("spec.names.shortNames", ["ok", "not_ok"], "spec.names.shortNames[1]", "DNS-1035"),
        ("spec.names.categories", ["A"], "spec.names.categories[0]", "DNS-1035"),
        ("spec.preserveUnknownFields", True, "spec.preserveUnknownFields", "cannot set to true"),
        ("spec.conversion", {"strategy": "Webhook"}, "spec.conversion.strategy", 'supported values: "None"'),
        ("spec.conversion", {"strategy": "None", "webhook": {}}, "spec.conversion.webhook", "should not be set"),
        ("spec.versions.0.name", "1", "spec.versions[0].name", "DNS-1035"),
        ("spec.versions.0.storage", False, "spec.versions", "must have exactly one version marked as storage version"),
        ("spec.versions.0.schema", None, "spec.versions[0].schema.openAPIV3Schema", "Required value"),
        ("spec.versions.0.deprecationWarning", "x", "spec.versions[0].deprecationWarning", "deprecated versions"),
        (
            "spec.versions.0.additionalPrinterColumns",
            [{"name": "A", "type": "text", "jsonPath": "spec"}],
            "spec.additionalPrinterColumns[0].type",
            "must be one of boolean,date,integer,number,string",
        ),
        (
            "spec.versions.0.additionalPrinterColumns",
            [{"name": "A", "type": "string", "jsonPath": ".spec["}],
            "spec.additionalPrinterColumns[0].JSONPath",
            "Invalid value",
        ),
        (
            "spec.versions.0.selectableFields",
            [{"jsonPath": ".spec.none"}],
            "spec.selectableFields[0].jsonPath",
            "does not refer to a valid field",
        ),
        (
            "spec.versions.0.selectableFields",
            [{"jsonPath": ".spec"}],
            "spec.selectableFields[0].jsonPath",
            "string, boolean or integer",
        ),
        (
            "spec.versions.0.selectableFields",
            [{"jsonPath": ".spec.size"}, {"jsonPath": ".spec.size"}],
            "spec.selectableFields[1].jsonPath",
            "Duplicate value",
        ),
        (
            "spec.versions.0.selectableFields",
            [{"jsonPath": f".spec.f{number}"} for number in range(9)],
            "spec.selectableFields",
            "must have at most 8 items",
        ),
        (
            "spec.versions.0.subresources",
            {"scale": {"specReplicasPath": ".status.replicas", "statusReplicasPath": ".status.replicas"}},
            "spec.subresources.scale.specReplicasPath",
            "should be a json path under .spec",
        ),
        ("spec.versions", [version(f"v{number}") for number in range(1, 66)], "spec.versions", "Too many: 65"),
        (
            "spec.versions.0.additionalPrinterColumns",
            [{"name": "A", "type": "string", "jsonPath": ".a"}] * 65,
            "spec.additionalPrinterColumns",
            "Too many: 65",
        ),
        ("status.storedVersions", ["v0", "v1"], "status.storedVersions[0]", "v0 was previously a storage version"),
        ("status.storedVersions", [], "status.storedVersions", "must have at least one stored version"),
    ],
)
def test_each_mistake_is_named_where_it_stands(path: str, value: Any, field: str, message: str) -> None:
    crd = prepared()
    edited(path, value)(crd)

    found = fields(definition_causes(crd, None))

    assert field in found, found
    assert message in found[field]


def test_what_differs_between_versions_is_named_with_its_version() -> None:
    bad = version("v2", storage=False, additionalPrinterColumns=[{"name": "A", "type": "text", "jsonPath": ".a"}])

    found = fields(definition_causes(prepared(version(), bad), None))

    assert list(found) == ["spec.versions[1].additionalPrinterColumns[0].type"]


def test_two_versions_of_one_name_and_two_storage_versions_are_refused() -> None:
    found = [cause.message for cause in definition_causes(prepared(version(), version()), None)]

    assert any("must contain unique version names" in message for message in found)
    assert any("must have exactly one version marked as storage version" in message for message in found)


@pytest.mark.parametrize("approval", ["https://github.com/kubernetes/enhancements/pull/1111", "unapproved, for a test"])
def test_groups_of_kubernetes_need_an_approval(approval: str) -> None:
    crd = prepared(group="apps.k8s.io")
    approved = copy.deepcopy(crd)
    approved["metadata"]["annotations"] = {"api-approved.kubernetes.io": approval}
    nonsense = copy.deepcopy(crd)
    nonsense["metadata"]["annotations"] = {"api-approved.kubernetes.io": "sure"}

    condition = approval_condition(approved)
    assert condition is not None
    assert condition.status == str(approval.startswith("https"))
    assert approval_condition(prepared()) is None
    assert definition_causes(approved, None) == []
    assert list(fields(definition_causes(crd, None))) == ["metadata.annotations[api-approved.kubernetes.io]"]
    assert list(fields(definition_causes(nonsense, None))) == ["metadata.annotations[api-approved.kubernetes.io]"]


@pytest.mark.parametrize(
    ("path", "value", "established", "field"),
    [
        ("spec.scope", "Cluster", "True", "spec.scope"),
        ("spec.names.kind", "Other", "True", "spec.names.kind"),
        ("spec.scope", "Cluster", "False", ""),
    ],
)
def test_what_storage_depends_on_is_immutable_once_established(
    path: str, value: str, established: str, field: str
) -> None:
    old = prepared()
    old["status"]["conditions"] = [{"type": "Established", "status": established}]
    new = copy.deepcopy(old)
    edited(path, value)(new)

    found = fields(definition_causes(new, old))

    assert list(found) == ([field] if field else [])
    assert all("field is immutable" in message for message in found.values())


def test_names_list_kind_and_conversion_are_filled_in_and_storage_versions_are_remembered() -> None:
    crd = prepared(version("v1", storage=False), version("v2"))

    assert crd["spec"]["names"] == {
        "plural": "widgets",
        "kind": "Widget",
        "singular": "widget",
        "listKind": "WidgetList",
    }
    assert crd["spec"]["conversion"] == {"strategy": "None"}
    assert crd["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v2"],
    }
