"""Discovery and health over HTTP: documents, entity tags, negotiation, checks."""

from typing import Any

import httpx2
import pytest
from starlette.applications import Starlette

from apiserver.machinery.definition import Definition
from apiserver.machinery.discovery import Discovery, verbs_of, version_rank, wants_aggregated
from apiserver.machinery.health import Health
from apiserver.machinery.rest import Served

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


class ReadOnly:
    def __init__(self, definition: Definition) -> None:
        self.definition = definition

    async def get(self, *_: Any) -> Any: ...
    async def list(self, *_: Any) -> Any: ...


class Full(ReadOnly):
    async def watch(self, *_: Any) -> Any: ...
    async def create(self, *_: Any) -> Any: ...
    async def update(self, *_: Any) -> Any: ...
    async def delete(self, *_: Any) -> Any: ...


class Status:
    def __init__(self, definition: Definition) -> None:
        self.definition = definition

    async def get(self, *_: Any) -> Any: ...
    async def update(self, *_: Any) -> Any: ...


def definition(group: str, version: str, kind: str, **more: Any) -> Definition:
    return Definition(group, version, kind, f"{kind.lower()}s", kind.lower(), {"type": "object"}, **more)


WIDGET = definition("example.dev", "v1alpha1", "Widget", short_names=("wd",), categories=("all",))
SERVED = [
    Served(Full(WIDGET), {"status": Status(WIDGET)}),
    Served(Full(definition("example.dev", "v1", "Widget"))),
    Served(ReadOnly(definition("", "v1", "Node", namespaced=False))),
]


def client(*, failing: bool = False, shutting_down: bool = False) -> httpx2.AsyncClient:
    health = Health(
        {"database": lambda: not failing},
        version={"gitVersion": "v1.34.0"},
        paths=lambda: ["/apis"],
        shutting_down=lambda: shutting_down,
    )
    app = Starlette(routes=[*Discovery(SERVED).routes(), *health.routes()])
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://porch")


def test_verbs_follow_from_the_protocols_a_resource_implements() -> None:
    assert verbs_of(Full(WIDGET)) == ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    assert verbs_of(ReadOnly(WIDGET)) == ["get", "list"]
    assert verbs_of(Status(WIDGET)) == ["get", "patch", "update"]


def test_versions_are_preferred_by_maturity_then_by_number() -> None:
    versions = ["v1alpha1", "v1", "v2beta1", "v11", "v1beta2", "v1alpha2", "strange"]

    ordered = sorted(versions, key=version_rank, reverse=True)

    assert ordered == ["v11", "v1", "v2beta1", "v1beta2", "v1alpha2", "v1alpha1", "strange"]


async def test_legacy_documents_list_versions_groups_and_resources() -> None:
    async with client() as http:
        api = (await http.get("/api")).json()
        apis = (await http.get("/apis")).json()
        group = (await http.get("/apis/example.dev")).json()
        resources = (await http.get("/apis/example.dev/v1alpha1")).json()

    assert api["versions"] == ["v1"]
    assert [g["name"] for g in apis["groups"]] == ["example.dev"]
    assert group["preferredVersion"] == {"groupVersion": "example.dev/v1", "version": "v1"}
    assert resources["groupVersion"] == "example.dev/v1alpha1"
    main, status = resources["resources"]
    assert (main["name"], main["singularName"], main["namespaced"]) == ("widgets", "widget", True)
    assert (main["shortNames"], main["categories"]) == (["wd"], ["all"])
    assert (status["name"], status["singularName"]) == ("widgets/status", "")
    assert status["verbs"] == ["get", "patch", "update"]


async def test_aggregated_discovery_is_chosen_by_accept_and_named_by_content_type() -> None:
    async with client() as http:
        core = await http.get("/api", headers={"Accept": AGGREGATED})
        named = await http.get("/apis", headers={"Accept": AGGREGATED})

    for answer in (core, named):
        assert answer.headers["content-type"] == (
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
        )
        assert answer.headers["vary"] == "Accept"
    assert [item["metadata"]["name"] for item in core.json()["items"]] == [""]
    versions = named.json()["items"][0]["versions"]
    assert [version["version"] for version in versions] == ["v1", "v1alpha1"]
    widget = versions[1]["resources"][0]
    assert widget["responseKind"] == {"group": "example.dev", "version": "v1alpha1", "kind": "Widget"}
    assert (widget["scope"], widget["subresources"][0]["subresource"]) == ("Namespaced", "status")


async def test_who_has_the_aggregated_document_is_told_so() -> None:
    accept = AGGREGATED
    async with client() as http:
        first = await http.get("/apis", headers={"Accept": accept})
        again = await http.get("/apis", headers={"Accept": accept, "If-None-Match": first.headers["etag"]})
        other = await http.get("/apis", headers={"Accept": accept, "If-None-Match": '"stale"'})

    assert (again.status_code, again.content) == (304, b"")
    assert other.status_code == 200


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        pytest.param("", False, id="nothing"),
        pytest.param("application/json", False, id="plain"),
        pytest.param(AGGREGATED, True, id="v2"),
        pytest.param(
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", False, id="old-version"
        ),
        pytest.param(
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer", True, id="extra"
        ),
    ],
)
def test_accept_decides_the_form_of_discovery(accept: str, wanted: bool) -> None:
    assert wants_aggregated(accept) is wanted


async def test_health_is_ok_in_one_word_or_check_by_check() -> None:
    async with client() as http:
        short = await http.get("/readyz")
        verbose = await http.get("/readyz?verbose=")
        single = await http.get("/readyz/database")

    assert (short.status_code, short.text) == (200, "ok")
    assert verbose.text == "[+]ping ok\n[+]log ok\n[+]database ok\n[+]shutdown ok\nreadyz check passed\n"
    assert (single.status_code, single.text) == (200, "ok")


async def test_a_failing_database_makes_the_server_unready_but_not_dead() -> None:
    async with client(failing=True) as http:
        ready = await http.get("/readyz")
        live = await http.get("/livez")
        excluded = await http.get("/readyz?verbose&exclude=database&exclude=nothing")

    assert ready.status_code == 500
    assert "[-]database failed: reason withheld" in ready.text
    assert ready.text.endswith("readyz check failed\n")
    assert live.status_code == 200
    assert excluded.status_code == 200
    assert "[+]database excluded: ok" in excluded.text
    assert 'warn: some health checks cannot be excluded: no matches for "nothing"' in excluded.text


async def test_shutdown_makes_the_server_unready_only() -> None:
    async with client(shutting_down=True) as http:
        assert (await http.get("/readyz")).status_code == 500
        assert (await http.get("/healthz")).status_code == 200


async def test_version_and_index_are_indented_json() -> None:
    async with client() as http:
        version = await http.get("/version")
        slashed = await http.get("/version/")
        index = await http.get("/")

    assert version.text == slashed.text == '{\n  "gitVersion": "v1.34.0"\n}\n'
    assert {"/apis", "/readyz", "/version", "/livez/ping"} <= set(index.json()["paths"])
