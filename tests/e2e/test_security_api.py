"""Hostile requests: one test for each row of ``users.md`` 7.3 that concerns the API surface, and for issue 5's list.

Whatever is sent, the answer is a refusal or plain service, comes soon, and no request is answered that was not asked for.
After all of them the server is the one it was: its log knows no unexpected error, and it has not grown much. HTTP itself is
in ``test_security_http``; forged headers and leaks of tokens are tested where authentication is.
"""

import base64
import itertools
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from eventually import eventually
from hostile import CANARY, MAPS, SECRETS, refused, timed, unharmed
from kubectl import Kubectl
from porch_client import PorchClient
from porch_process import PorchProcess

Object = dict[str, Any]
_numbers = itertools.count()

pytestmark = pytest.mark.usefixtures("no_harm")


@pytest.fixture(scope="module")
def no_harm(porch_server: PorchProcess) -> Iterator[None]:
    """What must hold after all tests of this module."""
    with unharmed(porch_server):
        yield


# --- paths (row 1) -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/api/v1/namespaces/default/../kube-system/secrets",
        "/api/v1/namespaces/default/%2e%2e/secrets",
        "/api/v1/namespaces/%2e%2e/secrets/a",
        "/api/v1/namespaces/default%2fsecrets/configmaps/a",
        "/api/v1/namespaces/default/configmaps/a%2fb",
        "/api/v1/namespaces/default/configmaps/%00",
        "/api/v1/namespaces/default/configmaps/a%00b",
        "/api/v1/namespaces/default/configmaps/%2e",
        "/api/v1/namespaces/default/configmaps/%2e%2e",
        "/api/v1/namespaces/default/configmaps/%ff%fe",
        "/api/v1/namespaces/default/configmaps/%",
        "/api/v1/namespaces/default/configmaps/%zz",
        "/api/v1/namespaces/default/configmaps/a;b=c",
        "/api/v1/namespaces/default/configmaps/a%0d%0aSet-Cookie:%20b",
        "/api/v1/namespaces/default/configmaps/" + "a" * 30_000,
        "/api/v1/namespaces/" + "/".join("a" * 5000) + "/b",
        "/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisionresources/..%5c..%5ca",
        "/openapi/v3/%2e%2e/%2e%2e/etc/passwd",
        "/openapi/v3/apis/..%2f..%2fsecret",
        "/healthz/../api/v1/secrets",
        "/.git/config",
        "/%5c%5cexample.com",
    ],
)
def test_row_01_path_tricks_lead_nowhere(path: str, porch: PorchClient) -> None:
    answer = timed(porch, "GET", path)

    assert answer.code in (400, 404), (answer.code, answer.body[:200])
    assert not any("\n" in value for value in answer.headers.values())
    assert "set-cookie" not in {name.lower() for name in answer.headers}


@pytest.mark.parametrize("path", ["//api/v1/secrets", "/api//v1/secrets", "/api/v1//secrets", "/api/v1/secrets/"])
def test_row_01_doubled_slashes_reach_nothing_that_single_ones_do_not(path: str, porch: PorchClient) -> None:
    """They are read as one slash here, as authorization reads them, so both see the same resource."""
    assert timed(porch, "GET", path).code in (200, 301, 404)


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a%b", "a\u0000b", "a\nb", "A", "a" * 300, "é", " ", "-"])
def test_row_01_names_that_could_be_paths_are_not_stored(name: str, porch: PorchClient) -> None:
    refused(timed(porch, "POST", MAPS, {"metadata": {"name": name}}), 400, 422)
    refused(timed(porch, "PUT", f"{MAPS}/{quote(name, safe='')}", {"metadata": {"name": name}}), 400, 404, 422)
    apply = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}).encode()
    answer = porch.request(
        "PATCH", f"{MAPS}/{quote(name, safe='')}?fieldManager=a", apply, content_type="application/apply-patch+yaml"
    )
    refused(answer, 400, 404, 415, 422)


# --- bodies (row 6) ------------------------------------------------------------------------------

