"""Traces, logs and metrics of a server as its operators see them, and that no secret is in any of them."""

import base64
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually
from git_server import GitServer, create_repository, git_server
from logged_lines import logged_lines
from manifests import namespace_object, repository
from porch_client import PorchClient
from porch_process import PorchProcess
from ssh_server import SshServer, ssh_server
from trace_collector import Collector, SeenSpan, collector

CANARY = "canary-27182818284590"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
REPOSITORIES = "/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories"


@pytest.fixture(scope="module")
def traces() -> Iterator[Collector]:
    with collector() as kept:
        yield kept


@pytest.fixture(scope="module")
def remotes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    root = tmp_path_factory.mktemp("remotes")
    create_repository(root / "repo.git")
    create_repository(root / "refused.git")
    with git_server(root, f"porch:{CANARY}") as server:
        yield server


@pytest.fixture(scope="module")
def by_ssh(remotes: GitServer) -> Iterator[SshServer]:
    create_repository(remotes.root / "keyed.git")
    with ssh_server(remotes.root) as server:
        yield server


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, traces: Collector, remotes: GitServer) -> Iterator[PorchProcess]:
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": traces.url,
        "OTEL_EXPORTER_OTLP_HEADERS": "x-tenant=our%20team",
        "OTEL_SERVICE_NAME": "porch-under-test",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
        "PORCH_LOG_LEVEL": "debug",
        "PORCH_SYNC_INTERVAL": "2",
    }
    running = PorchProcess(tmp_path_factory.mktemp("porch") / "data", environment=environment)
    running.start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def porch(server: PorchProcess, remotes: GitServer) -> Iterator[PorchClient]:
    client = server.client()
    client.request("POST", "/api/v1/namespaces", namespace_object("default"))
    put_secret(client, "login", "kubernetes.io/basic-auth", username="porch", password=CANARY)
    put_repository(client, "repo", f"{remotes.url}/repo", "login")
    yield client
    client.close()


def put_secret(porch: PorchClient, name: str, type_: str, **data: str) -> None:
    named = {key.replace("__", "-"): value for key, value in data.items()}
    body = {"apiVersion": "v1", "kind": "Secret", "type": type_, "metadata": {"name": name}, "stringData": named}
    answer = porch.request("POST", "/api/v1/namespaces/default/secrets", body)
    assert answer.code == 201, answer.body


def put_repository(porch: PorchClient, name: str, url: str, secret: str, *, ready: bool = True) -> None:
    answer = porch.request("POST", REPOSITORIES, repository(name, url, login=secret))
    assert answer.code == 201, answer.body
    eventually(lambda: check_ready(porch, name, "True" if ready else "False"))


def check_ready(porch: PorchClient, name: str, wanted: str) -> None:
    status = porch.request("GET", f"{REPOSITORIES}/{name}").object.get("status") or {}
    found = [one for one in status.get("conditions") or [] if one["type"] == "Ready"]
    assert [(one["status"], one["reason"] == "Reconciling") for one in found] == [(wanted, False)], found


def move(porch: PorchClient, name: str, lifecycle: str, subresource: str = "") -> Any:
    return porch.request(
        "PATCH",
        porch.path("packagerevisions", name, subresource),
        {"spec": {"lifecycle": lifecycle}},
        content_type="application/merge-patch+json",
    )


def life(porch: PorchClient, package: str, repository: str = "repo") -> str:
    """Create, save, propose and approve a package."""
    name = f"{repository}.{package}.v1"
    assert porch.create_revision(repository, package).code == 201
    assert porch.save(name, {"a.txt": "a\n"}).code == 200
    assert move(porch, name, "Proposed").code == 200
    assert move(porch, name, "Published", "approval").code == 200
    return name


def log_lines(server: PorchProcess) -> list[dict[str, Any]]:
    return [json.loads(line) for line in logged_lines(server.log) if line.startswith("{")]


def ancestors(spans: list[SeenSpan], span: SeenSpan) -> list[str]:
    by_id = {one.id: one for one in spans}
    names = []
    while span.parent in by_id:
        span = by_id[span.parent]
        names.append(span.name)
    return names


