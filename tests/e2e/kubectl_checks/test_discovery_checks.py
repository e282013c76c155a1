"""Discovery and documents as kubectl reads them: rows 1 to 5 and 8 to 10 of ``kube-api.md`` 7.2."""

import json
import re
from collections.abc import Iterator
from typing import Any

from kubectl import Kubectl, needs_kubectl
from porch_process import PorchProcess

Json = dict[str, Any]
PORCH_DOCUMENT = "/openapi/v3/apis/porch.kpt.dev/v1alpha1"


def nodes(value: Any) -> Iterator[Json]:
    if isinstance(value, dict):
        yield value
        for child in value.values():
            yield from nodes(child)
    elif isinstance(value, list):
        for child in value:
            yield from nodes(child)


def not_modified(kubectl: Kubectl) -> int:
    """Return how often the server has answered 304, as its metrics say."""
    counts = re.findall(
        r'^apiserver_request_total{.*code="304".*} (\S+)$', kubectl.ok("get", "--raw", "/metrics"), re.MULTILINE
    )
    return sum(int(float(count)) for count in counts)


def test_row_01_version_shows_the_servers_version(server_kubectl: Kubectl) -> None:
    done = server_kubectl("version")

    assert done.returncode == 0, done.stderr
    assert re.search(r"^Server Version: v1\.34\.\d+\+porch$", done.stdout, re.MULTILINE), done.stdout


def test_row_02_api_versions_lists_ours(kubectl: Kubectl) -> None:
    versions = kubectl.ok("api-versions").split()

    assert {"porch.kpt.dev/v1alpha1", "config.porch.kpt.dev/v1alpha1", "apiextensions.k8s.io/v1", "v1"} <= set(versions)


def test_row_03_api_resources_shows_the_resources_of_our_group_with_their_verbs(kubectl: Kubectl) -> None:
    lines = kubectl.ok("api-resources", "--api-group=porch.kpt.dev", "-o", "wide", "--no-headers").splitlines()

    # Name, API version, namespaced, kind, verbs.
    shown = {name: (kind, verbs) for name, _, _, kind, verbs in map(str.split, lines)}
    assert shown == {
        "packagerevisions": ("PackageRevision", "create,delete,deletecollection,get,list,patch,update,watch"),
        "packagerevisionresources": ("PackageRevisionResources", "get,list,patch,update"),
        "packages": ("PorchPackage", "create,delete,get,list,patch,update"),
        "packagevariantsetpreviews": ("PackageVariantSetPreview", "create"),
    }


def test_row_04_who_asks_again_is_told_that_nothing_changed(server_kubectl: Kubectl) -> None:
    needs_kubectl(30, "discovery in the form that Kubernetes 1.34 serves")
    first = server_kubectl.ok("api-resources")
    before = not_modified(server_kubectl)
    again = server_kubectl.ok("api-resources")

    assert again == first
    assert not_modified(server_kubectl) >= before + 2, "/api and /apis"


def test_row_05_legacy_discovery_lists_the_groups(kubectl: Kubectl) -> None:
    groups = json.loads(kubectl.ok("get", "--raw", "/apis"))

    assert groups["kind"] == "APIGroupList"
    (ours,) = [group for group in groups["groups"] if group["name"] == "porch.kpt.dev"]
    assert ours["preferredVersion"] == {"groupVersion": "porch.kpt.dev/v1alpha1", "version": "v1alpha1"}


def test_row_08_explain_prints_the_types_to_the_last_field(kubectl: Kubectl) -> None:
    printed = kubectl.ok("explain", "packagerevisions.spec.tasks", "--recursive")

    fields = dict(re.findall(r"^\s+(\w+)\t<([^>]+(?:>)?)>", printed, re.MULTILINE))
    assert fields["type"] == "string"
    assert fields["clone"] == "Object"
    assert fields["repo"] == "string", "of a clone's Git reference, four levels down"


def test_row_09_the_document_of_a_group_is_openapi_3_0(kubectl: Kubectl) -> None:
    document = json.loads(kubectl.ok("get", "--raw", PORCH_DOCUMENT))

    def resolves(reference: str) -> bool:
        node: Any = document
        for part in reference.removeprefix("#/").split("/"):
            node = node.get(part) if isinstance(node, dict) else None
        return node is not None

    references = {node["$ref"] for node in nodes(document) if isinstance(node.get("$ref"), str)}
    operations = [
        operation
        for item in document["paths"].values()
        for method, operation in item.items()
        if method in ("get", "put", "post", "delete", "patch")
    ]
    names = [operation["operationId"] for operation in operations]
    assert document["openapi"].startswith("3.0.")
    assert {"title", "version"} <= set(document["info"])
    assert references
    assert all(resolves(reference) for reference in references)
    assert len(names) == len(set(names))
    assert all(operation["responses"] for operation in operations)


def test_row_10_a_stale_hash_leads_to_the_right_one(porch_server: PorchProcess) -> None:
    # A kube-apiserver lets no server behind it redirect anybody; it asks for the right one itself.
    porch = porch_server.own_client()
    paths = porch.request("GET", "/openapi/v3").object["paths"]
    fresh = paths["apis/porch.kpt.dev/v1alpha1"]["serverRelativeURL"]

    stale = porch.request("GET", f"{PORCH_DOCUMENT}?hash=STALE")
    right = porch.request("GET", fresh)

    assert (stale.code, stale.headers["location"]) == (301, fresh)
    assert right.code == 200
    assert right.headers["cache-control"] == "public, immutable"
    porch.close()
