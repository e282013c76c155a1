"""What a request asks for, read once from its path, method and query: for dispatch, authorization and logs.

Source: ``kube-api.md`` 1.2 and 1.3.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qs

from starlette.types import Scope as AsgiScope

from krm.meta.errors import BadRequest

Query = Mapping[str, Sequence[str]]

REQUEST_INFO = "porch.request_info"
"""Key of the ASGI scope under which a request's target is found once it is known."""
AUDIT_ID = "porch.audit_id"
"""Key of the ASGI scope under which a request's Audit-Id is found."""
MAX_PARAMETERS = 64
"""Query parameters in one request; clients send fewer than ten."""

_VERBS = {"POST": "create", "GET": "get", "HEAD": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_COLLECTION_VERBS = {"get": "list", "delete": "deletecollection"}
_NAMESPACE_SUBRESOURCES = ("status", "finalize")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART = re.compile(r"(\d{1,12}(?:\.\d{0,12})?|\.\d{1,12})(ns|us|µs|ms|s|m|h)")


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """Verb and target of a request; ``resource`` is empty for paths that are no resource's.

    ``namespace`` is None where the path names none; ``watch_path`` tells the deprecated ``/watch/`` form.
    """

    verb: str
    path: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str | None = None
    name: str = ""
    watch_path: bool = False
    excess: bool = False
    """Parts follow the subresource; nothing is served there."""
    field_selector: str = ""
    label_selector: str = ""
    """What a collection is narrowed to, as written; for whoever authorizes, and empty for everybody else."""

    @property
    def target(self) -> str:
        """What is asked for, as logs name it: ``plural.group/subresource namespace/name``, or the path."""
        if not self.resource:
            return self.path
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        what = f"{kind}/{self.subresource}" if self.subresource else kind
        return f"{what} {where}" if where else what


def request_info(method: str, path: str, query: Query) -> RequestInfo:
    """Read the target from a path and the verb from method and query; never fails."""
    verb = _VERBS.get(method, method.lower())
    match [part for part in path.split("/") if part]:
        case ["api", version, *rest] if rest:
            group = ""
        case ["apis", group, version, *rest] if rest:
            pass
        case _:
            return RequestInfo(verb, path)
    watch_path = rest[0] == "watch" and len(rest) > 1
    rest = rest[1:] if watch_path else rest
    namespace: str | None = None
    match rest:
        case ["namespaces", inside, third, *_] if third not in _NAMESPACE_SUBRESOURCES:
            namespace, rest = inside, rest[2:]
    resource, name, subresource, *excess = (*rest, "", "")[: max(3, len(rest))]
    return RequestInfo(
        verb="watch" if watch_path and verb == "get" else _refined(verb, name, flag(query, "watch")),
        path=path,
        group=group,
        version=version,
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name,
        watch_path=watch_path,
        excess=bool(excess),
    )


def _refined(verb: str, name: str, watching: bool) -> str:
    if name:
        return verb
    if verb == "get" and watching:
        return "watch"
    return _COLLECTION_VERBS.get(verb, verb)


def read_query(scope: AsgiScope) -> Query:
    """Parse the query string; parameters without a value are kept.

    Raises:
        BadRequest: more than ``MAX_PARAMETERS`` parameters.
    """
    raw = scope["query_string"]
    if not raw:
        return {}
    try:
        return parse_qs(raw.decode("latin-1"), keep_blank_values=True, max_num_fields=MAX_PARAMETERS)
    except ValueError as error:
        raise BadRequest(f"a request takes at most {MAX_PARAMETERS} query parameters") from error


def text(query: Query, name: str) -> str:
    """Return a parameter's first value, or ""."""
    values = query.get(name)
    return values[0] if values else ""


def flag(query: Query, name: str) -> bool:
    """Read a boolean as Kubernetes does: present and neither ``false`` nor ``0``."""
    return name in query and query[name][0].lower() not in ("false", "0")


def integer(query: Query, name: str) -> int | None:
    """Read a number of at most 18 digits.

    Raises:
        BadRequest: it is none.
    """
    value = text(query, name)
    if not value:
        return None
    if not re.fullmatch(r"-?[0-9]{1,18}", value):
        # In the words of Go's parser, which clients of Kubernetes get to see.
        why = "value out of range" if re.fullmatch(r"-?[0-9]+", value) else "invalid syntax"
        raise BadRequest(f'strconv.ParseInt: parsing "{value[:64]}": {why}')
    return int(value)


def duration(value: str) -> float:
    """Read a Go duration such as ``1m30s``, in seconds.

    Raises:
        BadRequest: it is none.
    """
    if value == "0":
        return 0.0
    seconds, end = 0.0, 0
    for part in _DURATION_PART.finditer(value[:64]):
        if part.start() != end:
            break
        seconds += float(part.group(1)) * _UNITS[part.group(2)]
        end = part.end()
    if not value or end != len(value):
        raise BadRequest(f"invalid timeout {value[:64]!r}: a duration is written like 30s or 1m30s")
    return seconds


def header(scope: AsgiScope, name: bytes) -> str:
    """Return a request header's first value, or ""; ``name`` in lower case."""
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value).decode("latin-1")
    return ""
