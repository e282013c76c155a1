import json
import lzma

import pytest

from krm.functions.catalog.schemas.json_schema import json_schema
from krm.functions.catalog.schemas.make_bundle import bundle
from krm.functions.catalog.schemas.openapi import kubernetes_document, kubernetes_text
from krm.functions.catalog.schemas.violations import Checker


@pytest.mark.parametrize("strict", [False, True])
def test_every_schema_of_kubernetes_compiles(strict: bool) -> None:
    document = kubernetes_document()

    for (api_version, kind), schema in document.kinds.items():
        checker = Checker(json_schema(document, schema, strict=strict))
        assert checker.violations({"apiVersion": api_version, "kind": kind, "metadata": None, "items": []}) is not None


@pytest.mark.parametrize(
    "kind",
    [
        ("v1", "Pod"),
        ("apps/v1", "StatefulSet"),
        ("batch/v1", "CronJob"),
        ("networking.k8s.io/v1", "Ingress"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ],
)
def test_the_kinds_of_a_recent_release_are_there(kind: tuple[str, str]) -> None:
    assert kind in kubernetes_document().kinds


def test_the_carried_document_is_what_the_script_makes_of_it() -> None:
    assert bundle(kubernetes_text().encode()) == lzma.compress(
        kubernetes_text().encode(), preset=9 | lzma.PRESET_EXTREME
    )


def test_the_bundle_keeps_what_validation_needs_and_nothing_else() -> None:
    schema = {
        "description": "x",
        "type": "object",
        "properties": {"description": {"type": "string", "description": "x", "default": ""}},
        "required": ["description"],
        "additionalProperties": {"type": "string", "description": "x"},
        "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "A"}],
        "x-kubernetes-patch-strategy": "merge",
    }
    kept = json.loads(lzma.decompress(bundle(json.dumps({"paths": {}, "definitions": {"A": schema}}).encode())))

    assert kept == {
        "definitions": {
            "A": {
                "type": "object",
                "properties": {"description": {"type": "string"}},
                "required": ["description"],
                "additionalProperties": {"type": "string"},
                "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "A"}],
            }
        }
    }