DEEP = 100_000
BILLION_LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 10)}]\n" for n in range(12)
)
PREFIX = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bomb"},'


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        pytest.param(b"[" * DEEP + b"]" * DEEP, "json", id="nested-lists"),
        pytest.param(b'{"a":' * DEEP + b"1" + b"}" * DEEP, "json", id="nested-maps"),
        pytest.param(PREFIX + b'"data":' + b'{"a":' * 500 + b"1" + b"}" * 500 + b"}", "json", id="nested-data"),
        pytest.param(b"[" * DEEP, "json", id="never-closed"),
        pytest.param(b"[" * DEEP, "yaml", id="nested-yaml-flow"),
        pytest.param(b"- " * DEEP, "yaml", id="nested-yaml-blocks"),
        pytest.param(b"".join(b" " * n + b"a:\n" for n in range(1000)), "yaml", id="nested-yaml-maps"),
        pytest.param(BILLION_LAUGHS.encode(), "yaml", id="alias-bomb"),
        pytest.param(b"a: &a [*a]\n", "yaml", id="alias-of-itself"),
        pytest.param(b"!!python/object/apply:os.system ['true']\n", "yaml", id="python-tag"),
        pytest.param(b"a: !!binary '*'\n", "yaml", id="binary-tag"),
        pytest.param(b"%YAML 9.9\n---\na: b\n", "yaml", id="yaml-of-the-future"),
        pytest.param(b"{" * 50_000, "yaml", id="braces"),
        pytest.param(b"? " * 50_000, "yaml", id="complex-keys"),
        pytest.param(PREFIX + b'"data":{"a":' + b"9" * 100_000 + b"}}", "json", id="huge-integer"),
        pytest.param(PREFIX + b'"data":{"a":1e999999}}', "json", id="infinite-number"),
        pytest.param(PREFIX + b'"immutable":NaN}', "json", id="not-a-number"),
        pytest.param(b'{"metadata":{"name":"a","generation":' + b"1" * 400 + b"}}", "json", id="huge-generation"),
        pytest.param(b"\xff\xfe{}", "json", id="not-utf-8"),
        pytest.param(b'{"metadata":{"name":"\xc3\x28"}}', "json", id="broken-utf-8"),
        pytest.param(b'{"metadata":{"name":"a","labels":{"a":"\\ud800"}}}', "json", id="lone-surrogate"),
        pytest.param(b"\0" * 1000, "json", id="nul-bytes"),
        pytest.param(b"\0" * 1000, "yaml", id="nul-bytes-yaml"),
        pytest.param(b"null", "json", id="null"),
        pytest.param(b"[]", "json", id="list"),
        pytest.param(b'"a"', "json", id="text"),
        pytest.param(b"", "json", id="nothing"),
        pytest.param(b'{"metadata":null}', "json", id="no-metadata"),
        pytest.param(b'{"metadata":{"name":["a"]}}', "json", id="name-is-a-list"),
        pytest.param(b'{"metadata":{"name":"a","ownerReferences":[null]}}', "json", id="owner-is-null"),
        pytest.param(b'{"metadata":{"name":"a","managedFields":[[]]}}', "json", id="managed-fields-are-lists"),
        pytest.param(b'{"metadata":{"name":"a","labels":{"a":{}}}}', "json", id="label-is-a-map"),
        pytest.param(b'{"metadata":{"name":"a","creationTimestamp":"x"}}', "json", id="time-is-none"),
        pytest.param(b"k8s\0", "vnd.kubernetes.protobuf", id="protobuf-of-nothing"),
        pytest.param(b"k8s\0" + b"\xff" * 1000, "vnd.kubernetes.protobuf", id="protobuf-of-ones"),
        pytest.param(b"k8s\0\x0a\xff\xff\xff\xff\x0f", "vnd.kubernetes.protobuf", id="protobuf-too-long"),
        pytest.param(b"k8s\0" + b"\x0b" * 100_000, "vnd.kubernetes.protobuf", id="protobuf-nested-groups"),
        pytest.param(b"junk", "vnd.kubernetes.protobuf", id="protobuf-without-its-mark"),
    ],
)
def test_row_06_bombs_and_nonsense_are_refused_soon(body: bytes, content_type: str, porch: PorchClient) -> None:
    answer = timed(porch, "POST", MAPS, body, content_type=f"application/{content_type}")

    refused(answer, 400, 413, 415, 422)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_row_06_bodies_have_a_limit(method: str, porch: PorchClient) -> None:
    path = MAPS if method == "POST" else f"{MAPS}/a"
    content_type = "application/merge-patch+json" if method == "PATCH" else "application/json"

    refused(porch.request(method, path, b" " * (7 << 20), content_type=content_type), 413)


