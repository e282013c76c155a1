"""Two who write the same package revision, and somebody who pushes to Git beside them: one wins, the other is told what to do.

The Git server holds a push until it is told to go on, so that requests overlap for certain. Source: ``porch-api.md`` 8.2 and
``decisions.md`` 8.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from drafts import CONFIG_MAP, Revision, accepted, draft, proposal, published
from eventually import eventually
from git_server import Faults
from manifests import Register
from porch_client import Answer, Object, PorchClient
from porch_process import PorchProcess
from remotes import Remote, commit_files, files_at, git, is_ancestor, refs

BUSY = "another request is already in progress"
WAIT = 60.0
"""Seconds; longer than anything here should take."""

OTHER = CONFIG_MAP.replace("value", "other")

Write = Callable[[PorchClient, Revision], Answer]


@pytest.fixture(scope="module")
def porch_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PorchProcess]:
    """A server that looks at its remotes only when it has to, so that what others push is met by a request first."""
    environment = {"PORCH_SYNC_INTERVAL": "3600", "PORCH_GIT_TIMEOUT": "60"}
    server = PorchProcess(tmp_path_factory.mktemp("porch") / "data", environment=environment)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def deployments(register: Register, empty_remote: Remote) -> Remote:
    """The remote of a repository named deployments."""
    register(deployments=empty_remote)
    return empty_remote


class HeldPush:
    """The next push waits at the Git server until it is let go."""

    def __init__(self, faults: Faults) -> None:
        self.arrived = threading.Event()
        self._go_on = threading.Event()
        faults.before_push.append(self._hold)

    def _hold(self) -> None:
        self.arrived.set()
        assert self._go_on.wait(WAIT)

    def let_go(self) -> None:
        """Let the push go on."""
        self._go_on.set()


class Later:
    """A request in a thread of its own."""

    def __init__(self, client: PorchClient, send: Callable[[PorchClient], Answer]) -> None:
        self._client = client
        self._send = send
        self._answers: list[Answer] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._answers.append(self._send(self._client))
        self._client.close()

    def answer(self) -> Answer:
        """Wait for the answer."""
        self._thread.join(WAIT)
        assert self._answers, "the request was never answered"
        return self._answers[0]


# --- two requests ------------------------------------------------------------------------------------


def approve(porch: PorchClient, app: Revision) -> Answer:
    return porch.approve(app.name)


def save(porch: PorchClient, app: Revision) -> Answer:
    return porch.save(app.name, {"settings.yaml": OTHER})


def reject(porch: PorchClient, app: Revision) -> Answer:
    return porch.set_lifecycle(app.name, "Draft", "approval")


def label(porch: PorchClient, app: Revision) -> Answer:
    body = porch.revision(app.name).object
    body["metadata"].setdefault("labels", {})["team"] = "west"
    return porch.request("PUT", porch.path("packagerevisions", app.name), body)


def delete(porch: PorchClient, app: Revision) -> Answer:
    return porch.delete_revision(app.name)


def propose_deletion(porch: PorchClient, app: Revision) -> Answer:
    return porch.set_lifecycle(app.name, "DeletionProposed")


def keep(porch: PorchClient, app: Revision) -> Answer:
    return porch.set_lifecycle(app.name, "Published")


@dataclass(frozen=True)
class Pair:
    """A write that waits for its remote, and what comes while it does; a third one, afterwards, goes through again."""

    first: Write
    second: Write
    begins_as: str


PAIRS = [
    Pair(approve, approve, "Proposed"),
    Pair(approve, save, "Proposed"),
    Pair(approve, reject, "Proposed"),
    Pair(approve, label, "Proposed"),
    Pair(approve, delete, "Proposed"),
    Pair(delete, delete, "DeletionProposed"),
    Pair(delete, keep, "DeletionProposed"),
    Pair(delete, label, "DeletionProposed"),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair.second.__name__} against {pair.first.__name__}")
def test_the_second_of_two_overlapping_writes_is_refused_at_once_and_the_first_is_whole(
    pair: Pair, porch_server: PorchProcess, porch: PorchClient, deployments: Remote, faults: Faults
) -> None:
    app = begin(pair.begins_as, porch, deployments)
    held = HeldPush(faults)
    first = Later(porch_server.client(porch.namespace), lambda client: pair.first(client, app))
    assert held.arrived.wait(WAIT)

    second = pair.second(porch, app)

    held.let_go()
    assert (second.code, second.reason) == (409, "Conflict"), second.body.decode()
    assert BUSY in second.message
    assert first.answer().code == 200, first.answer().body
    check_whole(app)


def begin(lifecycle: str, porch: PorchClient, remote: Remote) -> Revision:
    """Make a revision whose branches are where they belong, so that the next push is that of the test."""
    if lifecycle == "Proposed":
        app = proposal(porch, "deployments", remote)
        app.wait_until_pushed()
        return app
    app = published(porch, "deployments", remote)
    accepted(propose_deletion(porch, app))
    eventually(lambda: has_ref(remote, "refs/heads/deletionProposed/app/v1"))
    return app


def has_ref(remote: Remote, ref: str) -> None:
    assert ref in refs(remote.path)


def check_whole(app: Revision) -> None:
    """The object and Git tell the same story."""
    answer = app.porch.revision(app.name)
    found = {ref for ref in refs(app.remote.path) if f"/{app.package}/" in ref}
    if answer.code == 404:
        assert not found
        return
    lifecycle = answer.object["spec"]["lifecycle"]
    expected = {
        "Draft": {app.draft_ref},
        "Proposed": {app.proposed_ref},
        "Published": {f"refs/tags/{app.package}/v1"},
    }[lifecycle]
    assert found == expected
    (ref,) = found
    assert files_at(app.remote.path, ref, app.package) == app.files


def test_of_many_creates_of_one_name_one_wins_and_the_others_say_that_it_exists_or_is_being_made(
    porch_server: PorchProcess, porch: PorchClient, deployments: Remote
) -> None:
    for number in range(5):
        gate = threading.Barrier(6)

        def create(client: PorchClient, at: threading.Barrier = gate, package: str = f"app{number}") -> Answer:
            client.revisions()  # connected before the start
            at.wait(WAIT)
            return client.create_revision("deployments", package)

        racers = [Later(porch_server.client(porch.namespace), create) for _ in range(6)]
        answers = [racer.answer() for racer in racers]

        assert sorted(answer.code for answer in answers) == [201] + [409] * 5
        for loser in (answer for answer in answers if answer.code == 409):
            assert BUSY in loser.message or "already exists" in loser.message
        name = next(answer for answer in answers if answer.code == 201).object["metadata"]["name"]
        assert [
            item["metadata"]["name"] for item in porch.revisions() if f"app{number}." in item["metadata"]["name"]
        ] == [name]


@pytest.mark.parametrize(
    ("act", "begins_as"),
    [(save, "Draft"), (label, "Draft"), (approve, "Proposed"), (reject, "Proposed")],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_whoever_read_before_somebody_elses_write_is_told_to_read_again(
    act: Write, begins_as: str, porch: PorchClient, deployments: Remote
) -> None:
    app = (
        draft(porch, "deployments", deployments)
        if begins_as == "Draft"
        else proposal(porch, "deployments", deployments)
    )
    stale = porch.revision(app.name).object["metadata"]["resourceVersion"]
    accepted(label(porch, app))
    path, body = as_read_at(stale, act, porch, app)

    answer = porch.request("PUT", path, body)

    assert (answer.code, answer.reason) == (409, "Conflict"), answer.body.decode()
    assert "the object has been modified" in answer.message
    assert app.lifecycle == begins_as


def as_read_at(version: str, act: Write, porch: PorchClient, app: Revision) -> tuple[str, Object]:
    """Return the request that ``act`` would send had it read at a version."""
    if act is save:
        body = porch.resources(app.name).object
        body["spec"]["resources"]["settings.yaml"] = OTHER
        path = porch.path("packagerevisionresources", app.name)
    else:
        body = porch.revision(app.name).object
        moves: dict[Write, str] = {approve: "Published", reject: "Draft"}
        body["spec"]["lifecycle"] = moves.get(act, body["spec"]["lifecycle"])
        body["metadata"]["labels"] = {"team": "east"}
        path = porch.path("packagerevisions", app.name, "approval" if act in (approve, reject) else "")
    body["metadata"]["resourceVersion"] = version
    return path, body


# --- again -------------------------------------------------------------------------------------------


def test_an_approval_sent_again_because_its_answer_was_lost_publishes_once_and_the_client_finds_out(
    porch: PorchClient, deployments: Remote, faults: Faults
) -> None:
    app = proposal(porch, "deployments", deployments)
    approval = porch.revision(app.name).object
    approval["spec"]["lifecycle"] = "Published"
    path = porch.path("packagerevisions", app.name, "approval")
    accepted(porch.request("PUT", path, approval))
    before = app.look()

    again = porch.request("PUT", path, approval)
    read_again = porch.approve(app.name)

    assert (again.code, again.reason) == (409, "Conflict"), "what Kubernetes clients answer by reading again"
    assert read_again.code == 422, "as upstream: only proposals can be approved (porch-api.md 4.2)"
    assert app.look() == before
    assert app.lifecycle == "Published"


def test_a_create_sent_again_exists_already_and_a_deletion_sent_again_finds_nothing(
    porch: PorchClient, deployments: Remote
) -> None:
    app = published(porch, "deployments", deployments)
    before = app.look()

    create = porch.create_revision("deployments", "app")

    assert (create.code, create.reason) == (409, "AlreadyExists")
    assert app.look() == before
    for _ in range(2):
        accepted(propose_deletion(porch, app))
    accepted(delete(porch, app))
    gone = delete(porch, app)
    assert (gone.code, gone.reason) == (404, "NotFound")


def test_proposing_what_is_proposed_and_rejecting_what_is_a_draft_change_nothing(
    porch: PorchClient, deployments: Remote
) -> None:
    app = proposal(porch, "deployments", deployments)
    proposed = app.snapshot()

    accepted(porch.propose(app.name))

    assert app.look() == proposed
    accepted(porch.set_lifecycle(app.name, "Draft"))
    rejected = app.snapshot()
    accepted(porch.set_lifecycle(app.name, "Draft"))
    assert app.look() == rejected


# --- somebody's push against each of them ----------------------------------------------------------------


def push_beside(remote: Remote, branch: str, file: str = "app/foreign.yaml") -> str:
    """Commit to a branch of the remote itself, as somebody else's push does."""
    return commit_files(remote.path, {file: "foreign: true\n"}, "somebody else's", branch=branch)


