"""A replica that is paused inside a publish for longer than its lease, while the other one publishes; then it wakes.

Source: ``users.md`` 7.2 #11.
"""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eventually import eventually
from git_server import GitServer, run_git
from porch_client import Answer, PorchClient
from porch_process import PorchProcess
from replica_set import SLOW, ReplicaSet, proposed

LATEST = "kpt.dev/latest-revision"
BUSY = "another request is already in progress"
APPROVED = "Approving package revision"
"""How the subject of a commit begins that publishes (``porch-api.md`` 6.5)."""


@dataclass
class Pause:
    """A replica stopped while its push is at the Git server, which holds the push until it is let go."""

    replica: PorchProcess
    hooks: list[Any]
    meant: Callable[[], bool]
    """Whether a push is the publish, and not that of a branch whose answer is still on its way."""
    begun: threading.Event = field(default_factory=threading.Event)
    let_go: threading.Event = field(default_factory=threading.Event)

    def hold(self) -> None:
        """Stop the replica, then keep its push; called by the Git server."""
        if not self.meant():
            self.hooks.append(self.hold)
            return
        os.kill(self.replica.pid, signal.SIGSTOP)
        self.begun.set()
        self.let_go.wait(SLOW)

    def end(self) -> None:
        """Wake the replica."""
        os.kill(self.replica.pid, signal.SIGCONT)


@contextmanager
def paused_at_publish(server: GitServer, replica: PorchProcess, path: Path, *, done: bool) -> Iterator[Pause]:
    """Stop ``replica`` at the next push: before the remote has it, or with ``done`` after it, before the answer."""
    tags = run_git(path, "tag")
    hooks = server.faults.after_push if done else server.faults.before_push
    with _paused(Pause(replica, hooks, lambda: not done or run_git(path, "tag") != tags)) as pause:
        yield pause


@contextmanager
def paused_before_commands(server: GitServer, replica: PorchProcess) -> Iterator[Pause]:
    """Stop ``replica`` when it has planned a push and asks which refs there are; it wakes to the answer, and has to send."""
    with _paused(Pause(replica, server.faults.before_greeting, lambda: True)) as pause:
        yield pause


@contextmanager
def _paused(pause: Pause) -> Iterator[Pause]:
    pause.hooks.append(pause.hold)
    try:
        yield pause
    finally:
        pause.hooks.clear()
        pause.let_go.set()
        pause.end()