def test_row_06_duplicate_keys_are_told_or_refused(porch: PorchClient) -> None:
    body = b'{"metadata":{"name":"twice"},"data":{"a":"1","a":"2"}}'

    warned = porch.request("POST", f"{MAPS}?dryRun=All", body)
    strict = porch.request("POST", f"{MAPS}?dryRun=All&fieldValidation=Strict", body)

    assert warned.code == 201
    assert warned.object["data"] == {"a": "2"}
    assert 'duplicate field "data.a"' in warned.headers["warning"].replace("\\", "")
    refused(strict, 400)
    assert 'duplicate field "data.a"' in strict.message


@pytest.mark.parametrize(
    ("patch", "content_type"),
    [
        pytest.param([{"op": "add", "path": "/data/a", "value": "a"}] * 10_001, "json-patch", id="many-operations"),
        pytest.param(
            [{"op": "add", "path": "/data", "value": {"x": "a" * 50_000}}]
            + [{"op": "copy", "from": "/data", "path": f"/data/c{n}"} for n in range(40)],
            "json-patch",
            id="copies-of-copies",
        ),
        pytest.param([{"op": "test", "path": "/a" * 10_000, "value": 1}], "json-patch", id="deep-pointer"),
        pytest.param([{"op": "move", "from": "/data", "path": "/data/a"}], "json-patch", id="move-into-itself"),
        pytest.param([{"op": "add", "path": "/metadata/finalizers/99999999999", "value": 1}], "json-patch", id="index"),
        pytest.param([{"op": "remove", "path": ""}], "json-patch", id="remove-everything"),
        pytest.param([{"op": "replace", "path": "", "value": None}], "json-patch", id="replace-by-null"),
        pytest.param([None], "json-patch", id="no-operation"),
        pytest.param({"op": "add"}, "json-patch", id="no-list"),
        pytest.param([], "merge-patch", id="merge-of-a-list"),
        pytest.param(None, "merge-patch", id="merge-of-null"),
        pytest.param({"metadata": None}, "merge-patch", id="merge-without-metadata"),
        pytest.param({"metadata": {"name": None}, "data": 5}, "merge-patch", id="merge-of-a-number"),
        pytest.param({"$patch": "explode"}, "strategic-merge-patch", id="unknown-directive"),
        pytest.param({"metadata": {"ownerReferences": [{"$patch": "delete"}]}}, "strategic-merge-patch", id="no-key"),
        pytest.param({"metadata": {"$setElementOrder/finalizers": 5}}, "strategic-merge-patch", id="order-is-a-number"),
        pytest.param({"data": {"$retainKeys": {"a": 1}}}, "strategic-merge-patch", id="retained-keys-are-a-map"),
    ],
)
def test_row_06_patches_that_explode_are_refused(patch: Any, content_type: str, porch: PorchClient) -> None:
    name = f"patched-{next(_numbers)}"
    assert porch.request("POST", MAPS, {"metadata": {"name": name}, "data": {"a": "b"}}).code == 201
    body = json.dumps(patch).encode()

    answer = timed(porch, "PATCH", f"{MAPS}/{name}", body, content_type=f"application/{content_type}+json")

    if patch != {"metadata": None}:  # which changes nothing that may be changed
        refused(answer, 400, 413, 422)
    assert porch.request("GET", f"{MAPS}/{name}").object["data"] == {"a": "b"}


