"""One client of the mixed load: makes, saves, proposes, approves, marks and deletes package revisions of its own.

It reads before it writes, and what it reads must be what its ledger says. It ends when its connection breaks.
"""

import http.client
import json
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from porch_client import Answer, Object, PorchClient
from soak_ledger import MARK, PAIR, Owed, State, moved

MOST_OPEN = 12
"""Revisions that one client keeps; when it has more it deletes rather than makes."""
SHARED = "team"
"""A package in every repository that all clients approve into."""
SHARED_BASE = "base"
"""The workspace of its first revision."""
BUSY = "another request is already in progress"


@dataclass(frozen=True)
class Conditions:
    """What a client has to live with: how often it hangs up in the middle, and which refusals it meets."""

    hang_up: float = 0.0
    """The part of writes whose client goes away before the answer."""
    pause: float = 0.0
    """Seconds between two writes, on average."""
    clears: bool = False
    """Whether a package goes from the branch, too, when its last revision is deleted; else the branch grows."""
    excused: frozenset[int] = frozenset()
    """Codes that are no surprise, because a remote or the disk is in trouble; the write may have happened."""


@dataclass
class Desk:
    """What one client has, and keeps through restarts of the server."""

    number: int
    owed: list[Owed] = field(default_factory=list)
    made: int = 0
    saves: int = 0
    retired: set[tuple[str, str]] = field(default_factory=set)
    """Packages with deleted revisions: nothing more is made in them, so that their numbers stay accountable."""
    done: dict[str, int] = field(default_factory=dict)
    """How often each kind of write was acknowledged."""

    def count(self, what: str) -> None:
        """Count an acknowledged write."""
        self.done[what] = self.done.get(what, 0) + 1


class HungUp(Exception):
    """This client went away before the answer came."""