def test_a_clients_trace_goes_on_through_use_case_render_git_and_database(
    porch: PorchClient, traces: Collector, remotes: GitServer
) -> None:
    porch.headers = {"traceparent": f"00-{TRACE}-{PARENT}-01"}
    try:
        life(porch, "traced")
    finally:
        porch.headers = {}

    def arrived() -> None:
        ours = [span for span in traces.spans if span.trace == TRACE]
        approval = [span for span in ours if span.name == "patch packagerevisions/approval"]
        assert approval
        assert approval[0].parent == PARENT
        assert approval[0].attributes["k8s.object.name"] == "repo.traced.v1"
        assert approval[0].attributes["http.response.status_code"] == 200
        renders = [span for span in ours if span.name == "render"]
        assert any(ancestors(ours, one) == ["save", "update packagerevisionresources"] for one in renders)
        commits = [span for span in ours if span.name == "commit"]
        assert any(ancestors(ours, one)[:1] == ["save"] for one in commits)
        pushes = [span for span in traces.named("push") if TRACE in span.links]
        assert pushes, "one push serves many requests, so it is a trace of its own that names them"
        attempts = [span for span in traces.named("git attempt") if span.trace == pushes[0].trace]
        assert attempts

    eventually(arrived)
    told = [headers["traceparent"] for _, path, headers in remotes.requests if "traceparent" in headers]
    assert all(re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-0[13]", one) for one in told)
    assert {one.split("-")[1] for one in told} & {span.trace for span in traces.named("push")}
    assert traces.headers[0]["x-tenant"] == "our team"
    assert b"porch-under-test" in traces.raw[0]


def test_what_fails_is_marked_in_its_trace(porch: PorchClient, traces: Collector) -> None:
    assert move(porch, "repo.absent.v1", "Proposed").code == 404

    def arrived() -> None:
        failed = [
            span for span in traces.named("update") if span.attributes["porch.revision"] == "default/repo.absent.v1"
        ]
        assert failed
        assert failed[0].failed

    eventually(arrived)


def test_watches_leave_no_spans(porch: PorchClient, traces: Collector) -> None:
    porch.request("GET", porch.path("packagerevisions") + "?watch=true&timeoutSeconds=1")
    porch.request("GET", porch.path("packagerevisions") + "?limit=1")

    eventually(lambda: has(traces.named("list packagerevisions")))
    assert traces.named("watch packagerevisions") == []


def has(found: Sequence[object]) -> None:
    assert found


def test_lines_of_a_request_name_it_its_user_and_its_object(porch: PorchClient, server: PorchProcess) -> None:
    porch.headers = {"Audit-Id": "my-request-1"}
    try:
        answer = porch.revision("repo.absent.v1")
    finally:
        porch.headers = {}

    assert answer.headers["audit-id"] == "my-request-1"
    eventually(lambda: has([one for one in log_lines(server) if one.get("request_id") == "my-request-1"]))
    (line,) = [one for one in log_lines(server) if one.get("request_id") == "my-request-1"]
    assert line["event"] == "request answered"
    assert line["user"] == "admin"
    assert line["verb"] == "get"
    assert line["object"] == "packagerevisions.porch.kpt.dev default/repo.absent.v1"
    assert line["code"] == 404
    assert re.fullmatch("[0-9a-f]{32}", line["trace_id"])


def test_lines_of_background_work_name_the_repository_and_no_request(porch: PorchClient, server: PorchProcess) -> None:
    put_repository(porch, "nowhere", "http://127.0.0.1:9/x", "login", ready=False)
    life(porch, "background")

    def logged() -> None:
        lines = [one for one in log_lines(server) if one.get("repository") == "default/nowhere"]
        assert lines
        assert all("request_id" not in one and "user" not in one for one in lines)

    eventually(logged)


def test_no_secret_is_in_anything_that_the_server_says(
    porch: PorchClient, server: PorchProcess, remotes: GitServer, by_ssh: SshServer, traces: Collector
) -> None:
    key = by_ssh.key.decode()
    put_secret(porch, "key", "kubernetes.io/ssh-auth", ssh__privatekey=key, known_hosts=by_ssh.known_hosts.decode())
    put_secret(porch, "stranger", "kubernetes.io/ssh-auth", ssh__privatekey=key)
    put_secret(porch, "wrong", "kubernetes.io/basic-auth", username="porch", password=f"{CANARY}-wrong")
    put_secret(porch, "token", "Opaque", bearerToken=f"{CANARY}-token")
    put_secret(porch, "injected", "Opaque", bearerToken=f"{CANARY}\r\nX-Evil: 1")
    put_repository(porch, "keyed", by_ssh.url("keyed.git"), "key")
    put_repository(porch, "unknown", by_ssh.url("stranger.git"), "stranger", ready=False)
    put_repository(porch, "injected", f"{remotes.url}/injected", "injected", ready=False)
    put_repository(porch, "refused", f"{remotes.url}/refused", "wrong")
    hook = remotes.root / "repo.git" / "hooks" / "update"
    hook.write_text(f'#!/bin/sh\n[ "$1" = refs/tags/told/v1 ] && {{ echo "who is {CANARY}?" >&2; exit 1; }}\nexit 0\n')
    hook.chmod(0o755)
    life(porch, "by-ssh", "keyed")
    answers = [porch.create_revision("refused", "refused").body, move(porch, "refused.refused.v1", "Proposed").body]
    answers.append(move(porch, "refused.refused.v1", "Published", "approval").body)
    answers += [porch.create_revision("repo", "told").body, move(porch, "repo.told.v1", "Proposed").body]
    answers.append(move(porch, "repo.told.v1", "Published", "approval").body)
    assert b"refused the push" in answers[-1]
    assert b"refused the push" in answers[2]
    clone = {"type": "clone", "clone": {"upstreamRef": {"type": "git", "git": {
        "repo": f"{remotes.url}/none", "directory": "/", "ref": "main", "secretRef": {"name": "token"}}}}}  # fmt: skip
    answers.append(porch.create_revision("repo", "cloned", tasks=[clone]).body)
    for path in ("/api/v1/namespaces/default/events", REPOSITORIES, porch.path("packagerevisions"), "/metrics"):
        answers.append(porch.request("GET", path).body)
    eventually(lambda: has(traces.named("git attempt")))

    said = b"\n".join([*answers, *traces.raw, server.log.read_bytes()])

    assert b"unknown" in said
    whole = base64.b64encode(f"porch:{CANARY}".encode())
    for secret in (CANARY.encode(), whole, whole[:-4], base64.b64encode(CANARY.encode())[:-4], key.encode()[40:90]):
        assert secret not in said, [line[:300] for line in said.split(b"\n") if secret in line][:3]


@pytest.mark.parametrize("address", [f"https://porch:{CANARY}@git.example/x", f"https://{CANARY}@git.example/x"])
def test_credentials_in_an_address_are_refused_and_not_repeated(
    porch: PorchClient, server: PorchProcess, address: str
) -> None:
    answer = porch.request("POST", REPOSITORIES, repository("leaky", address, login=""))

    assert answer.code == 422
    assert "put credentials into a Secret" in answer.message
    assert CANARY.encode() not in answer.body + server.log.read_bytes()
    assert porch.request("GET", f"{REPOSITORIES}/leaky").code == 404


def test_a_console_is_written_to_in_text(tmp_path: Path) -> None:
    server = PorchProcess(tmp_path / "data", environment={"PORCH_LOG_FORMAT": "console", "PORCH_LOG_LEVEL": "debug"})
    server.start()
    client = server.client()
    client.request("GET", "/api/v1/namespaces")
    client.close()
    server.stop()

    text = server.log.read_text()
    assert re.search(r"request answered .*object=namespaces", text)
    assert '{"' not in text
    assert "Traceback" not in text


def test_a_collector_that_is_gone_harms_nothing(tmp_path: Path) -> None:
    server = PorchProcess(tmp_path / "data", environment={"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    server.start()
    client = server.client()
    answers = [client.request("GET", "/api/v1/namespaces").code for _ in range(20)]
    client.close()

    assert set(answers) == {200}
    assert server.stop() < 30, "or it tries again and again to send what it has"