@dataclass
class SplitBrain:
    """Rounds against two replicas and one repository; ``seen`` counts what happened."""

    replicas: ReplicaSet
    server: GitServer
    repository: str
    seen: Counter[str] = field(default_factory=Counter)
    took: list[float] = field(default_factory=list)
    """Seconds from each pause to the other replica's answer; the goal is 15 (``users.md`` 7.2 #11)."""

    def round(self, seed: int) -> None:
        """Run one round: two proposals of one package, or one, approved at both replicas.

        Raises:
            AssertionError: something was published twice, a number was given twice, or an answer was not true.
        """
        chance = random.Random(seed)  # noqa: S311 # repeatable, not secret
        sleeper, other = chance.sample(self.replicas.members, 2)
        done, same, wake_first = (chance.random() < 0.5 for _ in range(3))
        package = f"split-{seed}"
        with closing(other.client()) as client, ThreadPoolExecutor(1) as pool:
            names = self._proposals(client, package, same=same)
            # Or the push that is held would be the one of their branches.
            eventually(lambda: self._proposed_in_git(package, len(names)), SLOW)
            path = self.server.root / f"{self.repository}.git"
            with paused_at_publish(self.server, sleeper, path, done=done) as pause:
                asleep = pool.submit(approve, sleeper, names[0])
                assert pause.begun.wait(SLOW), "the replica never pushed"
                began = time.monotonic()
                others = self._approve_awake(client, names[-1])
                self.took.append(time.monotonic() - began)
                if wake_first:
                    pause.end()
                    time.sleep(chance.random() * 0.2)
                pause.let_go.set()
                pause.end()
                answer = asleep.result(SLOW)
            self.seen[f"sleeper {answer.code}"] += 1
            self.seen[f"other {others.code}"] += 1
            self._check(package, names, [answer, others])

    def _proposals(self, client: PorchClient, package: str, *, same: bool) -> list[str]:
        """Propose revisions of a package that is published as v1 when there are two."""
        if same:
            return [proposed(client, self.repository, package)]
        first = proposed(client, self.repository, package, "w0")
        assert client.approve(first).code == 200
        edit = {"type": "edit", "edit": {"sourceRef": {"name": first}}}
        names = []
        for workspace in ("w1", "w2"):
            made = client.create_revision(self.repository, package, workspace, tasks=[edit])
            assert made.code == 201, made.body
            names.append(str(made.object["metadata"]["name"]))
            assert client.propose(names[-1]).code == 200
        return names

    def _proposed_in_git(self, package: str, count: int) -> None:
        path = self.server.root / f"{self.repository}.git"
        branches = run_git(path, "for-each-ref", "--format=%(refname)", f"refs/heads/proposed/{package}/").splitlines()
        drafts = run_git(path, "for-each-ref", "--format=%(refname)", f"refs/heads/drafts/{package}/")
        assert (len(branches), drafts) == (count, "")

    def _approve_awake(self, client: PorchClient, name: str) -> Answer:
        """Approve at the replica that is awake, again as long as it is told to try again, or that the other is at it."""
        deadline = time.monotonic() + SLOW
        while True:
            answer = client.approve(name)
            if (answer.code != 503 and BUSY not in answer.body.decode()) or time.monotonic() > deadline:
                return answer
            self.seen["tried again"] += 1
            time.sleep(0.2)

    def _check(self, package: str, names: list[str], answers: list[Answer]) -> None:
        path = self.server.root / f"{self.repository}.git"
        for answer in answers:
            assert answer.code in {200, 409, 503}, answer.body

        def settled() -> None:
            for member in self.replicas.members:
                with closing(member.client()) as client:
                    self._check_told(client, package, set(names))

        eventually(settled, SLOW)
        tags = run_git(path, "tag", "--list", f"{package}/v*").splitlines()
        merges = run_git(path, "log", "--first-parent", "--format=%s", "main").splitlines()
        approvals = [line for line in merges if line.startswith(f"{APPROVED} {package}/")]
        for name, answer in zip([names[0], names[-1]], answers, strict=True):
            if answer.code == 200:
                lifecycle = answer.object["spec"]["lifecycle"]
                assert lifecycle == "Published", (name, answer.body)
        assert len(approvals) == len(tags), (approvals, tags)
        run_git(path, "fsck", "--strict", "--no-dangling")

    def _check_told(self, client: PorchClient, package: str, names: set[str]) -> None:
        """Compare what a replica tells of a package with its tags."""
        path = self.server.root / f"{self.repository}.git"
        lines = run_git(path, "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", f"refs/tags/{package}/")
        tags = dict(line.split(" ") for line in lines.splitlines())
        revisions = [one for one in client.revisions() if one["spec"]["packageName"] == package]
        numbered = {one["spec"]["revision"]: one for one in revisions if one["spec"].get("revision", 0) > 0}
        published = [one for one in revisions if one["spec"].get("revision", 0) > 0]
        assert len(numbered) == len(published), "a number was given twice"
        told = {f"{package}/v{number}": one["status"]["selfLock"]["git"]["commit"] for number, one in numbered.items()}
        assert told == tags
        latest = [one["spec"]["revision"] for one in published if LATEST in (one["metadata"].get("labels") or {})]
        assert latest == [max(numbered)]
        assert names & {one["metadata"]["name"] for one in published}, "nobody published anything"


def approve(member: PorchProcess, name: str) -> Answer:
    """Approve at one replica, however long it sleeps meanwhile."""
    with closing(member.client(timeout=2 * SLOW)) as client:
        return client.approve(name)
