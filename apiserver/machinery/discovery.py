"""Tells clients what is served: the legacy group and resource lists, and aggregated discovery v2.

Everything follows from the served definitions and from the verb protocols that each resource
implements. Each document is built when it is first asked for and again only after a change of what it
is about. Source: ``kube-api.md`` 1.6.
"""

import base64
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from apiserver.machinery.definition import Definition
from apiserver.machinery.negotiate import Shape, negotiate
from apiserver.machinery.reply import Headers, Reply, formatted, plain
from apiserver.machinery.rest import (
    Creater,
    Deleter,
    Getter,
    Lister,
    Resource,
    Served,
    SubresourceCreater,
    Updater,
    Watcher,
)
from krm.meta.errors import NotServed

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
        (SubresourceCreater, ["create"]),
        (Deleter, ["delete"]),
        (Getter, ["get"]),
        (Lister, ["list"]),
        (Updater, ["patch", "update"]),
        (Watcher, ["watch"]),
    ):
        if isinstance(resource, protocol):
            verbs += names
    if not resource.definition.patchable and "patch" in verbs:
        verbs.remove("patch")
    if {"delete", "list"} <= set(verbs) and resource.definition.delete_collection:
        verbs.insert(verbs.index("delete") + 1, "deletecollection")
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


class _GroupVersion:
    """What is served under one group and version; a change of that makes a new one."""

    def __init__(self, group: str, version: str, served: Sequence[Served]) -> None:
        self.group = group
        self.version = version
        self.served = served

    @property
    def path(self) -> str:
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    @cached_property
    def document(self) -> bytes:
        return orjson.dumps(_resource_list(self.group, self.version, self.served))

    @cached_property
    def aggregated(self) -> orjson.Fragment:
        resources = [_aggregated_resource(served) for served in self.served]
        return orjson.Fragment(orjson.dumps({"version": self.version, "resources": resources, "freshness": "Current"}))


class Discovery:
    """The discovery documents of a set of served resources.

    ``priorities`` orders groups, highest first (0 where not given), then by name. ``known`` lends what it has
    made of group-versions that are the same here.
    """

    def __init__(
        self,
        served: Sequence[Served],
        *,
        priorities: Mapping[str, int] | None = None,
        known: "Discovery | None" = None,
    ) -> None:
        ranks = priorities or {}
        groups: dict[str, dict[str, list[Served]]] = defaultdict(lambda: defaultdict(list))
        for one in served:
            definition = one.resource.definition
            groups[definition.group][definition.version].append(one)
        self._groups = {
            group: {
                version: _same_or_new(known, group, version, groups[group][version])
                for version in sorted(groups[group], key=version_rank, reverse=True)
            }
            for group in sorted(groups, key=lambda name: (-ranks.get(name, 0), name))
        }

    def routes(self) -> list[Route]:
        """Return the routes of ``/api``, ``/apis`` and of each group and group-version below them."""
        return [
            Route("/api", self._serve_root),
            Route("/apis", self._serve_root),
            Route("/api/{below:path}", self._serve_below),
            Route("/apis/{below:path}", self._serve_below),
        ]

    def paths(self) -> list[str]:
        """Return the paths answered here, for the index at ``/``."""
        groups = [f"/apis/{group}" for group in self._groups if group]
        below = [version.path for versions in self._groups.values() for version in versions.values()]
        return ["/api", "/apis", *groups, *below]

    def group_version(self, group: str, version: str) -> "_GroupVersion | None":
        """Return what is served under a group and version."""
        return self._groups.get(group, {}).get(version)

    @cached_property
    def _aggregated(self) -> dict[str, _Document]:
        core = {"": self._groups[""]} if "" in self._groups else {}
        named = {group: versions for group, versions in self._groups.items() if group}
        return {"/api": _Document.of(_aggregated(core)), "/apis": _Document.of(_aggregated(named))}

    async def _serve_root(self, request: Request) -> Response | Reply:
        path = request.url.path.rstrip("/")
        if wants_aggregated(request.headers.get("accept", "")):
            return _conditional(request, self._aggregated[path])
        content = self._versions(request) if path == "/api" else self._group_list()
        return await _negotiated(request, orjson.dumps(content), [(b"vary", b"Accept")])

    async def _serve_below(self, request: Request) -> ASGIApp:
        path = request.url.path.strip("/").split("/")
        if path in (["api"], ["apis"]):
            return await self._serve_root(request)
        document = self._below(path)
        if document is not None:
            return await _negotiated(request, document)
        if path[0] == "api" or (len(path) > 2 and path[1] in self._groups):  # noqa: PLR2004 — apis, group, version
            raise NotServed
        return plain("404 page not found\n", status=404)

    def _below(self, path: Sequence[str]) -> bytes | None:
        match path:
            case ["apis", group, version] if group:
                found = self.group_version(group, version)
            case ["api", version]:
                found = self.group_version("", version)
            case ["apis", group] if group and group in self._groups:
                return orjson.dumps({"kind": "APIGroup", "apiVersion": "v1", **_group(group, self._groups[group])})
            case _:
                return None
        return found.document if found else None

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


