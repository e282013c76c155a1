"""Cases: media types, encodings, malformed bodies, methods and paths."""

import base64

from conversation import Case, Send
from sends import CONFIG_MAPS, LEASES, WIDGETS, config_map, get, post, put, query, widget

_A = f"{CONFIG_MAPS}/a"
_MADE = (post(CONFIG_MAPS, config_map(data={"k": "v"})),)
_PROTOBUF = "application/vnd.kubernetes.protobuf"


def _field(number: int, value: bytes) -> bytes:
    assert len(value) < 0x80
    return bytes([number << 3 | 2, len(value)]) + value


def _unknown(api_version: str, kind: str, raw: bytes) -> bytes:
    kinds = _field(1, api_version.encode()) + _field(2, kind.encode())
    return b"k8s\x00" + _field(1, kinds) + _field(2, raw) + _field(3, b"") + _field(4, b"")


_ENTRY = _field(1, b"k") + _field(2, b"v")
_CONFIG_MAP = _field(1, _field(1, b"a")) + _field(2, _ENTRY)
_SECRET = _field(1, _field(1, b"s")) + _field(2, _ENTRY) + _field(3, b"Opaque")


def _raw(name: str, body: str | bytes, kind: str = "application/json") -> Case:
    return Case(f"body {name}", post(CONFIG_MAPS, body, kind=kind))


BODIES = [
    _raw("that is not JSON", "nonsense"),
    _raw("cut short", '{"kind":"ConfigMap"'),
    _raw("of a list", "[]"),
    _raw("of a word", '"word"'),
    _raw("of null", "null"),
    _raw("of nothing", ""),
    _raw("of spaces", "  "),
    _raw("followed by more", '{"metadata":{"name":"a"}} {"x":1}'),
    _raw("with a byte order mark", b"\xef\xbb\xbf" + b'{"metadata":{"name":"a"}}'),
    _raw("that is not UTF-8", b'{"metadata":{"name":"a"},"data":{"k":"\xff"}}'),
    _raw("with a duplicate key", '{"metadata":{"name":"a"},"data":{"k":"x","k":"y"}}'),
    _raw("with keys of another case", '{"Metadata":{"Name":"a"},"DATA":{"k":"x"}}'),
    _raw("with metadata of a wrong type", '{"metadata":"a"}'),
    _raw("with a kind of a wrong type", '{"kind":1,"metadata":{"name":"a"}}'),
    _raw("with a name of a wrong type", '{"metadata":{"name":1}}'),
    _raw("with labels of a wrong type", '{"metadata":{"name":"a","labels":["x"]}}'),
    _raw("with a time of a wrong form", '{"metadata":{"name":"a","creationTimestamp":"yesterday"}}'),
    _raw("nested deeply", '{"metadata":{"name":"a"},"x":' + "[" * 11_000 + "]" * 11_000 + "}"),
    _raw("with an escaped name", '{"metadata":{"name":"\\u0061"},"data":{"k":"\\ud83d\\ude00"}}'),
    _raw("with a lone surrogate", '{"metadata":{"name":"a"},"data":{"k":"\\ud83d"}}'),
    _raw("with control characters", '{"metadata":{"name":"a"},"data":{"k":"a\\u0001b"}}'),
    _raw("as YAML", "metadata:\n  name: a\ndata:\n  k: v\n", "application/yaml"),
    _raw("as YAML of two documents", "metadata: {name: a}\n---\nmetadata: {name: b}\n", "application/yaml"),
    _raw("as bad YAML", "a: b: c", "application/yaml"),
    _raw("as YAML with a duplicate key", "metadata: {name: a}\ndata: {k: first, k: second}\n", "application/yaml"),
    _raw("as YAML with a number", "metadata: {name: a}\ndata: {k: 1}\n", "application/yaml"),
    _raw("as protobuf", _unknown("v1", "ConfigMap", _CONFIG_MAP), _PROTOBUF),
    _raw("as protobuf of another kind", _unknown("v1", "Secret", _SECRET), _PROTOBUF),
    _raw("as protobuf of an unknown kind", _unknown("v1", "Nonsense", _CONFIG_MAP), _PROTOBUF),
    _raw("as protobuf without its mark", _CONFIG_MAP, _PROTOBUF),
    _raw("as protobuf cut short", _unknown("v1", "ConfigMap", _CONFIG_MAP)[:-12], _PROTOBUF),
    _raw("as protobuf of nothing", b"", _PROTOBUF),
    Case(
        "body secret as protobuf",
        post("/api/v1/namespaces/{ns}/secrets", _unknown("v1", "Secret", _SECRET), kind=_PROTOBUF),
    ),
    Case("body custom resource as protobuf", post(WIDGETS, _unknown("v1", "ConfigMap", _CONFIG_MAP), kind=_PROTOBUF)),
    _raw("as CBOR", base64.b64decode("oWFhAQ=="), "application/cbor"),
    _raw("as text", "x", "text/plain"),
    _raw("as a form", "a=b", "application/x-www-form-urlencoded"),
    _raw("as JSON with a character set", '{"metadata":{"name":"a"}}', "application/json; charset=utf-8"),
    _raw("as upper-case JSON", '{"metadata":{"name":"a"}}', "Application/JSON"),
    _raw("with a bad content type", '{"metadata":{"name":"a"}}', ";;;"),
    Case("body update not JSON", put(_A, "nonsense"), _MADE),
    Case("body unknown field", post(CONFIG_MAPS, {**config_map(), "nonsense": {"x": 1}})),
    Case(
        "body unknown fields strictly",
        post(query(CONFIG_MAPS, fieldValidation="Strict"), {**config_map(nonsense=1), "more": 2}),
    ),
    Case(
        "body unknown fields silently",
        post(query(CONFIG_MAPS, fieldValidation="Ignore"), {**config_map(nonsense=1), "more": 2}),
    ),
    Case(
        "body duplicate key strictly",
        post(query(CONFIG_MAPS, fieldValidation="Strict"), '{"metadata":{"name":"a"},"data":{"k":"x","k":"y"}}'),
    ),
    Case(
        "body custom resource with duplicate keys",
        post(
            query(WIDGETS, fieldValidation="Strict"),
            '{"apiVersion":"diff.example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":1,"size":2}}',
        ),
    ),
    Case("body custom resource with unknown fields", post(WIDGETS, widget(spec={"size": 1, "nonsense": {"a": 1}}))),
    Case(
        "body custom resource with unknown fields strictly",
        post(query(WIDGETS, fieldValidation="Strict"), widget(spec={"size": 1, "nonsense": 1}, nonsense=2)),
    ),
]


