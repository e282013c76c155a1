"""One endpoint per resource and subresource: the verbs a resource implements, as HTTP.

Reads copy stored bytes into the answer; writes decode, let the resource act, and answer with its bytes. What a
resource cannot do is answered with 405. Source: ``kube-api.md`` 1.3, 1.8 and 2.3 to 2.11.
"""

import asyncio
import copy
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from functools import partial

import orjson
from starlette.types import ASGIApp

from apiserver.machinery.apply.ownership import Ownership
from apiserver.machinery.apply.reading import APPLY_PATCH, read_apply
from apiserver.machinery.call import Call
from apiserver.machinery.collection import delete_collection
from apiserver.machinery.decode import (
    JSON_TYPE,
    PROTOBUF_TYPE,
    YAML_TYPE,
    Body,
    Parsed,
    admit,
    parse,
    read_body,
)
from apiserver.machinery.definition import Definition, Json
from apiserver.machinery.metrics import WatchMeter
from apiserver.machinery.negotiate import Form, Shape, View
from apiserver.machinery.options import (
    delete_options,
    get_options,
    list_options,
    stream_options,
    watch_options,
)
from apiserver.machinery.patching import read_patch
from apiserver.machinery.reply import Headers, Reply, formatted, streamed
from apiserver.machinery.request import text
from apiserver.machinery.rest import (
    LARGE,
    Change,
    Creater,
    Deleter,
    Getter,
    Item,
    ItemList,
    ItemStream,
    Lister,
    Resource,
    Streamer,
    SubresourceCreater,
    Updater,
    Watcher,
    WriteOptions,
)
from apiserver.machinery.stopping import Stopping
from apiserver.machinery.table import Columns, Include, ShownItem, metadata_only, now, table_head
from apiserver.machinery.warnings import Warned, warning_headers
from apiserver.machinery.watch import FailedWatch, Frames, WatchStream
from krm.meta.errors import (
    BadRequest,
    Expired,
    MethodNotAllowed,
    MethodNotServed,
    NotFound,
    NotServed,
    StatusError,
    Timeout,
)

_ROWS_AT_ONCE = 250
"""Rows built for the first time before other requests get a turn; about 5 ms."""