@pytest.mark.parametrize(
    "body",
    [
        b'{"propagationPolicy":5}',
        b'{"preconditions":[]}',
        b'{"preconditions":{"uid":{}}}',
        b'{"gracePeriodSeconds":"x"}',
        b'{"gracePeriodSeconds":' + b"9" * 400 + b"}",
        b'{"dryRun":"All"}',
        b'{"dryRun":[[]]}',
        b"[]",
        b"[" * 10_000,
        b'{"kind":"Nonsense"}',
    ],
)
def test_row_06_delete_options_are_checked(body: bytes, porch: PorchClient) -> None:
    name = f"kept-{next(_numbers)}"
    porch.request("POST", MAPS, {"metadata": {"name": name}})

    refused(timed(porch, "DELETE", f"{MAPS}/{name}", body), 400, 422)
    assert porch.request("GET", f"{MAPS}/{name}").code == 200


# --- expensive questions (row 15) ----------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("labelSelector=" + quote(",".join(f"k{n}=v" for n in range(5000))), id="many-requirements"),
        pytest.param(
            "labelSelector=" + quote("k in (" + ",".join(f"v{n}" for n in range(6000)) + ")"), id="many-values"
        ),
        pytest.param("labelSelector=" + quote("(" * 20_000), id="parentheses"),
        pytest.param("labelSelector=" + quote("!" * 20_000), id="exclamation-marks"),
        pytest.param("labelSelector=" + quote("," * 20_000), id="commas"),
        pytest.param("labelSelector=" + quote("a" * 20_000), id="long-key"),
        pytest.param("labelSelector=" + quote(" " * 20_000 + "a"), id="blanks"),
        pytest.param("labelSelector=" + quote("a>" + "9" * 10_000), id="huge-number"),
        pytest.param("fieldSelector=" + quote(",".join(["metadata.name=a"] * 3000)), id="many-terms"),
        pytest.param("fieldSelector=" + quote("\\" * 20_001), id="backslashes"),
        pytest.param("fieldSelector=" + quote("=" * 20_000), id="equal-signs"),
        pytest.param("&".join(f"a{n}=b" for n in range(5000)), id="many-parameters"),
        pytest.param("&" * 20_000, id="ampersands"),
        pytest.param("limit=" + "9" * 400, id="huge-limit"),
        pytest.param("limit=1e9", id="limit-is-no-integer"),
        pytest.param("resourceVersion=" + "9" * 400, id="huge-revision"),
        pytest.param("resourceVersion=-1", id="negative-revision"),
        pytest.param("resourceVersion=%00", id="nul-revision"),
        pytest.param("continue=" + "A" * 20_000, id="long-token"),
        pytest.param("continue=%ff%00", id="garbage-token"),
        pytest.param("timeout=" + "1h" * 10_000, id="long-duration"),
        pytest.param("timeout=" + "1" * 10_000, id="long-number"),
        pytest.param("watch=1&timeoutSeconds=" + "9" * 400, id="endless-watch"),
        pytest.param("watch=1&resourceVersion=-5", id="watch-of-a-negative-revision"),
        pytest.param("labelSelector=%ff%fe", id="selector-of-no-text"),
        pytest.param("fieldSelector=metadata.name%3D%00", id="nul-in-selector"),
    ],
)
def test_row_15_selectors_and_parameters_are_bounded(query: str, porch: PorchClient) -> None:
    answer = timed(porch, "GET", f"{MAPS}?{query}")

    assert answer.code in (200, 400, 422, 431), (answer.code, answer.body[:300])


def test_row_15_ten_thousand_requirements_cost_no_more_than_their_length(porch: PorchClient) -> None:
    """They do not fit into a request's head; a list with as many as do must not take time for each object."""
    for number in range(50):
        porch.request("POST", MAPS, {"metadata": {"name": f"l{number}", "labels": {"k0": "v"}}})
    whole = ",".join(f"k{n}=v" for n in range(10_000))
    fitting = ",".join(f"!k{n}" for n in range(1, 7000))

    assert timed(porch, "GET", f"{MAPS}?labelSelector={whole}").code in (400, 431)
    assert timed(porch, "GET", f"{MAPS}?labelSelector={fitting}").code in (200, 400)


