"""Attacks on who somebody is: claims in headers that nobody may make, and credentials that must show up nowhere.

Source: ``users.md`` 7.3 (8, 11, 14).
"""

import http.client
import json
import ssl
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from manifests import credentials
from porch_process import PorchProcess

from apiserver.auth.certificates import Files, issue_client, load_authority

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
CANARY = "canary-7f3a-do-not-show"

Header = tuple[str, str]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PorchProcess]:
    """A server with an audit log at its most talkative, and a file of tokens."""
    folder = tmp_path_factory.mktemp("security")
    (folder / "tokens").write_text(
        f'alice-token-{CANARY},alice,1,"team-a"\nroot-token-{CANARY},root,2,"system:masters"\n'
    )
    (folder / "tokens").chmod(0o600)
    process = PorchProcess(
        folder / "data",
        arguments=["--audit-log", str(folder / "audit.log"), "--token-file", str(folder / "tokens")],
        environment={"PORCH_AUDIT_LEVEL": "RequestResponse", "PORCH_LOG_LEVEL": "debug"},
    )
    process.start()
    yield process
    process.stop()


def ask(
    server: PorchProcess,
    headers: Sequence[Header],
    *,
    method: str = "GET",
    path: str = CONFIG_MAPS,
    body: Any = None,
    certificate: Path | None = None,
) -> tuple[int, Any]:
    """Send one request with exactly these headers, repeated ones included; return code and decoded body."""
    context = ssl.create_default_context(cafile=str(server.data / "ca.crt"))
    if certificate is not None:
        context.load_cert_chain(certificate)
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=context, timeout=20)
    data = None if body is None else json.dumps(body).encode()
    connection.putrequest(method, path)
    for name, value in [*headers, *([("Content-Length", str(len(data)))] if data else [])]:
        connection.putheader(name, value)
    connection.endheaders(data)
    response = connection.getresponse()
    text = response.read()
    connection.close()
    return response.status, json.loads(text) if text.startswith(b"{") else text


def bearer(token: str) -> Header:
    return ("Authorization", f"Bearer {token}-{CANARY}")


def whoami(server: PorchProcess, headers: Sequence[Header], certificate: Path | None = None) -> Any:
    question = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    code, answer = ask(server, headers, method="POST", path=WHO, body=question, certificate=certificate)
    return answer["status"]["userInfo"] if code == 201 else code


def client_certificate(server: PorchProcess, folder: Path, name: str) -> Path:
    pem = folder / f"{name}.pem"
    pem.write_bytes(b"".join(issue_client(load_authority(Files.under(server.data)), name)))
    return pem


FORGED = [("X-Remote-User", "admin"), ("X-Remote-Group", "system:masters"), ("X-Remote-Extra-Scopes", "all")]


def test_headers_of_a_front_proxy_mean_nothing_here(server: PorchProcess, tmp_path: Path) -> None:
    alone = ask(server, FORGED)
    beside = whoami(server, [*FORGED, bearer("alice-token")])
    # A certificate of the client CA does not become a proxy's by its name.
    named = whoami(server, FORGED, client_certificate(server, tmp_path, "front-proxy-client"))

    assert alone[0] == 401
    assert (beside["username"], beside["groups"]) == ("alice", ["team-a", "system:authenticated"])
    assert (named["username"], named["groups"]) == ("front-proxy-client", ["system:authenticated"])


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param([("Impersonate-User", "root")], id="user"),
        pytest.param([("Impersonate-User", "alice"), ("Impersonate-Group", "system:masters")], id="group"),
        pytest.param([("impersonate-USER", "root")], id="odd-case"),
        pytest.param([("Impersonate-User", "alice"), ("Impersonate-User", "root")], id="twice"),
        pytest.param([("Impersonate-User", "system:serviceaccount:kube-system:x")], id="service-account"),
        pytest.param([("Impersonate-User", "alice"), ("Impersonate-Extra-Scopes", "all")], id="extra"),
        pytest.param([("Impersonate-User", "alice"), ("Impersonate-Uid", "2")], id="uid"),
    ],
)
def test_nobody_impersonates_without_the_right(server: PorchProcess, claims: list[Header]) -> None:
    code, answer = ask(server, [bearer("alice-token"), *claims])

    assert code == 403
    assert 'User "alice" cannot impersonate resource' in answer["message"]


