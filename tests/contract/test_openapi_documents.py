"""The OpenAPI documents over HTTP: what clients look for in them, their hashes, and the Swagger form."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from starlette.routing import Router

from apiserver.machinery.openapi import OpenApi
from apiserver.machinery.rest import Served
from apiserver.machinery.status import ErrorBoundary
from apiserver.resources.config import repository_definition
from apiserver.resources.core import core_definitions

Json = dict[str, Any]
CONFIG = "apis/config.porch.kpt.dev/v1alpha1"


class Everything:
    def __init__(self, definition: Any) -> None:
        self.definition = definition

    async def get(self, *_: Any) -> Any: ...
    async def list(self, *_: Any) -> Any: ...
    async def watch(self, *_: Any) -> Any: ...
    async def create(self, *_: Any) -> Any: ...
    async def update(self, *_: Any) -> Any: ...
    async def delete(self, *_: Any) -> Any: ...


class Status:
    def __init__(self, definition: Any) -> None:
        self.definition = definition

    async def get(self, *_: Any) -> Any: ...
    async def update(self, *_: Any) -> Any: ...


def openapi() -> OpenApi:
    definitions = [*core_definitions(), repository_definition()]
    return OpenApi([Served(Everything(d), {"status": Status(d)} if d.status else {}) for d in definitions])


def client(documents: OpenApi | None = None) -> httpx2.AsyncClient:
    app = ErrorBoundary(Router(routes=(documents or openapi()).routes()))
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://porch")


def nodes(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
        for child in value.values():
            yield from nodes(child)
    elif isinstance(value, list):
        for child in value:
            yield from nodes(child)


def resolves(document: Json, reference: str) -> bool:
    node: Any = document
    for part in reference.removeprefix("#/").split("/"):
        node = node.get(part)
        if node is None:
            return False
    return True


@pytest.mark.parametrize("name", ["api/v1", CONFIG])
def test_every_reference_resolves_and_operations_have_names_of_their_own(name: str) -> None:
    document = openapi().document_v3(name)

    references = {node["$ref"] for node in nodes(document) if isinstance(node.get("$ref"), str)}
    names = [node["operationId"] for node in nodes(document["paths"]) if "operationId" in node]

    assert references
    assert all(resolves(document, reference) for reference in references)
    assert len(names) == len(set(names))


def test_kubectl_finds_a_patch_with_field_validation_for_each_kind() -> None:
    documents = openapi()
    kinds = {}
    for name in documents.group_versions:
        for item in documents.document_v3(name)["paths"].values():
            if patch := item.get("patch"):
                parameters = {parameter["name"] for parameter in patch["parameters"]}
                kinds[patch["x-kubernetes-group-version-kind"]["kind"]] = parameters

    assert set(kinds) == {"ConfigMap", "Secret", "Namespace", "ServiceAccount", "Lease", "Event", "Repository"}
    assert all({"fieldValidation", "dryRun", "fieldManager", "force"} <= names for names in kinds.values())


def test_strategic_merge_is_offered_for_core_kinds_only() -> None:
    documents = openapi()
    strategic = "application/strategic-merge-patch+json"

    core = documents.document_v3("api/v1")["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"]
    config = documents.document_v3(CONFIG)["paths"][f"/{CONFIG}/namespaces/{{namespace}}/repositories/{{name}}"][
        "patch"
    ]

    assert strategic in core["requestBody"]["content"]
    assert list(config["requestBody"]["content"]) == [
        "application/apply-patch+yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
    ]


def test_lists_that_merge_say_by_what() -> None:
    schemas = openapi().document_v3("api/v1")["components"]["schemas"]

    conditions = schemas["io.k8s.api.core.v1.Namespace"]["properties"]["status"]["properties"]["conditions"]
    owners = schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]["properties"]["ownerReferences"]

    assert conditions["x-kubernetes-patch-merge-key"] == "type"
    assert owners["x-kubernetes-patch-merge-key"] == "uid"


def test_every_property_of_a_kind_is_described() -> None:
    documents = openapi()
    schemas = documents.document_v3(CONFIG)["components"]["schemas"]
    repository = schemas["dev.kpt.porch.config.v1alpha1.Repository"]

    bare = [
        name
        for node in nodes(repository)
        for name, child in node.get("properties", {}).items()
        if not child.get("description")
    ]

    assert repository["x-kubernetes-group-version-kind"] == [
        {"group": "config.porch.kpt.dev", "version": "v1alpha1", "kind": "Repository"}
    ]
    assert bare == []


async def test_a_document_is_found_by_its_hash_and_may_be_kept_for_a_year() -> None:
    async with client() as http:
        root = (await http.get("/openapi/v3")).json()["paths"]
        answer = await http.get(root[CONFIG]["serverRelativeURL"])
        unchanged = await http.get(f"/openapi/v3/{CONFIG}", headers={"If-None-Match": answer.headers["etag"]})
        stale = await http.get(f"/openapi/v3/{CONFIG}?hash=OLD")
        missing = await http.get("/openapi/v3/apis/nowhere/v1")

    assert set(root) == {"api/v1", "apis/coordination.k8s.io/v1", CONFIG}
    assert answer.json()["openapi"] == "3.0.0"
    assert answer.headers["cache-control"] == "public, immutable"
    assert "expires" in answer.headers
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert (stale.status_code, stale.headers["location"]) == (301, root[CONFIG]["serverRelativeURL"])
    assert missing.status_code == 404


async def test_v2_is_served_in_the_form_a_client_takes() -> None:
    protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    async with client() as http:
        encoded = await http.get("/openapi/v2", headers={"Accept": protobuf})
        both = await http.get("/openapi/v2", headers={"Accept": f"{protobuf}, application/json"})
        refused = await http.get("/openapi/v2", headers={"Accept": "application/cbor"})

    assert encoded.content.startswith(b"\x0a\x032.0"), "the version stands first"
    assert encoded.headers["content-type"] == "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
    assert both.json()["swagger"] == "2.0"
    assert (refused.status_code, refused.json()["reason"]) == (406, "NotAcceptable")


async def test_swagger_holds_everything_in_its_own_form() -> None:
    documents = openapi()
    async with client(documents) as http:
        swagger = (await http.get("/openapi/v2")).json()

    paths = {path for name in documents.group_versions for path in documents.document_v3(name)["paths"]}
    references = {node["$ref"] for node in nodes(swagger) if isinstance(node.get("$ref"), str)}
    post = swagger["paths"][f"/{CONFIG}/namespaces/{{namespace}}/repositories"]["post"]

    assert swagger["swagger"] == "2.0"
    assert set(swagger["paths"]) == paths
    assert all(resolves(swagger, reference) for reference in references)
    assert post["parameters"][0]["in"] == "body"
    assert all("type" in parameter for parameter in post["parameters"][1:])
    assert not any("requestBody" in node or "nullable" in node for node in nodes(swagger["paths"]))


def test_the_documents_are_the_same_every_time() -> None:
    assert openapi().files() == openapi().files()
    documents = {"swagger.json", "v3/api/v1.json", "v3/apis/coordination.k8s.io/v1.json", f"v3/{CONFIG}.json"}
    assert set(openapi().files()) == documents
