"""Tells clients what is served: the legacy group and resource lists, and aggregated discovery v2.

Everything follows from the served definitions and from the verb protocols that each resource
implements. Documents are built once per set of definitions. Source: ``kube-api.md`` 1.6.
"""

import base64
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from apiserver.machinery.definition import Definition
from apiserver.machinery.rest import Creater, Deleter, Getter, Lister, Resource, Served, Updater, Watcher

Json = dict[str, Any]

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
"""Content type of aggregated discovery; clients tell by it, not by the body, which form they got."""

_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_MATURITY: Final = {None: 2, "beta": 1, "alpha": 0}


def verbs_of(resource: Resource) -> list[str]:
    """Return a resource's verbs, sorted, from the protocols it implements."""
    verbs: list[str] = []
    for protocol, names in (
        (Creater, ["create"]),
        (Deleter, ["delete"]),
        (Getter, ["get"]),
        (Lister, ["list"]),
        (Updater, ["patch", "update"]),
        (Watcher, ["watch"]),
    ):
        if isinstance(resource, protocol):
            verbs += names
    return verbs


def version_rank(version: str) -> tuple[int, int, int, str]:
    """Return a sort key that puts the version clients should prefer last: v1 > v1beta2 > v1alpha1 > others."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (-1, 0, 0, version)
    major, maturity, minor = match.groups()
    return (_MATURITY[maturity], int(major), int(minor or 0), version)


@dataclass(frozen=True, slots=True)
class _Document:
    """An encoded answer with its entity tag."""

    body: bytes
    etag: str

    @classmethod
    def of(cls, content: Json) -> "_Document":
        body = orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE)
        return cls(body, f'"{hashlib.sha512(body).hexdigest().upper()}"')


class Discovery:
    """The discovery documents of a set of served resources.

    ``priorities`` orders groups, highest first (0 where not given), then by name.
    """

    def __init__(self, served: Sequence[Served], *, priorities: Mapping[str, int] | None = None) -> None:
        ranks = priorities or {}
        groups: dict[str, dict[str, list[Served]]] = defaultdict(lambda: defaultdict(list))
        for one in served:
            definition = one.resource.definition
            groups[definition.group][definition.version].append(one)
        self._groups = {
            group: {
                version: groups[group][version] for version in sorted(groups[group], key=version_rank, reverse=True)
            }
            for group in sorted(groups, key=lambda name: (-ranks.get(name, 0), name))
        }
        core = {"": self._groups[""]} if "" in self._groups else {}
        named = {group: versions for group, versions in self._groups.items() if group}
        self._aggregated = {"/api": _Document.of(_aggregated(core)), "/apis": _Document.of(_aggregated(named))}

    def routes(self) -> list[Route]:
        """Return the routes of ``/api``, ``/apis`` and of each group and group-version below them."""
        routes = [Route("/api", self._serve_root), Route("/apis", self._serve_root)]
        for path, document in self._documents().items():
            routes.append(Route(path, _fixed(_Document.of(document))))
        return routes

    def paths(self) -> list[str]:
        """Return the paths answered here, for the index at ``/``."""
        return ["/api", "/apis", *self._documents()]

    def _documents(self) -> dict[str, Json]:
        documents = {}
        for group, versions in self._groups.items():
            if group:
                documents[f"/apis/{group}"] = {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)}
            for version, served in versions.items():
                prefix = f"/apis/{group}/{version}" if group else f"/api/{version}"
                documents[prefix] = _resource_list(group, version, served)
        return documents

    async def _serve_root(self, request: Request) -> Response:
        path = request.url.path.rstrip("/")
        if wants_aggregated(request.headers.get("accept", "")):
            headers = {"Vary": "Accept", "Cache-Control": "public"}
            return _conditional(request, self._aggregated[path], AGGREGATED, headers)
        content = self._versions(request) if path == "/api" else self._group_list()
        return _conditional(request, _Document.of(content), "application/json", {"Vary": "Accept"})

    def _versions(self, request: Request) -> Json:
        address = [{"clientCIDR": "0.0.0.0/0", "serverAddress": request.headers.get("host", "")[:256]}]
        return {
            "kind": "APIVersions",
            "versions": list(self._groups.get("", {})),
            "serverAddressByClientCIDRs": address,
        }

    def _group_list(self) -> Json:
        groups = [_group(group, versions) for group, versions in self._groups.items() if group]
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def wants_aggregated(accept: str) -> bool:
    """Tell whether any clause of an Accept header asks for aggregated discovery v2; other parameters are ignored."""
    wanted = {"g=apidiscovery.k8s.io", "v=v2", "as=apigroupdiscoverylist"}
    for clause in accept[:4096].split(","):
        media_type, *parameters = (part.strip().lower() for part in clause.split(";"))
        if media_type == "application/json" and wanted <= set(parameters):
            return True
    return False


def _fixed(document: _Document) -> Any:
    async def serve(request: Request) -> Response:
        return _conditional(request, document, "application/json", {})

    return serve


def _conditional(request: Request, document: _Document, media_type: str, headers: Mapping[str, str]) -> Response:
    every = {"ETag": document.etag, **headers}
    if request.headers.get("if-none-match") == document.etag:
        return Response(status_code=304, headers=every)
    # Set by hand: Starlette would add a charset, and clients compare the whole value.
    return Response(document.body, headers={**every, "Content-Type": media_type})


def _group(group: str, versions: Iterable[str]) -> Json:
    entries = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": entries, "preferredVersion": entries[0]}


def _resource_list(group: str, version: str, served: Sequence[Served]) -> Json:
    resources = []
    for one in served:
        resources.append(_legacy_resource(one.resource, one.resource.definition.plural))
        for name, subresource in sorted(one.subresources.items()):
            resources.append(_legacy_resource(subresource, f"{one.resource.definition.plural}/{name}"))
    api_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": resources}


def _legacy_resource(resource: Resource, name: str) -> Json:
    definition = resource.definition
    is_subresource = "/" in name
    entry: Json = {
        "name": name,
        "singularName": "" if is_subresource else definition.singular,
        "namespaced": definition.namespaced,
        "kind": definition.kind,
        "verbs": verbs_of(resource),
    }
    if not is_subresource:
        entry |= _names(definition) | {"storageVersionHash": _storage_hash(definition)}
    return entry


def _names(definition: Definition) -> Json:
    names: Json = {}
    if definition.short_names:
        names["shortNames"] = list(definition.short_names)
    if definition.categories:
        names["categories"] = list(definition.categories)
    return names


def _storage_hash(definition: Definition) -> str:
    identity = f"{definition.group}/{definition.version}/{definition.kind}"
    return base64.b64encode(hashlib.sha256(identity.encode()).digest()[:8]).decode()


def _aggregated(groups: Mapping[str, Mapping[str, Sequence[Served]]]) -> Json:
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None},
            "versions": [
                {"version": version, "resources": [_aggregated_resource(s) for s in served], "freshness": "Current"}
                for version, served in versions.items()
            ],
        }
        for group, versions in groups.items()
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _aggregated_resource(served: Served) -> Json:
    definition = served.resource.definition
    entry: Json = {
        "resource": definition.plural,
        "responseKind": _response_kind(definition),
        "scope": "Namespaced" if definition.namespaced else "Cluster",
        "singularResource": definition.singular,
        "verbs": verbs_of(served.resource),
        **_names(definition),
    }
    if served.subresources:
        entry["subresources"] = [
            {"subresource": name, "responseKind": _response_kind(sub.definition), "verbs": verbs_of(sub)}
            for name, sub in sorted(served.subresources.items())
        ]
    return entry


def _response_kind(definition: Definition) -> Json:
    return {"group": definition.group, "version": definition.version, "kind": definition.kind}