def test_impersonation_without_credentials_is_nobody(server: PorchProcess) -> None:
    assert ask(server, [("Impersonate-User", "root"), ("Impersonate-Group", "system:masters")])[0] == 401


def test_impersonation_of_half_a_user_is_refused(server: PorchProcess) -> None:
    assert ask(server, [bearer("root-token"), ("Impersonate-Group", "g")])[0] == 400


def test_of_several_authorization_headers_the_first_counts(server: PorchProcess) -> None:
    alice, root, wrong = bearer("alice-token"), bearer("root-token"), bearer("wrong")

    assert whoami(server, [alice, root])["username"] == "alice"
    assert whoami(server, [wrong, root]) == 401
    assert whoami(server, [("Authorization", "Basic YTpi"), root]) == 401


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("Bearer", id="no-token"),
        pytest.param("Bearer ", id="empty"),
        pytest.param("Bearer  two-spaces", id="two-spaces"),
        pytest.param(f"Token {CANARY}", id="other-scheme"),
        pytest.param(f"Bearer {'a' * 20_000}", id="long"),
        pytest.param("Bearer a.b.c", id="like-a-jwt"),
        pytest.param(
            "Bearer eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2t1YmVybmV0ZXMuZGVmYXVsdC5zdmMifQ.", id="alg-none"
        ),
        pytest.param("Bearer \xff\xfe", id="not-ascii"),
    ],
)
def test_a_malformed_authorization_header_is_answered_like_a_wrong_token(server: PorchProcess, value: str) -> None:
    code, answer = ask(server, [("Authorization", value)])

    assert code == 401
    assert answer == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "reason": "Unauthorized",
        "code": 401,
    }


def test_a_name_that_looks_like_a_page_is_shown_as_text(server: PorchProcess, tmp_path: Path) -> None:
    script = client_certificate(server, tmp_path, "<script>&")

    code, answer = ask(server, [], certificate=script)

    assert code == 403
    assert 'User "&lt;script&gt;&amp;" cannot list' in answer["message"]


def test_credentials_show_up_in_no_log_and_no_error(server: PorchProcess) -> None:
    """Tokens in headers, queries and reviews, a Secret's content, an issued token: none is printed or recorded."""
    told = [
        ask(server, [bearer("wrong")]),
        ask(server, [bearer("alice-token")], path=f"{CONFIG_MAPS}?token={CANARY}&access_token={CANARY}"),
        ask(server, [bearer("alice-token"), ("X-Remote-User", CANARY)]),
        ask(server, [bearer("root-token"), ("Cookie", CANARY)], path=f"{CONFIG_MAPS}/none"),
    ]
    json_body = ("Content-Type", "application/json")
    secret = credentials("canary", password=CANARY)
    secrets = "/api/v1/namespaces/default/secrets"
    assert ask(server, [bearer("root-token"), json_body], method="POST", path=secrets, body=secret)[0] == 201
    broken = {**secret, "data": {"password": f"!{CANARY}!"}}
    refused = ask(server, [bearer("root-token"), json_body], method="PUT", path=f"{secrets}/canary", body=broken)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": f"x{CANARY}"}}
    reviews = "/apis/authentication.k8s.io/v1/tokenreviews"
    assert ask(server, [bearer("root-token"), json_body], method="POST", path=reviews, body=review)[0] == 201
    issued = ask(
        server,
        [bearer("root-token"), json_body],
        method="POST",
        path="/api/v1/namespaces/default/serviceaccounts/default/token",
        body={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    )
    assert issued[0] == 201, issued
    token = issued[1]["status"]["token"]
    server.stop()
    audit = (server.data.parent / "audit.log").read_text()

    assert [code for code, _ in told] == [401, 403, 403, 404]
    assert refused[0] in (400, 422)
    assert CANARY not in json.dumps(told)
    for text in (server.log.read_text(), audit):
        assert CANARY not in text
        assert token.rsplit(".", 1)[1] not in text
    recorded = [json.loads(line) for line in audit.splitlines()]
    assert any(event.get("objectRef", {}).get("subresource") == "token" for event in recorded), "it was recorded at all"
    created = [event for event in recorded if event["verb"] == "create" and event["stage"] == "ResponseComplete"]
    assert any(event["objectRef"].get("name") == "canary" for event in created)
    server.start()
