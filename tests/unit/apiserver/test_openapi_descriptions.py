"""Every field of every kind that a standalone server serves is described: what ``kubectl explain`` prints."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apiserver.machinery.openapi import OpenApi
from apiserver.settings import Settings
from apiserver.standalone import create_server

Json = dict[str, Any]


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Json]:
    openapi = OpenApi(create_server(Settings(data=tmp_path_factory.mktemp("data"))).served)
    return {name: openapi.document_v3(name) for name in openapi.group_versions}


def undescribed(schema: Any, path: str) -> Iterator[str]:
    if not isinstance(schema, dict):
        return
    for name, child in (schema.get("properties") or {}).items():
        if not child.get("description") and "$ref" not in child and "allOf" not in child:
            yield f"{path}.{name}"
        yield from undescribed(child, f"{path}.{name}")
    yield from undescribed(schema.get("items"), f"{path}[]")
    yield from undescribed(schema.get("additionalProperties"), f"{path}{{}}")


def test_every_field_is_described(documents: dict[str, Json]) -> None:
    schemas = {
        name: schema for document in documents.values() for name, schema in document["components"]["schemas"].items()
    }

    assert len(schemas) > 50
    assert [name for name, schema in schemas.items() if not schema.get("description")] == []
    assert [path for name, schema in schemas.items() for path in undescribed(schema, name)] == []


def test_every_reference_resolves_and_every_operation_has_a_name_of_its_own(documents: dict[str, Json]) -> None:
    for name, document in documents.items():
        known = {f"#/components/schemas/{schema}" for schema in document["components"]["schemas"]}
        operations = [
            value["operationId"]
            for item in document["paths"].values()
            for value in item.values()
            if isinstance(value, dict) and "operationId" in value
        ]

        assert set(references(document)) <= known, name
        assert len(operations) == len(set(operations)), name


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for child in value.values():
            yield from references(child)
    elif isinstance(value, list):
        for child in value:
            yield from references(child)


def test_the_committed_documents_are_those_of_the_served_groups(documents: dict[str, Json]) -> None:
    folder = Path(__file__).parents[3] / "openapi" / "v3"

    assert {str(path.relative_to(folder))[: -len(".json")] for path in folder.rglob("*.json")} == set(documents)