def test_row_15_accept_headers_are_bounded(porch: PorchClient) -> None:
    accept = ",".join(f"a/b{n};q=0.{n}" for n in range(3000))

    refused(timed(porch, "GET", MAPS, accept=accept), 406)
    refused(timed(porch, "GET", MAPS, accept=";" * 30_000), 406)


def crd(plural: str, schema: Object) -> Object:
    kind = plural.removesuffix("s").capitalize()
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.hostile.example"},
        "spec": {
            "group": "hostile.example",
            "names": {"plural": plural, "kind": kind},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


@pytest.mark.parametrize(
    ("plural", "schema", "spec"),
    [
        pytest.param("patterns", {"type": "string", "pattern": "^(a+)+$"}, "a" * 50_000 + "!", id="pattern"),
        pytest.param("repeats", {"type": "string", "pattern": "^((a|aa)*b?)*$"}, "a" * 50_000 + "!", id="alternatives"),
        pytest.param(
            "unions",
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "not": {"required": ["a"]}},
            {"a": {"b": ["c"] * 50_000}},
            id="large-value",
        ),
    ],
)
def test_row_15_patterns_of_custom_resources_take_linear_time(
    plural: str, schema: Object, spec: Any, porch: PorchClient
) -> None:
    defined = porch.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(plural, schema))
    assert defined.code in (201, 422), defined.body
    if defined.code == 422:  # refused where it is defined, which is as good
        return
    path = f"/apis/hostile.example/v1/namespaces/default/{plural}"
    eventually(lambda: found(porch, path))
    body = {
        "apiVersion": "hostile.example/v1",
        "kind": plural.removesuffix("s").capitalize(),
        "metadata": {"name": "a"},
        "spec": spec,
    }

    refused(timed(porch, "POST", path, body), 400, 422)


def found(porch: PorchClient, path: str) -> None:
    assert porch.request("GET", path).code == 200


# --- quotas (row 16) -----------------------------------------------------------------------------


def test_row_16_objects_are_bounded_in_size(porch: PorchClient) -> None:
    """ConfigMaps and Secrets hold one MiB; annotations 256 KiB."""
    large = {"metadata": {"name": "large"}, "data": {"a": "x" * (1 << 20) + "y"}}
    encoded = base64.b64encode(b"x" * (1 << 20) + b"y").decode()
    annotated = {"metadata": {"name": "large", "annotations": {"a": "x" * (256 << 10)}}}

    refused(porch.request("POST", MAPS, large), 422)
    refused(porch.request("POST", SECRETS, {"metadata": {"name": "large"}, "data": {"a": encoded}}), 422)
    refused(porch.request("POST", MAPS, annotated), 422)


# --- secrets (row 8) -----------------------------------------------------------------------------


def test_row_08_what_is_in_a_secret_is_in_no_error(porch: PorchClient, kubectl: Kubectl) -> None:
    """The log is searched for it when this module ends."""
    hidden = base64.b64encode(CANARY.encode()).decode()
    bodies: list[Object] = [
        {"metadata": {"name": "BAD_name"}, "data": {"a": hidden}, "stringData": {"b": CANARY}},
        {"metadata": {"name": "a"}, "data": {"a": CANARY}},
        {"metadata": {"name": "a"}, "data": CANARY},
        {"metadata": {"name": "a"}, "stringData": [CANARY]},
        {"metadata": {"name": "a"}, "stringData": {"b": {"c": CANARY}}},
        {"metadata": {"name": "a"}, "type": "kubernetes.io/basic-auth", "stringData": {"x": CANARY}},
    ]
    for body in bodies:
        answer = porch.request("POST", SECRETS, body)
        refused(answer, 400, 422)
        assert CANARY.encode() not in answer.body, body
        assert hidden.encode() not in answer.body
    porch.request("POST", SECRETS, {"metadata": {"name": "kept"}, "stringData": {"password": CANARY}})
    shown = kubectl("get", "secret", "kept", "-n", "default")
    assert CANARY not in shown.stdout + shown.stderr
    porch.request("DELETE", f"{SECRETS}/kept")
