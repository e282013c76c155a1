"""Clients that take packages through their lives by whichever replica a proxy gives them, and count what went wrong on the way."""

import http.client
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from porch_client import Answer, Object, PorchClient

RETRIABLE = {429, 503, 504}
RECONNECT_SECONDS = 0.5
"""Until a client connects anew: on a busy machine a killed process listens a moment longer than its connections live."""


@dataclass
class Load:
    """One client; ``published`` are the revisions whose approval it was told of, ``errors`` what it had to try again."""

    connect: Callable[[], PorchClient]
    repository: str
    number: int
    published: list[str] = field(default_factory=list)
    drafts: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    codes: Counter[int] = field(default_factory=Counter)
    _stopped: threading.Event = field(default_factory=threading.Event)
    _client: PorchClient | None = None

    def run(self) -> None:
        """Publish one package after the other, and leave a draft beside each, until told to stop."""
        try:
            for package in range(10_000):
                if self._stopped.is_set():
                    break
                self._publish(f"load-{self.number}-{package}")
                self._draft(f"load-{self.number}-{package}-draft")
        finally:
            if self._client is not None:
                self._client.close()

    def stop(self) -> None:
        """End after the package at hand."""
        self._stopped.set()

    def _publish(self, package: str) -> None:
        name = f"{self.repository}.{package}.v1"
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            answer = self._try(lambda client: client.revision(name))
            if answer is None:
                continue
            if answer.code == 404:
                self._try(lambda client: client.create_revision(self.repository, package))
                continue
            lifecycle = answer.object["spec"]["lifecycle"]
            if lifecycle == "Published":
                self.published.append(name)
                return
            self._try(partial(_move_on, revision=answer.object))
        self.wrong.append(f"{name} was not published in two minutes")

    def _draft(self, package: str) -> None:
        answer = self._try(lambda client: client.create_revision(self.repository, package))
        if answer is not None and answer.code == 201:
            self.drafts.append(answer.object["metadata"]["name"])

    def _try(self, request: Callable[[PorchClient], Answer]) -> Answer | None:
        """Send one request; None when it has to be tried again, because of the server and not of what was asked."""
        try:
            if self._client is None:
                self._client = self.connect()
            answer = request(self._client)
        except (OSError, http.client.HTTPException) as error:
            self.errors.append(repr(error))
            if self._client is not None:
                self._client.close()
            self._client = None
            time.sleep(RECONNECT_SECONDS)
            return None
        self.codes[answer.code] += 1
        if answer.code in RETRIABLE:
            self.errors.append(f"{answer.code} {answer.body[:300]!r}")
            if "Retry-After" not in answer.headers and "retry-after" not in answer.headers:
                self.wrong.append(f"no Retry-After: {answer.body[:300]!r}")
            time.sleep(0.2)
            return None
        if answer.code >= 500 or answer.code == 401:
            self.wrong.append(f"{answer.code} {answer.body[:300]!r}")
        return answer


def _move_on(client: PorchClient, revision: Object) -> Answer:
    """Propose a draft, approve a proposal."""
    draft = revision["spec"]["lifecycle"] == "Draft"
    revision["spec"]["lifecycle"] = "Proposed" if draft else "Published"
    path = client.path("packagerevisions", revision["metadata"]["name"], "" if draft else "approval")
    return client.request("PUT", path, revision)