class SoakClient:
    """Works until its connection breaks or it is stopped; ``unexpected`` holds every answer that should not have been."""

    def __init__(
        self,
        desk: Desk,
        connect: Callable[[], PorchClient],
        repositories: Sequence[str],
        dice: random.Random,
        conditions: Conditions,
    ) -> None:
        self.name = f"client {desk.number}"
        self.unexpected: list[str] = []
        self._desk = desk
        self._connect = connect
        self._repositories = repositories
        self._dice = dice
        self._conditions = conditions
        self._stopped = threading.Event()
        self._porch: PorchClient | None = None
        self._crowded = False
        self._thread = threading.Thread(target=self._work, name=self.name, daemon=True)

    def start(self) -> None:
        """Begin to work, in a thread."""
        self._thread.start()

    def stop(self) -> None:
        """End after the request under way."""
        self._stopped.set()

    def ended_within(self, seconds: float) -> bool:
        """Wait for the end; tell whether it came."""
        self._thread.join(timeout=seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        with suppress(OSError, http.client.HTTPException):
            while not self._stopped.is_set() and not self.unexpected:
                with suppress(HungUp):
                    self._step()
                if self._conditions.pause:
                    self._stopped.wait(self._dice.uniform(0, 2 * self._conditions.pause))
        if self._porch is not None:
            self._porch.close()

    # --- choosing --------------------------------------------------------------------------------------

    def _step(self) -> None:
        self._porch = self._porch or self._connect()
        ready = [owed for owed in self._desk.owed if owed.state is not None and owed.state.lifecycle]
        self._crowded = len(ready) >= MOST_OPEN
        if not ready or (not self._crowded and self._dice.random() < 0.2):
            self._begin()
            return
        owed = self._dice.choice(ready)
        state = owed.state
        assert state is not None
        steps = self._steps(owed, state)
        weights = [weight for weight, _ in steps]
        self._dice.choices([step for _, step in steps], weights)[0]()

    def _steps(self, owed: Owed, state: State) -> list[tuple[float, Callable[[], None]]]:
        def step(weight: float, method: Callable[[Owed, State], None]) -> tuple[float, Callable[[], None]]:
            return weight, lambda: method(owed, state)

        if state.lifecycle == "Draft":
            return [step(5, self._save), step(1, self._mark), step(3, self._propose), step(0.7, self._delete)]
        if state.lifecycle == "Proposed":
            return [step(5, self._approve), step(1, self._reject), step(1, self._mark), step(0.5, self._delete)]
        if state.lifecycle == "DeletionProposed":
            return [step(3, self._delete), step(1, self._keep)]
        steps = [step(1, self._mark)]
        if not owed.shared and owed.place not in self._desk.retired and not self._crowded:
            steps.append(step(2, self._next_revision))
        if owed.shared or not self._in_work(owed):
            steps.append(step(8 if self._crowded else 1.5, self._propose_deletion))
        return steps

    def _in_work(self, owed: Owed) -> bool:
        """Tell whether the package may have, or get, a further revision by what is under way."""
        siblings = [other for other in self._desk.owed if other.place == owed.place and other is not owed]
        return any(state.lifecycle in ("Draft", "Proposed") for other in siblings for state in other.possible)

    # --- writes ----------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Make the first revision of a new package, or one of the shared package."""
        desk = self._desk
        desk.made += 1
        repository = self._dice.choice(list(self._repositories))
        if self._dice.random() < 0.25:
            owed = Owed(repository, SHARED, f"c{desk.number}-{desk.made}", shared=True)
            self._create(
                owed, {"type": "edit", "edit": {"sourceRef": {"name": f"{repository}.{SHARED}.{SHARED_BASE}"}}}
            )
        else:
            owed = Owed(repository, f"p{desk.number}-{desk.made}", "v1")
            self._create(owed, {"type": "init", "init": {"description": "soak"}})

    def _next_revision(self, source: Owed, state: State) -> None:
        self._desk.made += 1
        owed = Owed(source.repository, source.package, f"w{self._desk.made}")
        task = {"type": "edit", "edit": {"sourceRef": {"name": source.name}}}
        self._create(owed, task, saved=state.saved)

    def _create(self, owed: Owed, task: Object, saved: int = 0) -> None:
        self._desk.owed.append(owed)
        spec = {
            "packageName": owed.package,
            "repository": owed.repository,
            "workspaceName": owed.workspace,
            "lifecycle": "Draft",
            "tasks": [task],
        }
        body = {"apiVersion": "porch.kpt.dev/v1alpha1", "kind": "PackageRevision", "metadata": {}, "spec": spec}
        self._write("create", owed, State("Draft", saved), "POST", self._path("packagerevisions"), body)

    def _save(self, owed: Owed, state: State) -> None:
        self._desk.saves += 1
        after = replace(state, saved=self._desk.number * 1_000_000 + self._desk.saves)
        path = self._path("packagerevisionresources", owed.name)
        body = self._read(path)
        files = body["spec"]["resources"]
        self._compare(owed, {path: files.get(path) for path in PAIR}, {path: state.files.get(path) for path in PAIR})
        files.update(after.files)
        self._write("save", owed, after, "PUT", path, body)

    def _mark(self, owed: Owed, state: State) -> None:
        self._desk.saves += 1
        mark = f"m{self._desk.saves}"
        body = self._current(owed, state)
        body["metadata"].setdefault("labels", {})[MARK] = mark
        self._write("mark", owed, replace(state, mark=mark), "PUT", self._path("packagerevisions", owed.name), body)

    def _propose(self, owed: Owed, state: State) -> None:
        self._move("propose", owed, state, "Proposed")

    def _reject(self, owed: Owed, state: State) -> None:
        self._move("reject", owed, state, "Draft", self._dice.choice(["", "approval"]))

    def _approve(self, owed: Owed, state: State) -> None:
        answer = self._move("approve", owed, state, "Published", "approval")
        if answer is not None:
            owed.number = answer["spec"]["revision"]

    def _propose_deletion(self, owed: Owed, state: State) -> None:
        if not owed.shared:
            self._desk.retired.add(owed.place)
        self._move("propose deletion", owed, state, "DeletionProposed", self._dice.choice(["", "approval"]))

    def _keep(self, owed: Owed, state: State) -> None:
        self._move("keep", owed, state, "Published", self._dice.choice(["", "approval"]))

    def _move(self, what: str, owed: Owed, state: State, lifecycle: str, door: str = "") -> Object | None:
        body = self._current(owed, state)
        body["spec"]["lifecycle"] = lifecycle
        path = self._path("packagerevisions", owed.name, door)
        return self._write(what, owed, moved(state, lifecycle), "PUT", path, body)

    def _delete(self, owed: Owed, state: State) -> None:
        path = self._path("packagerevisions", owed.name)
        deleted = self._write("delete", owed, State(), "DELETE", path, None) is not None
        last = owed.place in self._desk.retired and not self._siblings_left(owed)
        if deleted and last and self._conditions.clears:
            self._clear(owed)

    def _siblings_left(self, owed: Owed) -> bool:
        siblings = [other for other in self._desk.owed if other.place == owed.place]
        return any(state.lifecycle for other in siblings for state in other.possible)

    def _clear(self, owed: Owed) -> None:
        """Delete the revision that stands for the package on the branch."""
        assert self._porch is not None
        path = self._path("packagerevisions", f"{owed.repository}.{owed.package}.main")
        body = self._read(path)
        body["spec"]["lifecycle"] = "DeletionProposed"
        for method, sent in (("PUT", body), ("DELETE", None)):
            answer = self._porch.request(method, path, sent)
            if answer.code >= 300:
                self._surprise(f"{method} {path}", answer)

    # --- talking ---------------------------------------------------------------------------------------

    def _path(self, resource: str, name: str = "", subresource: str = "") -> str:
        assert self._porch is not None
        return self._porch.path(resource, name, subresource)

    def _read(self, path: str) -> Object:
        assert self._porch is not None
        answer = self._porch.request("GET", path)
        if answer.code == 200:
            body: Object = answer.object
            return body
        self._surprise(f"GET {path}", answer)
        raise HungUp

    def _current(self, owed: Owed, state: State) -> Object:
        body = self._read(self._path("packagerevisions", owed.name))
        labels = body["metadata"].get("labels") or {}
        self._compare(owed, (body["spec"]["lifecycle"], labels.get(MARK, "")), (state.lifecycle, state.mark))
        return body

    def _compare(self, owed: Owed, read: object, expected: object) -> None:
        if read != expected:
            self.unexpected.append(f"{owed.name} was read as {read!r}, and {expected!r} was acknowledged")
            raise HungUp

    def _write(self, what: str, owed: Owed, after: State, method: str, path: str, body: Object | None) -> Object | None:
        """Send a write and enter into the ledger what its answer means; None unless it was acknowledged."""
        before = owed.state
        assert before is not None
        assert self._porch is not None
        owed.sent(after)
        if self._dice.random() < self._conditions.hang_up:
            self._hang_up(method, path, body)
        answer = self._porch.request(method, path, body)
        if answer.code < 300:
            owed.acknowledged(after)
            self._desk.count(what)
            accepted: Object = answer.object
            return accepted
        if answer.code == 409 and (owed.shared or BUSY in answer.message):
            owed.refused(after, before)  # somebody else's approval took the latest label from it
        elif answer.code not in self._conditions.excused:
            self._surprise(f"{what} {owed.name}", answer)
        return None

    def _surprise(self, what: str, answer: Answer) -> None:
        if answer.code not in self._conditions.excused:
            self.unexpected.append(f"{what}: {answer.code} {answer.body[:600].decode(errors='replace')}")

    def _hang_up(self, method: str, path: str, body: Object | None) -> None:
        """Send the request, or a part of it, and close the connection before its answer."""
        assert self._porch is not None
        data = b"" if body is None else json.dumps(body).encode()
        sent = len(data) if self._dice.random() < 0.8 else self._dice.randrange(len(data) + 1)
        connection = self._porch._connection
        connection.putrequest(method, path)
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data[:sent])
        time.sleep(self._dice.choice([0.0, self._dice.uniform(0, 0.01), self._dice.uniform(0, 0.08)]))
        self._porch.close()
        raise HungUp