def _accept(name: str, accept: str, path: str = _A) -> Case:
    return Case(f"accept {name}", get(path, accept=accept), _MADE)


ACCEPTS = [
    _accept("anything", "*/*"),
    _accept("any application", "application/*"),
    _accept("YAML", "application/yaml"),
    _accept("YAML list", "application/yaml", query(CONFIG_MAPS, fieldSelector="metadata.name=a")),
    _accept("YAML rather than JSON", "application/json;q=0.5, application/yaml"),
    _accept("text", "text/plain"),
    _accept("HTML or anything", "text/html, */*;q=0.1"),
    _accept("CBOR", "application/cbor"),
    _accept("CBOR or JSON", "application/cbor, application/json"),
    _accept("protobuf or JSON", f"{_PROTOBUF}, application/json", f"{WIDGETS}"),
    _accept("garbage", ";;;"),
    _accept("an unknown transform", "application/json;as=Nonsense;v=v1;g=meta.k8s.io"),
    _accept("pretty JSON", "application/json;pretty=1"),
    Case("accept gzip for a small answer", get(_A, headers={"Accept-Encoding": "gzip"}), _MADE),
    Case(
        "accept gzip for a large answer",
        get(_A, headers={"Accept-Encoding": "gzip"}),
        (post(CONFIG_MAPS, config_map(data={"k": "x" * 200_000})),),
        view="nothing",
    ),
    Case(
        "accept no gzip for a large answer",
        get(_A),
        (post(CONFIG_MAPS, config_map(data={"k": "x" * 200_000})),),
        view="nothing",
    ),
    Case("accept text for what is not there", get(_A, accept="text/plain")),
    Case("accept text for creating", post(CONFIG_MAPS, config_map(), accept="text/plain")),
    Case("accept YAML for creating", post(CONFIG_MAPS, config_map(), accept="application/yaml")),
    Case("accept YAML for an error", get(_A, accept="application/yaml")),
]

PATHS = [
    Case("path unknown", get("/nonsense")),
    Case("path unknown resource", get("/api/v1/namespaces/{ns}/nonsense")),
    Case("path unknown resource name", get("/api/v1/namespaces/{ns}/nonsense/x")),
    Case("path unknown group", get("/apis/nonsense.example.com/v1/x")),
    Case("path unknown version", get("/apis/coordination.k8s.io/v9/leases")),
    Case("path unknown core version", get("/api/v9/configmaps")),
    Case("path unknown subresource", get(f"{_A}/nonsense"), _MADE),
    Case("path status of a kind without", get(f"{_A}/status"), _MADE),
    Case("path cluster-wide name of a namespaced kind", get("/api/v1/configmaps/a")),
    Case("path namespaced namespaces", get("/api/v1/namespaces/{ns}/namespaces")),
    Case("path with a slash at the end", get(f"{CONFIG_MAPS}/")),
    Case("path with two slashes", get("/api/v1//namespaces/{ns}/configmaps")),
    Case("path upwards", get("/api/v1/namespaces/{ns}/configmaps/../secrets")),
    Case("path with an escaped slash", get(f"{CONFIG_MAPS}/a%2fb")),
    Case("path with a percent sign alone", get(f"{CONFIG_MAPS}/a%zz")),
    Case("path of a group with a slash", get("/apis/coordination.k8s.io/")),
    Case("method POST to an item", post(_A, config_map()), _MADE),
    Case("method PUT to a collection", put(CONFIG_MAPS, config_map())),
    Case("method unknown", Send("FROB", CONFIG_MAPS)),
    Case("method OPTIONS", Send("OPTIONS", CONFIG_MAPS)),
    Case("method HEAD", Send("HEAD", _A), _MADE),
    Case("method HEAD for what is not there", Send("HEAD", _A)),
    Case("method TRACE", Send("TRACE", CONFIG_MAPS)),
    Case("method POST to a review item", get("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")),
    Case("method DELETE of discovery", Send("DELETE", "/api/v1")),
    Case("method POST to discovery", post("/apis", {}), view="groups"),
    Case("method POST to health", post("/healthz", "")),
    Case("method PATCH of a token", Send("PATCH", "/api/v1/namespaces/{ns}/serviceaccounts/default/token", "{}")),
    Case("audit id given", get(LEASES, headers={"Audit-Id": "00000000-0000-4000-8000-00000000000a"})),
]

CASES = [*BODIES, *ACCEPTS, *PATHS]
