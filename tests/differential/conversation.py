"""One case of the differential test: requests to send to any API server, and what it answered.

A case knows neither whom it asks nor what is expected. ``record.py`` has it with a real kube-apiserver,
``test_differential.py`` with Porch.
"""

import http.client
import json
import re
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

Body = Mapping[str, Any] | Sequence[Any] | str | bytes | None
JSON = "application/json"
AGENT = "differential/1"
"""The part before the slash becomes the manager in managedFields."""
PATIENCE = 60.0
"""Seconds that a step with ``until`` is repeated."""
TIMEOUT = 60.0
"""Seconds for one answer; the longest request is a watch of three seconds."""

_EARLIER = re.compile(r"<(\d+):([\w.]+)>")


@dataclass(frozen=True)
class Send:
    """One request.

    ``{ns}`` in the path and the body stands for the case's own namespace, ``<N:a.b>`` for a field of the answer to
    the case's step N. ``until`` repeats the request until it is answered with that code. ``during`` is sent, on
    another connection, after the headers of the answer came: what happens while somebody watches. Without
    ``certificate`` the client shows none.
    """

    method: str
    path: str
    body: Body = None
    headers: Mapping[str, str] = field(default_factory=dict)
    until: int = 0
    during: tuple["Send", ...] = ()
    certificate: bool = True


@dataclass(frozen=True)
class Case:
    """A name, earlier requests, and the request whose answer is compared.

    ``view`` names the part of a large document that is compared, see ``views.py``.
    """

    name: str
    request: Send
    setup: tuple[Send, ...] = ()
    view: str = ""


@dataclass(frozen=True)
class Answer:
    """What a server said, as it said it."""

    code: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> list[str]:
        """Return every value of a header, in order."""
        return [value for key, value in self.headers if key.lower() == name.lower()]

    @property
    def media_type(self) -> str:
        """The content type without parameters."""
        return next(iter(self.header("content-type")), "").partition(";")[0].strip()

    @property
    def object(self) -> Any:
        """The decoded JSON body; None when it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None


CLOSED = Answer(0, [], b"")
"""Stands for a connection that was closed without an answer."""


class SetupFailed(AssertionError):
    """A step before the compared request did not do what it is there for."""


class Server:
    """An API server and the administrator's credentials for it."""

    def __init__(self, url: str, *, ca: Path, certificate: tuple[Path, Path]) -> None:
        address = urlparse(url)
        self._host, self._port = address.hostname or "", address.port or 443
        self._contexts = {True: ssl.create_default_context(cafile=str(ca))}
        self._contexts[True].load_cert_chain(*map(str, certificate))
        self._contexts[False] = ssl.create_default_context(cafile=str(ca))
        self._connections: dict[bool, http.client.HTTPSConnection] = {}

    def ask(self, request: Send) -> Answer:
        """Send a filled request, and what happens ``during`` it; return its answer."""
        try:
            return self._ask(request)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            # The server may close a kept connection after any answer.
            try:
                return self._ask(request)
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
                return CLOSED

    def _ask(self, request: Send) -> Answer:
        connection = self._connection(certificate=request.certificate)
        headers = {"User-Agent": AGENT, "Accept": JSON, **request.headers}
        body = request.body
        assert body is None or isinstance(body, bytes), "filled requests carry bytes"
        if body is not None:
            headers.setdefault("Content-Type", JSON)
        try:
            connection.request(request.method, request.path, body, headers)
            response = connection.getresponse()
            self._meanwhile(request)
            return Answer(response.status, response.getheaders(), response.read())
        except (OSError, http.client.HTTPException):
            self._drop(certificate=request.certificate)
            raise

    def close(self) -> None:
        """Close the connections."""
        for certificate in list(self._connections):
            self._drop(certificate=certificate)

    def _meanwhile(self, request: Send) -> None:
        if not request.during:
            return
        busy = self._connections.pop(request.certificate)
        try:
            for each in request.during:
                answer = self.ask(each)
                if answer.code >= http.client.BAD_REQUEST:
                    raise SetupFailed(f"{each.method} {each.path}: {answer.code} {answer.body!r}")
        finally:
            self._drop(certificate=request.certificate)
            self._connections[request.certificate] = busy

    def _connection(self, *, certificate: bool) -> http.client.HTTPSConnection:
        if certificate not in self._connections:
            self._connections[certificate] = http.client.HTTPSConnection(
                self._host, self._port, context=self._contexts[certificate], timeout=TIMEOUT
            )
        return self._connections[certificate]

    def _drop(self, *, certificate: bool) -> None:
        connection = self._connections.pop(certificate, None)
        if connection is not None:
            connection.close()


def fill(request: Send, namespace: str, answers: Sequence[Answer] = ()) -> Send:
    """Return the request as it is sent, with the namespace and fields of earlier answers put in."""

    def put(text: str) -> str:
        return _EARLIER.sub(lambda found: _value(answers, found), text.replace("{ns}", namespace))

    body = request.body
    if body is not None and not isinstance(body, bytes):
        body = put(body if isinstance(body, str) else json.dumps(body)).encode()
    headers = {name: put(value) for name, value in request.headers.items()}
    during = tuple(fill(each, namespace, answers) for each in request.during)
    return replace(request, path=put(request.path), body=body, headers=headers, during=during)


def have(case: Case, server: Server) -> list[Answer]:
    """Send a case's requests in its own new namespace; return all answers, the compared one last.

    Raises:
        SetupFailed: a step was refused, or was not answered as it waits for.
    """
    namespace = namespace_of(case)
    _make_namespace(server, namespace)
    answers: list[Answer] = []
    for step in case.setup:
        answers.append(repeat(step, namespace, answers, server))
        if step.until == 0 and answers[-1].code >= http.client.BAD_REQUEST:
            raise SetupFailed(f"{case.name}: {step.method} {step.path}: {answers[-1].code} {answers[-1].body!r}")
    answers.append(repeat(case.request, namespace, answers, server))
    return answers


def namespace_of(case: Case) -> str:
    """Return the namespace of a case: its name, as far as a namespace may be called so."""
    return "d-" + re.sub(r"[^a-z0-9]+", "-", case.name.lower()).strip("-")[:59].rstrip("-")


def repeat(step: Send, namespace: str, answers: Sequence[Answer], server: Server) -> Answer:
    """Send a step, again and again if it waits for a code.

    Raises:
        SetupFailed: that code never came.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        answer = server.ask(fill(step, namespace, answers))
        if step.until in (0, answer.code):
            return answer
        if time.monotonic() > deadline:
            raise SetupFailed(f"{step.method} {step.path} still answers {answer.code}, not {step.until}")
        time.sleep(0.05)


def _make_namespace(server: Server, name: str) -> None:
    answer = server.ask(fill(Send("POST", "/api/v1/namespaces", {"metadata": {"name": name}}), name))
    if answer.code != http.client.CREATED:
        raise SetupFailed(f"namespace {name}: {answer.code} {answer.body!r}")


def _value(answers: Sequence[Answer], found: re.Match[str]) -> str:
    value = answers[int(found.group(1))].object
    for part in found.group(2).split("."):
        value = value[int(part)] if isinstance(value, list) else value[part]
    return str(value)