def short(ref: str) -> str:
    return ref.removeprefix("refs/heads/")


def test_a_create_meets_a_draft_of_that_name_that_somebody_pushed_and_neither_is_lost(
    porch: PorchClient, deployments: Remote
) -> None:
    kptfile = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n"
    theirs = commit_files(deployments.path, {"app/Kptfile": kptfile}, "theirs", branch="drafts/app/v1")

    created = accepted(porch.create_revision("deployments", "app"))

    app = Revision(porch, deployments, created["metadata"]["name"], "app")
    app.wait_until_pushed()
    assert is_ancestor(deployments.path, theirs, refs(deployments.path)[app.draft_ref])


def test_a_proposal_takes_along_what_somebody_pushed_to_the_draft(porch: PorchClient, deployments: Remote) -> None:
    app = draft(porch, "deployments", deployments)
    app.wait_until_pushed()
    theirs = push_beside(deployments, short(app.draft_ref))

    accepted(porch.propose(app.name))

    app.wait_until_pushed()
    found = refs(deployments.path)
    assert app.draft_ref not in found
    assert is_ancestor(deployments.path, theirs, found[app.proposed_ref]), "their commit is in the history"


def test_an_approval_that_meets_a_push_to_the_proposal_is_refused_and_one_after_reading_again_is_not(
    porch: PorchClient, deployments: Remote, faults: Faults
) -> None:
    app = proposal(porch, "deployments", deployments)
    app.wait_until_pushed()
    faults.before_push.append(lambda: push_beside(deployments, short(app.proposed_ref)))

    refused = porch.approve(app.name)

    assert (refused.code, refused.reason) == (409, "Conflict"), refused.body.decode()
    assert app.lifecycle == "Proposed"
    assert app.files["foreign.yaml"] == "foreign: true\n", "what somebody pushed is what would be approved now"
    accepted(porch.approve(app.name))
    check_whole(app)


