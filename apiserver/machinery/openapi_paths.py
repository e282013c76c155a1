"""Path items of the OpenAPI documents: an operation per verb that a resource really has.

Clients look here for what they may send: kubectl wants a PATCH with ``fieldValidation`` for a kind
before it applies anything, and takes strategic merge wherever it is listed. Source: ``kube-api.md`` 0 and 1.7.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from apiserver.machinery.definition import Definition
from apiserver.machinery.discovery import verbs_of
from apiserver.machinery.openapi_schemas import (
    DELETE_OPTIONS,
    PATCH,
    STATUS,
    WATCH_EVENT,
    group_version_kind,
    list_schema_name,
    reference,
    schema_name,
)
from apiserver.machinery.rest import Resource, Served

Json = dict[str, Any]

MEDIA: Final = ("application/json", "application/yaml")
PATCH_MEDIA: Final = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
STRATEGIC: Final = "application/strategic-merge-patch+json"
STREAM: Final = "application/json;stream=watch"


def _query(name: str, description: str, type_: str = "string") -> Json:
    return {"name": name, "in": "query", "description": description, "schema": {"type": type_, "uniqueItems": True}}


def _in_path(name: str, description: str) -> Json:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": description,
        "schema": {"type": "string", "uniqueItems": True},
    }


_PRETTY: Final = _query("pretty", "Whether to indent the answer.")
_NAMESPACE: Final = _in_path("namespace", "The namespace.")
_DRY_RUN: Final = _query("dryRun", "All: do everything but write.")
_WRITE: Final = (
    _DRY_RUN,
    _query("fieldManager", "Who makes the change, at most 128 characters."),
    _query("fieldValidation", "What to do about unknown fields: Ignore, Warn or Strict."),
)
_FORCE: Final = _query("force", "Take over fields of other managers; for apply only.", "boolean")
_LIST: Final = (
    _query("allowWatchBookmarks", "Whether a watch may send bookmarks.", "boolean"),
    _query("continue", "Token of the next page."),
    _query("fieldSelector", "Only objects whose fields match."),
    _query("labelSelector", "Only objects whose labels match."),
    _query("limit", "Most objects in one answer.", "integer"),
    _query("resourceVersion", "Which state to list, or where to begin watching."),
    _query("resourceVersionMatch", "How resourceVersion is meant: Exact or NotOlderThan."),
    _query("sendInitialEvents", "Whether a watch begins with the current objects.", "boolean"),
    _query("timeoutSeconds", "Longest time for a list or watch.", "integer"),
    _query("watch", "Watch for changes instead of listing.", "boolean"),
)
_DELETE: Final = (
    _DRY_RUN,
    _query("gracePeriodSeconds", "Accepted and not used.", "integer"),
    _query("orphanDependents", "Deprecated; use propagationPolicy.", "boolean"),
    _query("propagationPolicy", "What becomes of dependents: Orphan, Background or Foreground."),
)


def path_items(served: Served) -> Iterator[tuple[str, Json]]:
    """Yield the path and the path item of everything that a resource and its subresources answer."""
    definition = served.resource.definition
    verbs = set(verbs_of(served.resource))
    prefix = f"/apis/{definition.group}/{definition.version}" if definition.group else f"/api/{definition.version}"
    collection = f"{prefix}/namespaces/{{namespace}}" if definition.namespaced else prefix
    collection = f"{collection}/{definition.plural}"
    if collected := _collection(_Operations(definition, ""), verbs):
        yield collection, _item(definition, collected)
    if definition.namespaced and "list" in verbs:
        everywhere = _Operations(definition, "", all_namespaces=True)
        yield f"{prefix}/{definition.plural}", {"get": everywhere.list(), "parameters": [_PRETTY]}
    yield f"{collection}/{{name}}", _item(definition, _single(_Operations(definition, ""), verbs), named=True)
    if "watch" in verbs:
        watched = collection.replace(prefix, f"{prefix}/watch", 1)
        yield watched, _item(definition, {"get": _Operations(definition, "").watch("watchlist")})
        yield f"{watched}/{{name}}", _item(definition, {"get": _Operations(definition, "").watch("watch")}, named=True)
    for name, resource in sorted(served.subresources.items()):
        yield f"{collection}/{{name}}/{name}", _subresource(resource, definition, name)


def resources_item(group_version: str) -> tuple[str, Json]:
    """Return the path and the path item of a group-version itself, named as ``apis/porch.kpt.dev/v1alpha1``."""
    schema = {"type": "object", "description": "What is served of this group and version."}
    answers = {"200": {"description": "OK", "content": {one: {"schema": schema} for one in MEDIA}}}
    operation = {
        "tags": [_identifier(*(group_version.split("/")[1:] or ["core"]), separator="_")],
        "description": "List the resources of this group and version.",
        "operationId": f"get{_identifier(*group_version.split('/'), separator='')}Resources",
        "responses": {**answers, "401": {"description": "Unauthorized"}},
    }
    return f"/{group_version}/", {"get": operation}


def _subresource(resource: Resource, parent: Definition, name: str) -> Json:
    # A part of a custom resource is told of as that kind, whatever it answers with; so does Kubernetes.
    operations = _Operations(resource.definition, name, told_as=parent if parent.custom else None)
    verbs = set(verbs_of(resource))
    created = {"post": operations.create()} if "create" in verbs else {}
    return _item(parent, {**created, **_single(operations, verbs)}, named=True)


def _item(definition: Definition, operations: Json, *, named: bool = False) -> Json:
    parameters = [_in_path("name", f"Name of the {definition.kind}.")] if named else []
    parameters += [_NAMESPACE] if definition.namespaced else []
    return {**operations, "parameters": [*parameters, _PRETTY]}


def _collection(operations: "_Operations", verbs: set[str]) -> Json:
    found = {}
    if "list" in verbs:
        found["get"] = operations.list()
    if "create" in verbs:
        found["post"] = operations.create()
    if "deletecollection" in verbs:
        found["delete"] = operations.delete_collection()
    return found


def _single(operations: "_Operations", verbs: set[str]) -> Json:
    makers = {
        "get": ("get", operations.get),
        "update": ("put", operations.update),
        "delete": ("delete", operations.delete),
        "patch": ("patch", operations.patch),
    }
    return {method: make() for verb, (method, make) in makers.items() if verb in verbs}


class _Operations:
    """The operations of one resource or subresource."""

    def __init__(
        self,
        definition: Definition,
        subresource: str,
        *,
        all_namespaces: bool = False,
        told_as: Definition | None = None,
    ) -> None:
        self._definition = told_as or definition
        self._subresource = subresource
        self._all_namespaces = all_namespaces
        self._kind = reference(schema_name(definition))

    def list(self) -> Json:
        schema = reference(list_schema_name(self._definition))
        return self._operation("list", "List or watch", _LIST, {200: (schema, (*MEDIA, STREAM))})

    def watch(self, action: str) -> Json:
        summary = "Watch changes (deprecated: use the watch parameter of a list)"
        return self._operation(action, summary, _LIST, {200: (reference(WATCH_EVENT), (*MEDIA, STREAM))})

    def get(self) -> Json:
        return self._operation("get", "Read", (), {200: (self._kind, MEDIA)})

    def create(self) -> Json:
        answers = dict.fromkeys((200, 201, 202), (self._kind, MEDIA))
        return self._operation("post", "Create", _WRITE, answers) | self._body(self._kind)

    def update(self) -> Json:
        answers = dict.fromkeys((200, 201), (self._kind, MEDIA))
        return self._operation("put", "Replace", _WRITE, answers) | self._body(self._kind)

    def patch(self) -> Json:
        media = (*PATCH_MEDIA, STRATEGIC) if self._definition.strategic else PATCH_MEDIA
        body = {"required": True, "content": {one: {"schema": reference(PATCH)} for one in media}}
        answers = dict.fromkeys((200, 201), (self._kind, MEDIA))
        return self._operation("patch", "Change parts of", (*_WRITE, _FORCE), answers) | {"requestBody": body}

    def delete(self) -> Json:
        answers = {code: (reference(STATUS), MEDIA) for code in (200, 202)}
        body = {"content": {"*/*": {"schema": reference(DELETE_OPTIONS)}}}
        return self._operation("delete", "Delete", _DELETE, answers) | {"requestBody": body}

    def delete_collection(self) -> Json:
        selected = [one for one in _LIST if one["name"] not in ("allowWatchBookmarks", "watch")]
        body = {"content": {"*/*": {"schema": reference(DELETE_OPTIONS)}}}
        answers = {200: (reference(STATUS), MEDIA)}
        # Of custom resources Kubernetes tells the selectors only; more is accepted.
        told = tuple(selected) if self._definition.custom else (*selected, *_DELETE)
        operation = self._operation("deletecollection", "Delete every selected", told, answers)
        return operation | {"requestBody": body}

    def _body(self, schema: Json) -> Json:
        return {"requestBody": {"required": True, "content": {"*/*": {"schema": schema}}}}

    def _operation(
        self,
        action: str,
        summary: str,
        parameters: tuple[Json, ...],
        answers: Mapping[int, tuple[Json, tuple[str, ...]]],
    ) -> Json:
        definition = self._definition
        what = f"the {self._subresource} of a {definition.kind}" if self._subresource else definition.kind
        responses: Json = {
            str(code): {"description": "OK", "content": {one: {"schema": schema} for one in media}}
            for code, (schema, media) in answers.items()
        }
        operation: Json = {
            "tags": [_identifier(definition.group or "core", definition.version, separator="_")],
            "description": f"{summary} {what}.",
            "operationId": self._operation_id(action),
            "responses": {**responses, "401": {"description": "Unauthorized"}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": group_version_kind(definition),
        }
        if parameters:
            operation["parameters"] = list(parameters)
        return operation

    def _operation_id(self, action: str) -> str:
        definition = self._definition
        scope = "Namespaced" if definition.namespaced and not self._all_namespaces else ""
        where = "ForAllNamespaces" if self._all_namespaces else ""
        group = _identifier(definition.group or "core", definition.version, separator="")
        return f"{action}{group}{scope}{definition.kind}{self._subresource.title()}{where}"


def _identifier(*names: str, separator: str) -> str:
    parts = [part for name in names for part in name.replace("-", ".").split(".")]
    return separator.join(parts if separator else (part.title() for part in parts))
