"""What is recorded of requests, what never is, and that the file keeps it."""

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Message

from apiserver.auth import audit_log
from apiserver.auth.audit import MAX_OBJECT, AuditLog, Level, level_of
from apiserver.auth.audit_log import AuditLogFile, AuditLogUnusable
from apiserver.machinery.access import AccessDenied
from apiserver.machinery.request import AUDIT_ID, RequestInfo
from apiserver.machinery.rest import User
from krm.meta.errors import NotFound, ResourceName, ServiceUnavailable

BOB = User("bob", ("team-a",))
SECRET_VALUE = "canary"


class Lines:
    """An audit log file in memory."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def append(self, line: bytes) -> None:
        assert line.endswith(b"\n")
        self.events.append(json.loads(line))

    async def room(self) -> bool:
        return True


def info(verb: str = "create", resource: str = "widgets", **more: Any) -> RequestInfo:
    return RequestInfo(
        verb, "/x", group=more.pop("group", ""), version="v1", resource=resource, namespace="shop", **more
    )


def scope(query: bytes = b"") -> dict[str, Any]:
    headers = [(b"user-agent", b"kubectl"), (b"authorization", b"Bearer canary"), (b"cookie", b"canary")]
    return {"path": "/x", "query_string": query, "headers": headers, "client": ("10.0.0.1", 5), AUDIT_ID: "id-1"}


async def recorded(
    asked: RequestInfo,
    *,
    level: Level = Level.METADATA,
    query: bytes = b"",
    error: BaseException | None = None,
    body: bytes = b"",
    answer: bytes = b"{}",
    code: int = 201,
) -> list[dict[str, Any]]:
    """Return the events of one request."""
    lines = Lines()
    record = await AuditLog(lines, level).begin(scope(query), asked)  # type: ignore[arg-type]
    if record is None:
        return []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    with contextlib.suppress(*([type(error)] if error else [])), record:
        record.known(BOB)
        await record.receiving(receive)()
        if error is not None:
            raise error
        record.allowed("because")
        listening = record.sending(send)
        await listening({"type": "http.response.start", "status": code, "headers": []})
        await listening({"type": "http.response.body", "body": answer[:5], "more_body": True})
        before = len(lines.events)
        await listening({"type": "http.response.body", "body": answer[5:]})
        assert len(lines.events) == before + 1, "recorded with the last byte at the latest"
    return lines.events


async def test_a_write_is_recorded_when_it_comes_and_when_it_is_answered() -> None:
    answer = b'{"kind":"Widget","metadata":{"name":"made"},"spec":{"size":1}}'

    came, answered = await recorded(info(), answer=answer)

    assert (came["stage"], answered["stage"]) == ("RequestReceived", "ResponseComplete")
    assert answered["kind"] == "Event"
    assert answered["apiVersion"] == "audit.k8s.io/v1"
    assert answered["level"] == "Metadata"
    assert answered["auditID"] == "id-1"
    assert answered["verb"] == "create"
    assert answered["user"] == {"username": "bob", "groups": ["team-a"]}
    assert answered["sourceIPs"] == ["10.0.0.1"]
    assert answered["userAgent"] == "kubectl"
    assert answered["objectRef"] == {"resource": "widgets", "namespace": "shop", "name": "made", "apiVersion": "v1"}
    assert answered["responseStatus"] == {"metadata": {}, "code": 201}
    assert answered["annotations"] == {
        "authorization.k8s.io/decision": "allow",
        "authorization.k8s.io/reason": "because",
    }
    assert "requestObject" not in answered
    assert "responseObject" not in answered


async def test_a_read_is_recorded_once_and_a_watch_when_it_begins_too() -> None:
    assert [event["stage"] for event in await recorded(info("get"), code=200)] == ["ResponseComplete"]
    assert [event["stage"] for event in await recorded(info("watch"), code=200)] == [
        "ResponseStarted",
        "ResponseComplete",
    ]


async def test_bodies_are_recorded_as_far_as_the_level_goes() -> None:
    more: dict[str, Any] = {"body": b'{"asked":1}', "answer": b'{"answered":1}'}

    (_, asked), (_, both) = (
        await recorded(info(), level=Level.REQUEST, **more),
        await recorded(info(), level=Level.REQUEST_RESPONSE, **more),
    )

    assert asked["requestObject"] == {"asked": 1}
    assert "responseObject" not in asked
    assert both["responseObject"] == {"answered": 1}


@pytest.mark.parametrize(
    "body", [pytest.param(b"k8s\x00..", id="protobuf"), pytest.param(b'"' + b"x" * MAX_OBJECT + b'"', id="large")]
)
async def test_a_body_that_is_large_or_no_json_is_left_out(body: bytes) -> None:
    assert "requestObject" not in (await recorded(info(), level=Level.REQUEST, body=body))[-1]


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(info(resource="secrets"), id="secrets"),
        pytest.param(info("update", "secrets", name="a"), id="secret"),
        pytest.param(info(resource="configmaps"), id="configmaps"),
        pytest.param(info(resource="serviceaccounts", subresource="token", name="a"), id="token"),
        pytest.param(info(resource="tokenreviews", group="authentication.k8s.io"), id="token-review"),
    ],
)
async def test_what_may_hold_credentials_is_never_recorded(asked: RequestInfo) -> None:
    """Neither bodies nor messages, which may quote them; nor, of any request, header fields or tokens in the query."""
    content = b'{"metadata":{"name":"n"},"data":"canary"}'
    more: dict[str, Any] = {"level": Level.REQUEST_RESPONSE, "body": content, "query": b"a=b&access_token=canary"}
    refusal = NotFound.of(ResourceName("secrets"), SECRET_VALUE)

    events = await recorded(asked, answer=content, **more) + await recorded(asked, error=refusal, **more)

    assert len(events) == 4
    assert SECRET_VALUE not in json.dumps(events)
    assert events[0]["requestURI"] == "/x?a=b&access_token=(removed)"


async def test_a_refusal_is_recorded_with_its_reason() -> None:
    asked = info("get", name="a")
    denied = AccessDenied("no", info=asked, reason="RBAC: role not found")

    event = (await recorded(asked, error=denied))[-1]

    assert event["responseStatus"] == {
        "metadata": {},
        "status": "Failure",
        "reason": "Forbidden",
        "message": "no",
        "code": 403,
    }
    assert event["annotations"] == {
        "authorization.k8s.io/decision": "forbid",
        "authorization.k8s.io/reason": "RBAC: role not found",
    }


async def test_a_defect_is_a_panic_and_a_client_that_left_is_none() -> None:
    defect = (await recorded(info("get"), error=ZeroDivisionError()))[-1]
    left = (await recorded(info("get"), error=asyncio.CancelledError()))[-1]

    assert (defect["stage"], defect["responseStatus"]["code"]) == ("Panic", 500)
    assert left["stage"] == "ResponseComplete"


@pytest.mark.parametrize(
    ("asked", "level"),
    [
        pytest.param(RequestInfo("get", "/readyz"), None, id="health"),
        pytest.param(RequestInfo("get", "/apis/x"), None, id="discovery"),
        pytest.param(RequestInfo("get", "/openapi/v3"), None, id="openapi"),
        pytest.param(RequestInfo("get", "/elsewhere"), Level.METADATA, id="other-path"),
        pytest.param(info(resource="events"), None, id="events"),
        pytest.param(info("list", "secrets"), Level.METADATA, id="read"),
        pytest.param(info("delete"), Level.REQUEST, id="write"),
    ],
)
def test_levels_follow_simple_rules(asked: RequestInfo, level: Level | None) -> None:
    assert level_of(asked, Level.REQUEST) == level


def file(path: Path, *, max_bytes: int = 10**6, backups: int = 2) -> AuditLogFile:
    return AuditLogFile(path, max_bytes=max_bytes, backups=backups)


async def test_what_was_accepted_is_in_the_file_after_a_stop(tmp_path: Path) -> None:
    log = file(tmp_path / "sub" / "audit.log")
    log.start()
    for number in range(2000):
        log.append(b"%d\n" % number)

    await log.close()
    await log.close()

    path = tmp_path / "sub" / "audit.log"
    assert path.read_text().split() == [str(number) for number in range(2000)]
    assert path.stat().st_mode & 0o777 == 0o600


async def test_the_file_rotates_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    for number in range(5):
        log = file(path, max_bytes=5)
        log.start()
        log.append(b"line %d\n" % number)
        await log.close()

    assert not (tmp_path / "audit.log.3").exists()
    assert [(tmp_path / name).read_text() for name in ("audit.log", "audit.log.1", "audit.log.2")] == [
        "line 4\n",
        "line 3\n",
        "line 2\n",
    ]


async def test_a_place_that_cannot_be_written_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(AuditLogUnusable, match="cannot be written"):
        file(tmp_path / "file" / "audit.log").start()


async def can_begin(log: AuditLog) -> bool:
    try:
        return await log.begin(scope(), info()) is not None
    except ServiceUnavailable:
        return False


async def test_while_nothing_can_be_recorded_nothing_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines wait for the disk, in order; requests are refused when too many wait; nothing is lost in the end."""
    monkeypatch.setattr(audit_log, "MAX_WAITING", 10)
    monkeypatch.setattr(audit_log, "ROOM_SECONDS", 0.05)
    monkeypatch.setattr(audit_log, "RETRY_SECONDS", 0.02)
    path = tmp_path / "audit.log"
    log = file(path)
    log.start()
    path.unlink()
    path.mkdir()
    for number in range(5):
        log.append(b"line %d\n" % number)
        await asyncio.sleep(0.05)

    with pytest.raises(ServiceUnavailable):
        await AuditLog(log).begin(scope(), info())
    path.rmdir()
    async with asyncio.timeout(60):
        while not await can_begin(AuditLog(log)):
            await asyncio.sleep(0.02)
    await log.close()

    assert path.read_text().split("\n") == [*(f"line {number}" for number in range(5)), ""]