def test_an_approval_that_meets_a_push_to_main_is_made_again_on_top_of_it(
    porch: PorchClient, deployments: Remote, faults: Faults
) -> None:
    app = proposal(porch, "deployments", deployments)
    app.wait_until_pushed()
    faults.before_push.append(lambda: push_beside(deployments, "main", "other/README.md"))

    accepted(porch.approve(app.name))

    check_whole(app)
    assert files_at(deployments.path, "refs/heads/main", "other") == {"README.md": "foreign: true\n"}


def test_a_deleted_draft_stays_deleted_although_somebody_pushed_to_it_and_their_commit_stays_in_git(
    porch: PorchClient, deployments: Remote
) -> None:
    app = draft(porch, "deployments", deployments)
    app.wait_until_pushed()
    theirs = push_beside(deployments, short(app.draft_ref))

    accepted(delete(porch, app))

    assert porch.revision(app.name).code == 404
    eventually(lambda: their_branch_is_settled(deployments, app, theirs))


def their_branch_is_settled(remote: Remote, app: Revision, theirs: str) -> None:
    """Their branch is left alone: nobody asked to delete what they pushed."""
    assert refs(remote.path).get(app.draft_ref) == theirs


@pytest.mark.parametrize("what", ["deleted", "moved"])
def test_a_deletion_that_meets_a_tag_somebody_touched_leaves_object_and_git_agreeing(
    what: str, porch: PorchClient, deployments: Remote, faults: Faults
) -> None:
    app = begin("DeletionProposed", porch, deployments)
    tag = "refs/tags/app/v1"

    def touch() -> None:
        if what == "deleted":
            git("update-ref", "-d", tag, cwd=deployments.path)
        else:
            git("update-ref", tag, push_beside(deployments, "main"), cwd=deployments.path)

    faults.before_push.append(touch)

    answer = delete(porch, app)

    assert answer.code in (200, 404, 409), answer.body
    if answer.code == 409:
        assert "again" in answer.message or "modified" in answer.message
        accepted(delete(porch, app))
    check_whole(app)


def test_nothing_waits_for_a_remote_that_somebody_else_waits_for(
    porch_server: PorchProcess, porch: PorchClient, deployments: Remote, faults: Faults
) -> None:
    app, sibling = proposal(porch, "deployments", deployments), draft(porch, "deployments", deployments, "sibling")
    for each in (app, sibling):
        each.wait_until_pushed()
    held = HeldPush(faults)
    first = Later(porch_server.client(porch.namespace), lambda client: approve(client, app))
    assert held.arrived.wait(WAIT)

    saved = save(porch, sibling)
    proposed = porch.propose(sibling.name)
    lifecycle, listed = app.lifecycle, porch.revisions()

    held.let_go()
    assert (saved.code, proposed.code) == (200, 200)
    assert lifecycle == "Proposed", "published means pushed"
    assert len(listed) >= 2
    assert first.answer().code == 200
    sibling.wait_until_pushed()
