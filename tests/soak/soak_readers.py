"""The rest of a mixed load: somebody who reads everything in every form, and somebody who does everything wrong."""

import http.client
import random
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from porch_client import CONFIG, PORCH, Answer, PorchClient

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PAUSE = 0.1
"""Seconds between two requests of one of them, on average."""


@dataclass(frozen=True)
class Request:
    """Something to send and the codes that it may be answered with."""

    method: str
    path: str
    expected: frozenset[int]
    body: bytes | None = None
    accept: str = "application/json"


class Caller:
    """Sends requests of a kind, at random, until stopped; ``unexpected`` holds the wrong answers."""

    def __init__(self, connect: Callable[[], PorchClient], seed: int, repositories: Sequence[str]) -> None:
        self.unexpected: list[str] = []
        self.sent = 0
        self._connect = connect
        self._repositories = repositories
        self._dice = random.Random(seed)  # noqa: S311 -- a load, no secret
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Begin, in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """End after the request under way."""
        self._stopped.set()
        self._thread.join(30)

    def _work(self) -> None:
        porch = self._connect()
        with suppress(OSError, http.client.HTTPException):
            while not self._stopped.wait(self._dice.uniform(0, 2 * PAUSE)):
                self._send(porch, self._choose(porch))
        porch.close()

    def _send(self, porch: PorchClient, request: Request) -> Answer:
        answer = porch.request(request.method, request.path, request.body, accept=request.accept)
        self.sent += 1
        if answer.code not in request.expected:
            self.unexpected.append(f"{request.method} {request.path}: {answer.code} {answer.body[:400]!r}")
        return answer

    def _choose(self, porch: PorchClient) -> Request:
        raise NotImplementedError


class Reader(Caller):
    """Lists as JSON, as tables, in pages and with selectors, and reads files."""

    def _choose(self, porch: PorchClient) -> Request:
        revisions, found = porch.path("packagerevisions"), frozenset({200})
        some = self._dice.choice(list(self._repositories))
        return self._dice.choice(
            [
                Request("GET", revisions, found),
                Request("GET", revisions, found, accept=TABLE),
                Request("GET", f"{revisions}?limit=10", found),
                Request("GET", f"{revisions}?fieldSelector=spec.repository={some}", found),
                Request("GET", f"{revisions}?labelSelector=kpt.dev/latest-revision=true", found),
                Request("GET", porch.path("packages"), found),
                Request("GET", f"{CONFIG}/namespaces/default/repositories", found, accept=TABLE),
                Request("GET", porch.path("packagerevisionresources", f"{some}.team.base"), found),
                Request("GET", "/readyz", found),
                Request("GET", "/metrics", found),
                Request("GET", "/openapi/v2", found),
            ]
        )


class Blunderer(Caller):
    """Asks for what is not there, sends what cannot be read, and writes what may not be written."""

    def _choose(self, porch: PorchClient) -> Request:
        revisions = porch.path("packagerevisions")
        some = self._dice.choice(list(self._repositories))
        base = f"{some}.team.base"
        body = porch.revision(base).body
        stale = body.replace(b'"resourceVersion":"', b'"resourceVersion":"1', 1)
        unpublish = body.replace(b'"lifecycle":"Published"', b'"lifecycle":"Draft"')
        return self._dice.choice(
            [
                Request("GET", porch.path("packagerevisions", "nobody.is.here"), frozenset({404})),
                Request("GET", f"{PORCH}/namespaces/default/nothings", frozenset({404})),
                Request("POST", revisions, frozenset({400}), b'{"kind": "PackageRevision"'),
                Request(
                    "POST",
                    revisions,
                    frozenset({400}),
                    b'{"apiVersion":"porch.kpt.dev/v1alpha1","kind":"PackageRevision"}',
                ),
                Request("POST", revisions, frozenset({409}), new_revision(some, "team", "base")),
                Request("POST", revisions, frozenset({404}), new_revision("nowhere", "app", "v1")),
                Request("POST", revisions, frozenset({422}), new_revision(some, "UPPER/../case", "v1")),
                Request("PUT", porch.path("packagerevisions", base), frozenset({409}), stale),
                Request("PUT", porch.path("packagerevisions", base), frozenset({422}), unpublish),
                Request("DELETE", porch.path("packagerevisions", base), frozenset({403})),
                Request("DELETE", porch.path("packagerevisions", "nobody.is.here"), frozenset({404})),
                Request("PATCH", porch.path("packagerevisions", base), frozenset({415}), b"{}"),
                Request("GET", f"{revisions}?fieldSelector=spec.nothing=1", frozenset({400})),
                Request("GET", f"{revisions}?watch=1&resourceVersion=1&timeoutSeconds=1", frozenset({200, 410})),
            ]
        )


def new_revision(repository: str, package: str, workspace: str) -> bytes:
    """Return the body of a create."""
    spec = f'"repository":"{repository}","packageName":"{package}","workspaceName":"{workspace}","lifecycle":"Draft"'
    task = '{"type":"init","init":{"description":"soak"}}'
    return f'{{"apiVersion":"porch.kpt.dev/v1alpha1","kind":"PackageRevision","spec":{{{spec},"tasks":[{task}]}}}}'.encode()
