"""``kill -9`` in the middle of saves and approvals, again and again on the same data.

Several clients work without a pause and write down what was acknowledged. After each restart nothing acknowledged may
be missing and nothing half-done visible, in the API and in Git.
"""

import http.client
import itertools
import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from drafts import accepted
from eventually import eventually
from git_server import GitServer
from kubectl import Kubectl
from manifests import credentials, repository
from porch_client import PorchClient
from porch_process import PorchProcess
from remotes import Remote, files_at, git, refs

CLIENTS = 3
ROUNDS = 6
WORK_SECONDS = (0.2, 1.2)
"""How long the clients work before each kill."""
SEED = 20261121
COUNTER = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: counter\ndata:\n  saved: "{0}"\n  again: "{0}"\n'
"""A file that says its number twice: a torn write would not."""


@dataclass
class Ledger:
    """What one client was told about one package: the server owes it this."""

    package: str
    name: str = ""
    saved: int = 0
    sent: int = 0
    proposed: bool = False
    approved: bool = False
    approval_sent: bool = False


@dataclass
class Worker:
    """A client that makes, saves, proposes and approves packages until its connection breaks."""

    porch: PorchClient
    number: int
    counter: "itertools.count[int]"
    ledgers: list[Ledger] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Work until the server dies."""
        try:
            while True:
                self._one_package()
        except (OSError, http.client.HTTPException):
            self.porch.close()
        except AssertionError as error:
            self.unexpected.append(str(error))
            self.porch.close()

    def _one_package(self) -> None:
        ledger = Ledger(f"p{self.number}-{next(self.counter)}")
        self.ledgers.append(ledger)
        created = accepted(self.porch.create_revision("deployments", ledger.package))
        ledger.name = created["metadata"]["name"]
        for number in (1, 2, 3):
            ledger.sent = number
            accepted(self.porch.save(ledger.name, {"counter.yaml": COUNTER.format(number)}))
            ledger.saved = number
        accepted(self.porch.propose(ledger.name))
        ledger.proposed = True
        ledger.approval_sent = True
        accepted(self.porch.approve(ledger.name))
        ledger.approved = True


def approvals(ledgers: Sequence[Ledger]) -> int:
    return sum(ledger.approved for ledger in ledgers)


def wait_for_approvals(workers: Sequence[Worker], count: int) -> None:
    """Let clients work until so many of their approvals were acknowledged: a busy machine needs longer for a round."""

    def acknowledged() -> None:
        assert sum(approvals(list(worker.ledgers)) for worker in workers) >= count

    eventually(acknowledged)


@pytest.fixture
def doomed(tmp_path: Path, git_http: GitServer, empty_remote: Remote) -> Iterator[tuple[PorchProcess, Remote]]:
    """A server with one repository, to be killed."""
    server = PorchProcess(tmp_path / "data", environment={"PORCH_SYNC_INTERVAL": "2"})
    server.start()
    kubectl = Kubectl(server.kubeconfig)
    kubectl.apply(credentials(), repository("deployments", empty_remote.url))
    kubectl.ok("wait", "--for=condition=Ready", "repository/deployments", "--timeout=60s")
    yield server, empty_remote
    server.stop()


@pytest.mark.timeout(600)
def test_nothing_acknowledged_is_lost_and_nothing_half_done_is_left_by_kill_9(
    doomed: tuple[PorchProcess, Remote],
) -> None:
    server, remote = doomed
    dice = random.Random(SEED)  # noqa: S311  (no secret hangs on it)
    ledgers: list[Ledger] = []
    counters = [itertools.count(1) for _ in range(CLIENTS)]
    for number in range(ROUNDS):
        workers = [Worker(server.client(), number, counters[number]) for number in range(CLIENTS)]
        threads = [threading.Thread(target=worker.run) for worker in workers]
        for thread in threads:
            thread.start()
        time.sleep(dice.uniform(*WORK_SECONDS))
        wait_for_approvals(workers, number + 2 - approvals(ledgers))
        time.sleep(dice.uniform(0, WORK_SECONDS[0]))  # or each round would end with an answer
        server.kill()
        for thread in threads:
            thread.join(timeout=60)
        unexpected = [problem for worker in workers for problem in worker.unexpected]
        assert not unexpected, unexpected
        ledgers += [ledger for worker in workers for ledger in worker.ledgers]
        server.restart()
        check(server, remote, ledgers)
    assert approvals(ledgers) > ROUNDS, "the rounds were long enough to mean something"
    assert any(ledger.approval_sent and not ledger.approved for ledger in ledgers), "an approval was interrupted"


def check(server: PorchProcess, remote: Remote, ledgers: list[Ledger]) -> None:
    """Compare what the clients were told with what the API and Git say once the first sync is through."""
    kubectl = Kubectl(server.kubeconfig)
    kubectl.ok("wait", "--for=condition=Ready", "repository/deployments", "--timeout=60s")
    porch = server.client()
    try:
        for ledger in ledgers:
            if ledger.name:
                eventually(lambda owed=ledger: check_one(porch, remote, owed))  # type: ignore[misc]
        eventually(lambda: check_all(porch, remote))
    finally:
        porch.close()
    git("fsck", "--strict", "--no-dangling", cwd=remote.path)


def check_one(porch: PorchClient, remote: Remote, owed: Ledger) -> None:
    """One package: at least what was acknowledged, and whole."""
    revision = accepted(porch.revision(owed.name))
    lifecycle = revision["spec"]["lifecycle"]
    allowed = {"Published"} if owed.approved else {"Proposed", "Published"} if owed.proposed else {"Draft", "Proposed"}
    assert lifecycle in allowed
    files = accepted(porch.resources(owed.name))["spec"]["resources"]
    possible = {COUNTER.format(number) for number in (owed.saved, owed.sent) if number} | (
        {None} if not owed.saved else set()
    )
    assert files.get("counter.yaml") in possible
    assert {"Kptfile", "README.md", "package-context.yaml"} <= set(files)
    found = refs(remote.path)
    tag = f"refs/tags/{owed.package}/v1"
    assert (tag in found) == (lifecycle == "Published")
    if lifecycle == "Published":
        assert revision["spec"]["revision"] == 1
        assert files_at(remote.path, tag, owed.package) == files
        assert files_at(remote.path, "refs/heads/main", owed.package) == files


def check_all(porch: PorchClient, remote: Remote) -> None:
    """Everything listed is in Git at its place, and nothing else is there."""
    expected = {"refs/heads/main"}
    for item in porch.revisions():
        spec = item["spec"]
        place = f"{spec['packageName']}/{spec['workspaceName']}"
        match spec["lifecycle"]:
            case "Draft":
                expected.add(f"refs/heads/drafts/{place}")
            case "Proposed":
                expected.add(f"refs/heads/proposed/{place}")
            case "Published" if spec["revision"] > 0:
                expected.add(f"refs/tags/{spec['packageName']}/v{spec['revision']}")
    assert set(refs(remote.path)) == expected
