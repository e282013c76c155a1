"""Histories of one package revision that eight clients read and write at two replicas at once, for the linearizability checker.

Every write carries a token of its own (but an approval, which changes the lifecycle only) and the version that its client saw last,
so a state never comes back, and a refusal says that the state was another.
"""

import http.client
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from linearizability import (
    ABSENT,
    NEVER,
    Operation,
    State,
    created,
    read,
    refused_create,
    refused_write,
    written,
)
from porch_client import Answer, PorchClient
from porch_process import PorchProcess

Object = dict[str, Any]
After = Callable[[State], State | None]
CLIENTS = 8
TOKEN = "tests/token"
MODIFIED = "the object has been modified"
WORKSPACE_TAKEN = "workspaceNames must be unique"
NEXT = {"Draft": "Proposed", "Proposed": "Published", "Published": "DeletionProposed"}


class Impossible(AssertionError):
    """An answer that no server in its right mind gives."""


@dataclass
class History:
    """What was asked and answered about one package revision."""

    replicas: list[PorchProcess]
    repository: str
    package: str
    operations: list[Operation] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, seed: int, operations: int) -> None:
        """Have the clients send so many requests together. Raises Impossible."""
        chance = random.Random(seed)  # noqa: S311 # repeatable, not secret
        seeds = [chance.random() for _ in range(CLIENTS)]
        with ThreadPoolExecutor(CLIENTS) as pool:
            work = [pool.submit(self._client, one, number, operations // CLIENTS) for number, one in enumerate(seeds)]
            for one in work:
                one.result()

    def _client(self, seed: float, number: int, operations: int) -> None:
        chance = random.Random(seed)  # noqa: S311 # repeatable, not secret
        with closing(self.replicas[0].client()) as one, closing(self.replicas[1].client()) as two:
            known: Object | None = None
            for step in range(operations):
                client = chance.choice([one, two])
                known = self._step(client, chance, known, f"{number}-{step}")

    def _step(self, client: PorchClient, chance: random.Random, known: Object | None, token: str) -> Object | None:
        """Send one request; return the object as it is known after it."""
        name = f"{self.repository}.{self.package}.v1"
        dice = chance.random()
        if dice < 0.3 or (known is None and dice < 0.85):
            return self._get(client, name)
        if known is None:
            return self._create(client, token)
        lifecycle = known["spec"]["lifecycle"]
        if dice < 0.75 or (lifecycle == "Published" and dice < 0.9):
            return self._put(client, name, known, token, lifecycle)
        if lifecycle == "DeletionProposed" and dice < 0.95:
            return self._put(client, name, known, token, lifecycle)
        if lifecycle in {"Draft", "Proposed", "DeletionProposed"} and dice > 0.95:
            return self._delete(client, name, known)
        return self._put(client, name, known, token, NEXT[lifecycle])

    def _get(self, client: PorchClient, name: str) -> Object | None:
        def judge(answer: Answer) -> tuple[After | None, Object | None]:
            if answer.code not in {200, 404}:
                return None, None
            found = answer.object if answer.code == 200 else None
            return read(_state(found)), found

        return self._ask("get", lambda: client.revision(name), judge, unknown=None)

    def _create(self, client: PorchClient, token: str) -> Object | None:
        def judge(answer: Answer) -> tuple[After | None, Object | None]:
            if answer.code == 201:
                return created(token), answer.object
            # The package may be there without this revision: a package once published keeps that of its branch.
            return (refused_create if WORKSPACE_TAKEN in answer.message else None), None

        task = [{"type": "init", "init": {"description": "one object"}}]
        spec = {"packageName": self.package, "repository": self.repository, "workspaceName": "v1", "tasks": task}
        body = {
            "apiVersion": "porch.kpt.dev/v1alpha1",
            "kind": "PackageRevision",
            "metadata": {"namespace": client.namespace, "annotations": {TOKEN: token}},
            "spec": spec | {"lifecycle": "Draft"},
        }
        path = client.path("packagerevisions")
        return self._ask(f"create {token}", lambda: client.request("POST", path, body), judge, created(token))

    def _put(self, client: PorchClient, name: str, known: Object, token: str, lifecycle: str) -> Object | None:
        before, approves = _state(known), known["spec"]["lifecycle"] == "Proposed" and lifecycle == "Published"
        new = State(before.token if approves else token, lifecycle)
        annotations = {**known["metadata"].get("annotations", {}), TOKEN: new.token}
        body = {
            **known,
            "metadata": {**known["metadata"], "annotations": annotations},
            "spec": {**known["spec"], "lifecycle": lifecycle},
        }
        path = client.path("packagerevisions", name, "approval" if approves else "")
        return self._ask(
            f"{before} to {new}",
            lambda: client.request("PUT", path, body),
            lambda answer: (_judged(answer, before, new), answer.object if answer.code == 200 else None),
            written(before, new),
        )

    def _delete(self, client: PorchClient, name: str, known: Object) -> Object | None:
        before = _state(known)
        only = {"preconditions": {"resourceVersion": known["metadata"]["resourceVersion"]}}
        path = client.path("packagerevisions", name)
        return self._ask(
            f"delete {before}",
            lambda: client.request("DELETE", path, {"apiVersion": "v1", "kind": "DeleteOptions", **only}),
            lambda answer: (_judged(answer, before, ABSENT), None),
            written(before, ABSENT),
        )

    def _ask(
        self,
        what: str,
        send: Callable[[], Answer],
        judge: Callable[[Answer], tuple[After | None, Object | None]],
        unknown: After | None,
    ) -> Object | None:
        """Send a request and write down what its answer says; ``unknown`` is what one without an answer may have done."""
        called = time.monotonic()
        try:
            answer = send()
        except (OSError, http.client.HTTPException) as error:
            self._note(called, NEVER, unknown, f"{what}: {error!r}", "no answer")
            return None
        returned = time.monotonic()
        told = f"{what.partition(' ')[0] if what.startswith(('get', 'create', 'delete')) else 'put'} {answer.code}"
        if answer.code >= 500:
            if answer.code == 500:
                raise Impossible(f"{what}: {answer.body!r}")
            self._note(called, NEVER, unknown, what, told)
            return None
        after, found = judge(answer)
        self._note(called, returned, after, f"{what}: {answer.code}", told)
        return found

    def _note(self, called: float, returned: float, after: After | None, what: str, told: str) -> None:
        with self._lock:
            self.answers[told] += 1
            if after is not None:
                self.operations.append(Operation(called, returned, after, what))


def _state(found: Object | None) -> State:
    if found is None:
        return ABSENT
    return State(found["metadata"].get("annotations", {}).get(TOKEN, ""), found["spec"]["lifecycle"])


def _judged(answer: Answer, before: State, new: State) -> After | None:
    """Return what the answer to a write with a precondition says; None where it says nothing of the state."""
    if answer.code == 200:
        if new != ABSENT and _state(answer.object) != new:
            raise Impossible(f"{before} was to become {new}: {answer.body!r}")
        return written(before, new)
    if answer.code == 404:
        return read(ABSENT)
    if answer.code == 409 and MODIFIED in answer.message:
        return refused_write(before)
    if answer.code in {403, 409, 422}:
        return None
    raise Impossible(f"{before} to {new}: {answer.code} {answer.body!r}")
