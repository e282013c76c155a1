"""Serves OpenAPI documents made from the definitions: v3 per group-version, v2 for all together.

Each document is built and encoded on its first request, in a thread, then served as bytes until what it
describes changes. Source: ``kube-api.md`` 1.7.
"""

import asyncio
import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from email.utils import formatdate
from functools import cached_property
from operator import itemgetter
from time import time
from typing import Any, Final

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from apiserver.machinery.openapi_paths import path_items, resources_item
from apiserver.machinery.openapi_schemas import component_schemas, schema_name
from apiserver.machinery.openapi_v2 import swagger
from apiserver.machinery.openapi_v2_protobuf import ANSWERED, MEDIA_TYPE, encode_document
from apiserver.machinery.reply import Headers, Reply
from apiserver.machinery.rest import Served
from krm.meta.errors import NotAcceptable

Json = dict[str, Any]

INFO: Final = {"title": "Porch", "version": "0.1"}
ONE_YEAR: Final = 365 * 24 * 3600
"""Seconds that a document named with its hash may be cached."""


class _Encoded:
    """A document's bytes and the hash that names them."""

    def __init__(self, document: Json) -> None:
        self.body = orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)
        self.hash = hashlib.sha512(self.body).hexdigest().upper()
        self.headers = {"etag": f'"{self.hash}"', "vary": "Accept", "last-modified": formatdate(usegmt=True)}


class OpenApi:
    """The OpenAPI documents of a set of served resources; a change of kinds makes a new one.

    ``known`` lends the documents of group-versions that are the same here.
    """

    def __init__(self, served: Sequence[Served], *, known: "OpenApi | None" = None) -> None:
        self._served: dict[str, list[Served]] = defaultdict(list)
        for one in served:
            definition = one.resource.definition
            prefix = "apis" if definition.group else "api"
            self._served[f"{prefix}/{definition.api_version}"].append(one)
        lent = known.documents_of(self._served) if known else {}
        self._v3: dict[str, _Encoded] = lent
        self._building = asyncio.Lock()

    def documents_of(self, served: Mapping[str, Sequence[Served]]) -> dict[str, _Encoded]:
        """Return the documents made so far of those group-versions that are the same in ``served``."""
        return {
            name: document
            for name, document in self._v3.items()
            if [id(one) for one in served.get(name, ())] == [id(one) for one in self._served[name]]
        }

    def routes(self) -> list[Route]:
        """Return the routes of ``/openapi/v3``, of each document below it, and of ``/openapi/v2``."""
        return [
            Route("/openapi/v2", self._serve_v2, methods=["GET"]),
            Route("/openapi/v3", self._serve_root, methods=["GET"]),
            Route("/openapi/v3/{path:path}", self._serve_v3, methods=["GET"]),
        ]

    @property
    def group_versions(self) -> list[str]:
        """The documents' names: ``api/v1``, ``apis/porch.kpt.dev/v1alpha1``."""
        return sorted(self._served)

    def document_v3(self, group_version: str) -> Json:
        """Build the OpenAPI 3.0 document of a group-version, named as in ``group_versions``.

        Raises:
            KeyError: nothing is served there.
        """
        served = self._served[group_version] if group_version in self._served else _missing(group_version)
        items = [item for one in served for item in path_items(one)]
        paths = dict(sorted([*items, resources_item(group_version)], key=itemgetter(0)))
        definitions = [one.resource.definition for one in served]
        own = {schema_name(definition) for definition in definitions}
        parts = [part.definition for one in served for part in one.subresources.values()]
        schemas = component_schemas(definitions, [part for part in parts if schema_name(part) not in own])
        return {"openapi": "3.0.0", "info": INFO, "paths": paths, "components": {"schemas": schemas}}

    def document_v2(self) -> Json:
        """Build the Swagger 2.0 document of everything."""
        return swagger(self.document_v3(group_version) for group_version in self.group_versions)

    def files(self) -> dict[str, bytes]:
        """Return every document, indented, under the file name it is committed as below ``openapi/``."""
        documents = {f"v3/{name}.json": self.document_v3(name) for name in self.group_versions}
        documents["swagger.json"] = self.document_v2()
        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        return {name: orjson.dumps(document, option=options) for name, document in documents.items()}

    def _encoded(self, group_version: str) -> _Encoded:
        if group_version not in self._v3:
            self._v3[group_version] = _Encoded(self.document_v3(group_version))
        return self._v3[group_version]

    async def _all_built(self) -> None:
        """Have every document; building takes milliseconds each, so it happens in a thread."""
        async with self._building:
            for name in self.group_versions:
                if name not in self._v3:
                    await asyncio.to_thread(self._encoded, name)

    @cached_property
    def _v2(self) -> _Encoded:
        return _Encoded(self.document_v2())

    @cached_property
    def _root(self) -> _Encoded:
        paths = {name: {"serverRelativeURL": self._url(name)} for name in self.group_versions}
        return _Encoded({"paths": paths})

    def _url(self, group_version: str) -> str:
        return f"/openapi/v3/{group_version}?hash={self._encoded(group_version).hash}"

    async def _serve_root(self, request: Request) -> ASGIApp:
        await self._all_built()
        return _answer(request, self._root)

    @cached_property
    def _v2_protobuf(self) -> bytes:
        return encode_document(self.document_v2())

    async def _serve_v2(self, request: Request) -> ASGIApp:
        accept = request.headers.get("accept", "")
        if MEDIA_TYPE in accept and not _takes_json(accept):
            encoded = await asyncio.to_thread(lambda: self._v2_protobuf)
            return Reply([encoded], media_type=ANSWERED, headers=[(b"vary", b"Accept")])
        return _answer(request, await asyncio.to_thread(lambda: self._v2))

    async def _serve_v3(self, request: Request) -> ASGIApp:
        group_version = request.path_params["path"].rstrip("/")
        if group_version not in self._served:
            return Response(status_code=404)
        document = self._v3.get(group_version)
        if document is None:
            async with self._building:
                document = await asyncio.to_thread(self._encoded, group_version)
        wanted = request.query_params.get("hash")
        if wanted is None:
            return _answer(request, document)
        if wanted != document.hash:
            told = {"location": self._url(group_version), "content-type": "application/json", **document.headers}
            return Response(status_code=301, headers=told)
        expires = formatdate(time() + ONE_YEAR, usegmt=True).encode()
        return _answer(request, document, [(b"cache-control", b"public, immutable"), (b"expires", expires)])


def _missing(group_version: str) -> list[Served]:
    raise KeyError(group_version)


def _answer(request: Request, document: _Encoded, headers: Headers = ()) -> ASGIApp:
    """Answer with the document, or 304 to who has it.

    Raises:
        NotAcceptable: the client takes no JSON; kubectl then goes on with what else it knows.
    """
    every = [*((name.encode(), value.encode()) for name, value in document.headers.items()), *headers]
    if not _takes_json(request.headers.get("accept", "")):
        raise NotAcceptable("only the following media types are accepted: application/json")
    if request.headers.get("if-none-match", "") == document.headers["etag"]:
        return Response(status_code=304, headers={name.decode(): value.decode() for name, value in every})
    return Reply([document.body], headers=every)


def _takes_json(accept: str) -> bool:
    types = {clause.split(";")[0].strip().lower() for clause in accept[:4096].split(",")}
    return not accept.strip() or not types.isdisjoint({"application/json", "application/*", "*/*"})