class Endpoint:
    """Serves one resource or subresource; ``stopping`` ends its watches, which ``meter`` counts."""

    def __init__(
        self,
        resource: Resource,
        *,
        subresource: str,
        deleted_as_object: bool,
        body_limit: int,
        stopping: Stopping,
        meter: WatchMeter,
    ) -> None:
        self.resource = resource
        self.definition: Definition = resource.definition
        self.subresource = subresource
        # Checked once: a runtime check of a protocol costs as much as the rest of a small get.
        self._getter = resource if isinstance(resource, Getter) else None
        self._lister = resource if isinstance(resource, Lister) else None
        self._streamer = resource if isinstance(resource, Streamer) else None
        self._watcher = resource if isinstance(resource, Watcher) else None
        self._creater = resource if isinstance(resource, Creater) else None
        self._subresource_creater = resource if isinstance(resource, SubresourceCreater) else None
        self._updater = resource if isinstance(resource, Updater) else None
        self._deleter = resource if isinstance(resource, Deleter) else None
        self._has_items = bool(self._getter or self._updater or self._deleter)
        self._deleted_as_object = deleted_as_object
        self._body_limit = body_limit
        self._stopping = stopping
        self._meter = meter
        self._deprecated = warning_headers([self.definition.deprecation] if self.definition.deprecation else ())
        self._schema = self.definition.compiled
        self._ownership = Ownership(self.definition, subresource)
        self._columns = Columns(self.definition)
        verbs: dict[str, Callable[[Call], Awaitable[ASGIApp]]] = {
            "get": self._get,
            "list": self._list,
            "watch": self._watch,
            "create": self._create,
            "update": self._put,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }
        self._verbs = verbs

    async def serve(self, call: Call) -> ASGIApp:
        """Perform a request and return its answer.

        Raises:
            StatusError: what the client is told instead.
        """
        verb = self._verbs.get(call.info.verb)
        if call.info.name and not self.subresource and not self._has_items:
            raise NotServed
        if verb is None:
            raise self._unsupported(call.info.verb)
        try:
            answer = await verb(call)
        except StatusError as error:
            error.warnings = (*filter(None, [self.definition.deprecation]), *call.warnings)
            raise
        return Warned(answer, self._deprecated) if self._deprecated else answer

    async def _get(self, call: Call) -> ASGIApp:
        if self._getter is None:
            raise self._unsupported("get")
        form = call.form(Shape.ITEM)
        item = await self._getter.get(call.scope, call.info.name, get_options(call.query))
        return await self._answer(call, item, form)

    async def _list(self, call: Call) -> ASGIApp:
        if self._lister is None:
            raise self._unsupported("list")
        form, options = call.form(Shape.LIST), list_options(call.query)
        include = _include(call, form)
        if self._streamer is not None and not (form.yaml or form.pretty or include is Include.OBJECT):
            return await self._streamed(await self._streamer.stream(call.scope, options), form, include)
        return await self._listed(await self._lister.list(call.scope, options), form, include)

    async def _streamed(self, stream: ItemStream, form: Form, include: Include) -> ASGIApp:
        """Answer with items that are made one by one; of a table or metadata, only what is shown is kept of each."""
        if form.view is View.OBJECT:
            return await streamed(self._stream_parts(stream))
        shown: list[Item] = []
        async for item in stream.items:
            if form.view is View.TABLE:
                self._columns.row(item)
            else:
                metadata_only(item, form.meta_version)
            shown.append(ShownItem(item))
        page = ItemList(shown, stream.rv, stream.continue_token, stream.remaining)
        return await self._listed(page, form, include)

    async def _stream_parts(self, stream: ItemStream) -> AsyncGenerator[bytes, None]:
        yield self._list_head(ItemList((), stream.rv, stream.continue_token, stream.remaining), View.OBJECT)
        between = b""
        async for item in stream.items:
            yield between
            yield item.body
            between = b","
        yield b"]}\n"

    async def _listed(self, page: ItemList, form: Form, include: Include) -> ASGIApp:
        if form.view is View.TABLE:
            return await formatted(await self._table(page, form, include), form)
        return await formatted(self._list_parts(page, form), form)

    def _list_parts(self, page: ItemList, form: Form) -> Sequence[bytes]:
        if form.view is View.METADATA:
            bodies = [metadata_only(item, form.meta_version) for item in page.items]
        else:
            bodies = [item.body for item in page.items]
        return [self._list_head(page, form.view, form.meta_version), *_joined(bodies), b"]}"]

    def _list_head(self, page: ItemList, view: View, meta_version: str = "v1") -> bytes:
        if view is View.METADATA:
            kind, version = "PartialObjectMetadataList", f"meta.k8s.io/{meta_version}"
        else:
            kind, version = self.definition.list_kind, self.definition.api_version
        return b'{"kind":"%b","apiVersion":"%b","metadata":%b,"items":[' % (
            kind.encode(),
            version.encode(),
            _list_metadata(page, ends=self.definition.custom and view is View.OBJECT),
        )

    async def _table(self, page: ItemList, form: Form, include: Include) -> Sequence[bytes]:
        missing = [item for item in page.items if item.row is None]
        for start in range(0, len(missing), _ROWS_AT_ONCE):
            for item in missing[start : start + _ROWS_AT_ONCE]:
                self._columns.row(item)
            await asyncio.sleep(0)
        head = table_head(_list_metadata(page), self._columns.header, form.meta_version)
        pieces, moment = [head], now()
        for item in page.items:
            self._columns.add_shown(pieces, item, include, moment)
            pieces.append(b",")
        if page.items:
            pieces.pop()
        return [*pieces, b"]}"]

    async def _watch(self, call: Call) -> ASGIApp:
        if self._watcher is None:
            raise self._unsupported("watch")
        form, stream = call.form(Shape.WATCH), stream_options(call.query)
        frames = Frames(self.definition, self._columns, form, _include(call, form))
        options = watch_options(call.query, name=call.info.name)
        try:
            source = await self._watcher.watch(call.scope, options)
        except (Expired, Timeout) as error:
            return FailedWatch(error)
        ending = options.send_initial_events is True
        opened = self._meter.open(call.info, call.asgi)
        return WatchStream(source, frames, stream, initial_events_end=ending, stopping=self._stopping, meter=opened)

    async def _create(self, call: Call) -> ASGIApp:
        create = self._create_call(call)
        if create is None:
            raise self._unsupported("create")
        form = call.form(Shape.ITEM)
        options = call.write_options("CreateOptions")
        wanted = admit(await self._parsed(call, options), self.definition, self._schema, options)
        self._check_namespace(call, wanted)
        item = await create(wanted, options)
        return await self._answer(call, item, form, status=201, headers=warning_headers(options.warnings))

    def _create_call(self, call: Call) -> Callable[[Json, WriteOptions], Awaitable[Item]] | None:
        """Return what creates where a POST points: beside others in a collection, or below a named object."""
        if self.definition.namespaced and call.info.namespace is None:
            return None
        if self._subresource_creater is not None:
            return partial(self._subresource_creater.create_for, call.scope, call.info.name)
        return None if self._creater is None or call.info.name else partial(self._creater.create, call.scope)

    async def _put(self, call: Call) -> ASGIApp:
        if self._updater is None or not call.info.name:
            raise self._unsupported("update")
        form = call.form(Shape.ITEM)
        options = call.write_options("UpdateOptions")
        wanted = admit(await self._parsed(call, options), self.definition, self._schema, options)
        self._check_name(call, wanted)

        def replace(_current: Json) -> Json:
            return copy.deepcopy(wanted)

        return await self._changed(call, self._updater, replace, options, form)

    async def _patch(self, call: Call) -> ASGIApp:
        if self._updater is None or not call.info.name or not self.definition.patchable:
            raise self._unsupported("patch")
        form = call.form(Shape.ITEM)
        body = await read_body(call.asgi, call.receive, self._body_limit)
        applies = body.media_type == APPLY_PATCH
        options = call.write_options("PatchOptions", apply=applies)
        options.large = len(body.data) > LARGE
        if applies:
            applied = await read_apply(body, self._ownership, options)
            change = partial(self._checked, call, applied)
            return await self._changed(call, self._updater, change, options, form)
        patch = read_patch(body, self.definition, self._schema, options)

        def apply(current: Json) -> Json:
            if not current:
                raise NotFound.of(self.definition.resource, call.info.name)
            wanted = patch(current)
            self._check_name(call, wanted)
            if not wanted["metadata"].get("resourceVersion"):
                # A patch that removes it (kubectl apply after kubectl replace does) makes no condition.
                wanted["metadata"]["resourceVersion"] = current["metadata"]["resourceVersion"]
            return wanted

        return await self._changed(call, self._updater, apply, options, form)

    def _checked(self, call: Call, change: Change, current: Json) -> Json:
        """Make a change, and check that it is for the object of the URL."""
        wanted = change(current)
        self._check_name(call, wanted)
        return wanted

    async def _changed(
        self, call: Call, resource: Updater, change: Change, options: WriteOptions, form: Form
    ) -> ASGIApp:
        options.before_create = partial(call.authorize_also, "create")
        options.may = call.may
        item, created = await resource.update(call.scope, call.info.name, change, options)
        status = 201 if created else 200
        return await self._answer(call, item, form, status=status, headers=warning_headers(options.warnings))

    async def _delete(self, call: Call) -> ASGIApp:
        if self._deleter is None:
            raise self._unsupported("delete")
        form = call.form(Shape.ITEM)
        options = delete_options(call.query, await self._delete_body(call))
        item, gone = await self._deleter.delete(call.scope, call.info.name, options)
        if not gone or self._deleted_as_object:
            held = not gone and options.orphan_dependents is False
            return await self._answer(call, item, form, status=202 if held else 200)
        return await formatted([self._success(item)], form)

    async def _delete_collection(self, call: Call) -> ASGIApp:
        everywhere = self.definition.namespaced and call.info.namespace is None
        if self._deleter is None or self._lister is None or everywhere or not self.definition.delete_collection:
            raise self._unsupported("deletecollection")
        form, selected = call.form(Shape.LIST), list_options(call.query)
        include = _include(call, form)
        options = delete_options(call.query, await self._delete_body(call))
        page = await delete_collection(self._lister, self._deleter, call.scope, selected, options)
        return await self._listed(page, form, include)

    async def _delete_body(self, call: Call) -> Json | None:
        body = await read_body(call.asgi, call.receive, self._body_limit)
        if not body.data.strip():
            return None
        parsed = await parse(body, self.definition, (JSON_TYPE, YAML_TYPE, PROTOBUF_TYPE))
        if not isinstance(parsed.value, dict) or parsed.value.get("kind", "DeleteOptions") != "DeleteOptions":
            raise BadRequest("the body of a delete must be a DeleteOptions object")
        return parsed.value

    def _success(self, item: Item) -> bytes:
        details = {"name": item.name, "group": self.definition.group, "kind": self.definition.plural}
        details["uid"] = orjson.loads(item.body)["metadata"].get("uid", "")
        shown = {key: value for key, value in details.items() if value}
        return orjson.dumps(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": shown}
        )

    async def _parsed(self, call: Call, options: WriteOptions) -> Parsed:
        body: Body = await read_body(call.asgi, call.receive, self._body_limit)
        options.large = len(body.data) > LARGE
        return await parse(body, self.definition)

    def _check_name(self, call: Call, wanted: Json) -> None:
        """Refuse a body that names another object, or another namespace, than the URL."""
        metadata = wanted["metadata"]
        name = metadata.get("name") or ""
        if not name:
            why = "was undeterminable: name must be provided"
            raise BadRequest(f"the name of the object ({call.info.name} based on URL) {why}")
        if name != call.info.name:
            raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({call.info.name})")
        self._check_namespace(call, wanted)

    def _check_namespace(self, call: Call, wanted: Json) -> None:
        given = wanted["metadata"].get("namespace") or ""
        if self.definition.namespaced and given not in ("", call.info.namespace):
            raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")

    async def _answer(self, call: Call, item: Item, form: Form, *, status: int = 200, headers: Headers = ()) -> Reply:
        if form.view is View.OBJECT:
            shown = item.body
        else:
            frames = Frames(self.definition, self._columns, form, _include(call, form))
            shown = frames.shown(item, first=True, moment=now())
        return await formatted([shown], form, status=status, headers=headers)

    def _unsupported(self, verb: str) -> MethodNotAllowed:
        return MethodNotAllowed.of(self.definition.resource, verb) if self.definition.custom else MethodNotServed()


def _include(call: Call, form: Form) -> Include:
    return Include.parse(text(call.query, "includeObject")) if form.view is View.TABLE else Include.METADATA


def _list_metadata(page: ItemList, *, ends: bool = False) -> bytes:
    """Return a list's metadata; ``ends`` says it, too, when nothing follows, as lists of custom resources do."""
    metadata: Json = {"continue": ""} if ends else {}
    metadata["resourceVersion"] = str(page.rv)
    if page.continue_token:
        metadata["continue"] = page.continue_token
        if page.remaining is not None:
            metadata["remainingItemCount"] = page.remaining
    return orjson.dumps(metadata)


def _joined(bodies: Sequence[bytes]) -> list[bytes]:
    """Put commas between pieces without copying them."""
    pieces: list[bytes] = [b","] * (2 * len(bodies) - 1) if bodies else []
    pieces[::2] = bodies
    return pieces