def _same_or_new(known: Discovery | None, group: str, version: str, served: Sequence[Served]) -> _GroupVersion:
    found = known.group_version(group, version) if known else None
    if found is None or [id(one) for one in found.served] != [id(one) for one in served]:
        return _GroupVersion(group, version, served)
    return found


async def _negotiated(request: Request, document: bytes, headers: Headers = ()) -> Reply:
    """Return a document as JSON or YAML.

    Raises:
        NotAcceptable: the client takes neither.
    """
    form = negotiate(request.headers.get("accept", ""), Shape.ITEM)
    return await formatted([document], form, headers=headers)


def _conditional(request: Request, document: _Document) -> Response:
    """Return an aggregated document, or that the client has it."""
    headers = {"ETag": document.etag, "Vary": "Accept", "Cache-Control": "public"}
    if request.headers.get("if-none-match") == document.etag:
        return Response(status_code=304, headers=headers)
    # Set by hand: Starlette would add a charset, and clients compare the whole value.
    return Response(document.body, headers={**headers, "Content-Type": AGGREGATED})


def _group(group: str, versions: Iterable[str]) -> Json:
    entries = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
    return {"name": group, "versions": entries, "preferredVersion": entries[0]}


def _resource_list(group: str, version: str, served: Sequence[Served]) -> Json:
    resources = []
    for one in served:
        plural = one.resource.definition.plural
        resources.append(_legacy_resource(one.resource, plural))
        for name, subresource in sorted(one.subresources.items()):
            entry = _legacy_resource(subresource, f"{plural}/{name}")
            if (subresource.definition.group, subresource.definition.version) != (group, version):
                entry |= {"group": subresource.definition.group, "version": subresource.definition.version}
            resources.append(entry)
    api_version = f"{group}/{version}" if group else version
    # Kubernetes leaves the version of the list out where the group has no name.
    kind = {"kind": "APIResourceList", "apiVersion": "v1"} if group else {"kind": "APIResourceList"}
    return {**kind, "groupVersion": api_version, "resources": resources}


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
        entry |= _names(definition)
        if isinstance(resource, Lister):  # reviews are not stored
            entry["storageVersionHash"] = _storage_hash(definition)
    return entry


def _names(definition: Definition) -> Json:
    names: Json = {}
    if definition.short_names:
        names["shortNames"] = list(definition.short_names)
    if definition.categories:
        names["categories"] = list(definition.categories)
    return names


def _storage_hash(definition: Definition) -> str:
    group = definition.stored_as.group if definition.stored_as else definition.group
    identity = f"{group}/{definition.stored_version or definition.version}/{definition.kind}"
    return base64.b64encode(hashlib.sha256(identity.encode()).digest()[:8]).decode()


def _aggregated(groups: Mapping[str, Mapping[str, _GroupVersion]]) -> Json:
    items = [
        {
            "metadata": {"name": group, "creationTimestamp": None},
            "versions": [version.aggregated for version in versions.values()],
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
