"""Send a recorded conversation to our server and compare the answers.

Addresses of the recording's Git host become those of the test's, and back; resourceVersions and commits in requests are
those of our own earlier answers, as the client would have sent them.
"""

import json
from collections.abc import Iterator
from typing import Any

from porch_client import Answer
from porchctl_cases import Exchange, Place, Recording, wait_until_gone, wait_until_ready
from porchctl_meaning import Difference, Learned, meaning

CLIENT_FAULTS = {409, 422}
"""What we answer where upstream says 500 about a request that is wrong (``decisions.md`` 15)."""
PROTOBUF = "application/vnd.kubernetes.protobuf"


class Replay:
    """One case in one place."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._learned = Learned(commits={commit: commit for commit in place.commits})

    def differences(self, recording: Recording) -> Iterator[tuple[Exchange, Difference]]:
        """Send what one command sent; wait where upstream's harness waited."""
        for exchange in recording.exchanges:
            for difference in self._exchanged(exchange):
                yield exchange, difference
        for exchange in recording.exchanges:
            self._wait(exchange)

    def _exchanged(self, exchange: Exchange) -> Iterator[Difference]:
        answer = self._send(exchange)
        if exchange.is_discovery:
            yield from _discovery(exchange, answer)
            return
        if answer.code != exchange.status and not (exchange.status == 500 and answer.code in CLIENT_FAULTS):
            yield Difference("code", exchange.status, f"{answer.code} {answer.body[:600]!r}")
            return
        if PROTOBUF in exchange.accept:  # recorded as bytes; that the Secret is good shows when it is used
            return
        ours = json.loads(self._place.theirs(answer.body.decode()))
        self._learned.learn_versions(exchange.response, ours)
        yield from self._learned.differences(*_comparable(exchange, ours))

    def _send(self, exchange: Exchange) -> Answer:
        return self._place.client.request(
            exchange.method,
            exchange.path,
            self._body(exchange),
            content_type=exchange.content_type or "",
            accept=exchange.accept,
        )

    def _body(self, exchange: Exchange) -> bytes | None:
        if exchange.content_type is None:
            return None
        if exchange.content_type == PROTOBUF:
            return str(exchange.request).encode()
        return self._place.ours(json.dumps(self._learned.sent(exchange.request))).encode()

    def _wait(self, exchange: Exchange) -> None:
        if exchange.path.endswith("/repositories") and exchange.method == "POST":
            wait_until_ready(self._place.client, exchange.request["metadata"]["name"])
        elif "/repositories/" in exchange.path and exchange.method == "DELETE":
            wait_until_gone(self._place.client, exchange.path)


def _comparable(exchange: Exchange, ours: Any) -> tuple[Any, Any]:
    """Return the meanings of both answers; of a refusal that we code otherwise, only what the client prints.

    How a render fails, behind ``Details:``, is the words of the functions and of what runs them.
    """
    if exchange.status == 500 and ours.get("code") in CLIENT_FAULTS:
        theirs, mine = (answer["message"].partition(" Details: ")[0] for answer in (exchange.response, ours))
        return {"message": theirs}, {"message": mine}
    return meaning(exchange.response), meaning(ours)


def _discovery(exchange: Exchange, answer: Answer) -> Iterator[Difference]:
    """Discovery answers are not part of the recordings: ours only has to name what the client looks for."""
    if answer.code != 200:
        yield Difference("code", 200, answer.code)
        return
    groups = {item["metadata"].get("name", "") for item in answer.object["items"]}
    wanted = {"porch.kpt.dev", "config.porch.kpt.dev"} if exchange.path.startswith("/apis") else {""}
    if wanted - groups:
        yield Difference("items", wanted, groups)
