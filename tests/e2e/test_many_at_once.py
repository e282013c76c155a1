"""Fifty clients at once in one repository: fifty clones, fifty approvals of packages, fifty approvals of one package.

Counts are exact. Times are bounded loosely, because whoever runs the tests shares the machine; ``make bench`` measures.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import pytest
from drafts import accepted, published
from eventually import eventually
from git_server import GitServer
from manifests import Register, clone_task, edit_task
from porch_client import Answer, PorchClient
from porch_process import PorchProcess
from remotes import Remote, is_ancestor, refs

CLIENTS = 50
MOST_PUSHES = 10
"""Pushes in which fifty approvals have to fit (``decisions.md`` 8: what waits together leaves together)."""
SECONDS = 60.0
"""The slowest of fifty; the target on a machine of one's own is 2 s, and bench says what it is."""


@dataclass(frozen=True)
class Timed:
    """An answer, and the seconds it took."""

    answer: Answer
    seconds: float


@pytest.fixture(scope="module")
def porch_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PorchProcess]:
    """A server whose only pushes are those of the requests."""
    environment = {"PORCH_SYNC_INTERVAL": "3600"}
    server = PorchProcess(tmp_path_factory.mktemp("porch") / "data", environment=environment)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def crowd(porch_server: PorchProcess, porch: PorchClient) -> Iterator[list[PorchClient]]:
    """Fifty clients, connected."""
    clients = [porch_server.client(porch.namespace) for _ in range(CLIENTS)]
    for client in clients:
        client.request("GET", "/version")
    yield clients
    for client in clients:
        client.close()


def all_at_once(crowd: Sequence[PorchClient], send: Callable[[PorchClient, int], Answer]) -> list[Timed]:
    """Have every client send its request in the same moment; return what each was answered."""
    gate = threading.Barrier(len(crowd))
    answers: dict[int, Timed] = {}

    def one(client: PorchClient, number: int) -> None:
        gate.wait(60)
        began = time.monotonic()
        answer = send(client, number)
        answers[number] = Timed(answer, time.monotonic() - began)

    threads = [threading.Thread(target=one, args=pair) for pair in zip(crowd, range(len(crowd)), strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return [answers[number] for number in range(len(crowd))]


def pushes(server: GitServer) -> int:
    """Return how many pushes the Git server has taken."""
    return sum(method == "POST" and path.endswith("git-receive-pack") for method, path, _ in server.requests)


def propose_all(porch: PorchClient, remote: Remote, names: Sequence[str], branches: Sequence[str]) -> list[bytes]:
    """Propose, wait until the branches are in the remote, and return the approvals to send."""
    for name in names:
        accepted(porch.propose(name))

    def arrived() -> None:
        assert {f"refs/heads/proposed/{branch}" for branch in branches} <= refs(remote.path).keys()

    eventually(arrived, timeout=60)
    approvals = []
    for name in names:
        body = porch.revision(name).object
        body["spec"]["lifecycle"] = "Published"
        approvals.append(json.dumps(body).encode())
    return approvals


def approve_all(
    crowd: Sequence[PorchClient],
    names: Sequence[str],
    approvals: Sequence[bytes],
    server: PorchProcess,
    git_http: GitServer,
) -> list[Timed]:
    """Approve all of them in the same moment; the first push waits until the server has all of them, however busy the machine."""

    def all_are_there() -> None:
        under_way = re.findall(
            r'^apiserver_current_in\w+_requests\{request_kind="package"\} (\S+)', server.metrics(), re.MULTILINE
        )
        assert sum(map(float, under_way)) >= CLIENTS

    def wait() -> None:
        with suppress(AssertionError):  # what then comes alone is counted below
            eventually(all_are_there, timeout=30)

    git_http.faults.before_push.append(wait)

    def approve(client: PorchClient, number: int) -> Answer:
        return client.request("PUT", client.path("packagerevisions", names[number], "approval"), approvals[number])

    return all_at_once(crowd, approve)


def check_answers(answers: Sequence[Timed], code: int) -> None:
    wrong = [timed.answer.body[:300] for timed in answers if timed.answer.code != code]
    assert not wrong, wrong[:3]
    assert max(timed.seconds for timed in answers) < SECONDS


def test_fifty_clones_into_one_repository_all_succeed(
    crowd: list[PorchClient],
    porch: PorchClient,
    register: Register,
    test_blueprints_remote: Remote,
    empty_remote: Remote,
) -> None:
    register(blueprints=test_blueprints_remote, deployments=empty_remote)
    upstream = next(item["metadata"]["name"] for item in porch.revisions() if item["spec"].get("revision") == 1)

    def clone(client: PorchClient, number: int) -> Answer:
        return client.create_revision("deployments", f"clone-{number}", tasks=[clone_task(upstream)])

    answers = all_at_once(crowd, clone)

    check_answers(answers, 201)
    assert len(porch.revisions("spec.repository=deployments")) == CLIENTS

    def pushed() -> None:
        drafts = [ref for ref in refs(empty_remote.path) if ref.startswith("refs/heads/drafts/clone-")]
        assert len(drafts) == CLIENTS

    eventually(pushed, timeout=60)


def test_fifty_approvals_in_one_repository_share_a_few_pushes(
    crowd: list[PorchClient],
    porch_server: PorchProcess,
    porch: PorchClient,
    register: Register,
    git_http: GitServer,
    empty_remote: Remote,
) -> None:
    register(deployments=empty_remote)
    packages = [f"app-{number}" for number in range(CLIENTS)]
    names = [accepted(porch.create_revision("deployments", package))["metadata"]["name"] for package in packages]
    approvals = propose_all(porch, empty_remote, names, [f"{package}/v1" for package in packages])
    before = pushes(git_http)

    answers = approve_all(crowd, names, approvals, porch_server, git_http)

    check_answers(answers, 200)
    assert pushes(git_http) - before <= MOST_PUSHES
    found = refs(empty_remote.path)
    assert found.keys() == {"refs/heads/main"} | {f"refs/tags/{package}/v1" for package in packages}
    for package in packages:
        assert is_ancestor(empty_remote.path, found[f"refs/tags/{package}/v1"], found["refs/heads/main"])


def test_fifty_approvals_of_one_package_get_fifty_numbers_without_gaps(
    crowd: list[PorchClient],
    porch_server: PorchProcess,
    porch: PorchClient,
    register: Register,
    git_http: GitServer,
    empty_remote: Remote,
) -> None:
    register(deployments=empty_remote)
    source = published(porch, "deployments", empty_remote)
    workspaces = [f"w{number}" for number in range(CLIENTS)]
    names = [
        accepted(porch.create_revision("deployments", "app", workspace, tasks=[edit_task(source.name)]))["metadata"][
            "name"
        ]
        for workspace in workspaces
    ]
    approvals = propose_all(porch, empty_remote, names, [f"app/{workspace}" for workspace in workspaces])
    before = pushes(git_http)

    answers = approve_all(crowd, names, approvals, porch_server, git_http)

    check_answers(answers, 200)
    assert pushes(git_http) - before <= MOST_PUSHES
    published_as = sorted(timed.answer.object["spec"]["revision"] for timed in answers)
    assert published_as == list(range(2, CLIENTS + 2))
    assert {f"refs/tags/app/v{number}" for number in range(1, CLIENTS + 2)} <= refs(empty_remote.path).keys()
    latest = [
        item["spec"]["revision"]
        for item in porch.revisions()
        if (item["metadata"].get("labels") or {}).get("kpt.dev/latest-revision") == "true"
    ]
    assert latest == [CLIENTS + 1]
