"""A replica that is paused past its lease while another one works: between looking at a remote and writing what it saw,
between planning a publish and pushing it, and when all of a push has been said but its commands.

All of it once more with a clock that jumps by an hour whenever it is looked at: none of ours takes part.
Source: issue 9, part 3; ``users.md`` 7.2 #11.
"""

import asyncio
import itertools
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from embedded_postgres import new_postgres
from engine_fixture import NAMESPACE, Engine, git, new_remote, running_engine
from git_server import create_repository, git_server, run_git
from urllib3.connection import HTTPConnection

from apiserver.engine.claims import claim_on
from apiserver.engine.draft_writing import DraftWriter
from krm.meta.errors import Conflict, ServiceUnavailable
from storage.git import carriers
from storage.interfaces import NotOurTurn
from storage.sql.postgres import PostgresDatabase

LEASE = 60.0
"""Seconds; no replica loses its turn because the machine is busy, but only where a test says so."""
SLOW = 90.0
pytestmark = pytest.mark.timeout(300)


class Replica:
    """An engine and its database."""

    def __init__(self, engine: Engine, database: PostgresDatabase) -> None:
        self.engine = engine
        self._database = database

    async def lose_lease(self) -> None:
        """Be as a process that was paused past its lease: long silent, and its session ended by the database."""
        session = self._database._turns._session
        assert session is not None
        end = "SELECT pg_terminate_backend($1, $2)"  # waits until the session has let go of its locks
        ended = await self._database._pool.fetchval(end, session.connection.get_server_pid(), int(SLOW * 1000))
        assert ended
        session.alive -= LEASE
        async with asyncio.timeout(SLOW):
            while not session.lost:
                await asyncio.sleep(0.01)


@pytest.fixture(params=["steady", "jumping"], autouse=True)
def clock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of day, as it is or as it should not be."""
    if request.param == "steady":
        return
    hours = itertools.cycle([0, 1, 0, -1])
    now, now_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: now() + next(hours) * 3600)
    monkeypatch.setattr(time, "time_ns", lambda: now_ns() + next(hours) * 3600 * 10**9)


@pytest.fixture(params=["async"])
def push_drafts(request: pytest.FixtureRequest) -> str:
    """When drafts go to the remote."""
    return str(request.param)


drafts_stay = pytest.mark.parametrize("push_drafts", ["never"], indirect=True)
"""The worst case: no branch moves in the remote when a proposal is taken back, so no push can lose against that."""


@pytest.fixture
async def pair(postgres_server: str, tmp_path: Path, push_drafts: str) -> AsyncIterator[tuple[Replica, Replica]]:
    url = new_postgres(postgres_server)
    async with AsyncExitStack() as stack:
        both = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            database = PostgresDatabase(url, lease_seconds=LEASE)
            engine = await stack.enter_async_context(
                running_engine(tmp_path / name, push_drafts=push_drafts, database=database)
            )
            both.append(Replica(engine, database))
        yield both[0], both[1]


async def registered(pair: tuple[Replica, Replica], remote: Path) -> None:
    await pair[0].engine.register("repo", remote, deployment=False)
    await known_to(pair[1])


async def known_to(replica: Replica) -> None:
    """Wait until a replica has read the repository that the other one registered."""
    async with asyncio.timeout(SLOW):
        while True:
            held = replica.engine.repositories._held.get((NAMESPACE, "repo"))
            if held is not None and held.repository.synced:
                return
            await asyncio.sleep(0.05)


async def published(engine: Engine, package: str, workspace: str = "v1", task: object = None) -> str:
    draft = await engine.create(package, workspace=workspace, task=task)  # type: ignore[arg-type] # None or a task
    await engine.move(draft.name, "Proposed")
    await engine.approve(draft.name)
    return draft.name


async def test_what_it_saw_before_is_not_written_over_what_was_published_meanwhile(
    pair: tuple[Replica, Replica], tmp_path: Path
) -> None:
    paused, other = pair
    remote = new_remote(tmp_path / "remote.git")
    await registered(pair, remote)
    first = await published(other.engine, "app")
    await paused.engine.sync()
    held = paused.engine.repositories.get(NAMESPACE, "repo")
    looked, go_on = threading.Event(), threading.Event()
    clone = held.repository.clone
    list_remote = clone.list_remote

    def list_and_sleep(*arguments: object) -> dict[str, str]:
        seen = list_remote(*arguments)  # type: ignore[arg-type] # passed on
        if held.repository.turn is not None:  # the look before that needs no turn
            looked.set()
            go_on.wait(SLOW)
        return seen

    clone.list_remote = list_and_sleep  # type: ignore[assignment, method-assign] # the pause
    held.synchronizer.compare_everything()
    syncing = asyncio.create_task(held.queue.synchronize())
    assert await asyncio.to_thread(looked.wait, SLOW)
    await paused.lose_lease()
    edit = {"type": "edit", "edit": {"sourceRef": {"name": first}}}
    second = await published(other.engine, "app", "v2", edit)
    new = await published(other.engine, "brand-new")
    clone.list_remote = list_remote  # type: ignore[method-assign] # it wakes
    go_on.set()
    with pytest.raises(NotOurTurn):
        await syncing

    for replica in pair:
        await replica.engine.sync()
        assert replica.engine.body(second)["spec"]["revision"] == 2
        assert replica.engine.body(new)["spec"]["lifecycle"] == "Published"
        assert replica.engine.body(new)["status"]["publishedBy"] == "alice"
    tags = git(remote, "tag").split()
    assert sorted(tags) == ["app/v1", "app/v2", "brand-new/v1"]


class PausedPush:
    """A replica that sleeps between planning a publish and pushing it, until it is woken."""

    def __init__(self, replica: Replica, name: str) -> None:
        self._replica = replica
        self._planned, self._go_on = threading.Event(), threading.Event()
        clone = replica.engine.repositories.get(NAMESPACE, "repo").repository.clone
        self._clone, push = clone, clone.push

        def sleep_and_push(*arguments: object) -> None:
            self._planned.set()
            self._go_on.wait(SLOW)
            self._clone.push = push  # type: ignore[method-assign] # what comes next is not paused
            push(*arguments)  # type: ignore[arg-type] # passed on

        clone.push = sleep_and_push  # type: ignore[assignment, method-assign] # the pause
        self.approval = asyncio.create_task(replica.engine.approve(name))

    async def past_its_lease(self) -> None:
        """Wait until the publish is planned, and the database has given the replica up."""
        assert await asyncio.to_thread(self._planned.wait, SLOW)
        await self._replica.lose_lease()

    def wake(self) -> None:
        """Let it push what it had planned."""
        self._go_on.set()


async def quiet(engine: Engine) -> None:
    """Wait until drafts are in the remote, so that the next push is the publish."""
    async with asyncio.timeout(SLOW):
        while await engine.store.outbox.owing():
            await asyncio.sleep(0.05)


async def two_proposals(engine: Engine) -> tuple[str, str]:
    first = await published(engine, "app")
    edit = {"type": "edit", "edit": {"sourceRef": {"name": first}}}
    names = []
    for workspace in ("w2", "w3"):
        draft = await engine.create("app", workspace=workspace, task=edit)
        await engine.move(draft.name, "Proposed")
        names.append(draft.name)
    return names[0], names[1]


async def test_what_it_planned_before_is_planned_anew_after_another_publish(
    pair: tuple[Replica, Replica], tmp_path: Path
) -> None:
    paused, other = pair
    remote = new_remote(tmp_path / "remote.git")
    await registered(pair, remote)
    slow, quick = await two_proposals(paused.engine)
    await quiet(paused.engine)
    pause = PausedPush(paused, slow)
    await pause.past_its_lease()

    await other.engine.approve(quick)
    pause.wake()
    await pause.approval

    for replica in pair:
        await replica.engine.sync()
        assert replica.engine.body(quick)["spec"]["revision"] == 2
        assert replica.engine.body(slow)["spec"]["revision"] == 3
    assert sorted(git(remote, "tag").split()) == ["app/v1", "app/v2", "app/v3"]
    assert git(remote, "log", "--first-parent", "--format=%s", "main").count("Approving package revision app/") == 3


async def proposal(engine: Engine) -> str:
    draft = await engine.create("app")
    await engine.move(draft.name, "Proposed")
    return draft.name


async def publishing(pair: tuple[Replica, Replica], folder: Path, *, in_git: bool) -> tuple[Path, str, PausedPush]:
    """Have the first replica plan to publish a proposal, which is ``in_git`` already or not, and sleep past its lease."""
    paused, _ = pair
    remote = new_remote(folder / "remote.git")
    await registered(pair, remote)
    name = await proposal(paused.engine)
    if in_git:
        await quiet(paused.engine)
    pause = PausedPush(paused, name)
    await pause.past_its_lease()
    return remote, name, pause


async def told_a_draft(pair: tuple[Replica, Replica], name: str) -> None:
    for replica in pair:
        await replica.engine.sync()
        assert replica.engine.body(name)["spec"]["lifecycle"] == "Draft"


async def test_what_another_has_published_it_does_not_publish_again(
    pair: tuple[Replica, Replica], tmp_path: Path
) -> None:
    _, other = pair
    remote, name, pause = await publishing(pair, tmp_path, in_git=True)

    await asyncio.sleep(1)  # commits tell seconds: within one, both would make the very same publish, and both be right
    await other.engine.approve(name)
    tip = git(remote, "rev-parse", "main")
    pause.wake()
    with pytest.raises(Conflict):
        await pause.approval

    assert git(remote, "rev-parse", "main") == tip
    assert git(remote, "tag").split() == ["app/v1"]
    for replica in pair:
        await replica.engine.sync()
        assert replica.engine.body(name)["spec"]["revision"] == 1


async def test_what_another_has_taken_back_it_does_not_publish(pair: tuple[Replica, Replica], tmp_path: Path) -> None:
    _, other = pair
    remote, name, pause = await publishing(pair, tmp_path, in_git=True)

    await other.engine.move(name, "Draft")
    async with asyncio.timeout(SLOW):
        while not git(remote, "for-each-ref", "refs/heads/drafts/app"):
            await asyncio.sleep(0.05)
    pause.wake()
    with pytest.raises(Conflict):
        await pause.approval

    assert git(remote, "tag") == ""
    await told_a_draft(pair, name)


@drafts_stay
async def test_what_another_has_taken_back_it_does_not_publish_although_no_branch_moved(
    pair: tuple[Replica, Replica], tmp_path: Path
) -> None:
    _, other = pair
    remote, name, pause = await publishing(pair, tmp_path, in_git=False)

    await other.engine.move(name, "Draft")
    refs = git(remote, "for-each-ref")
    pause.wake()
    with pytest.raises(Conflict):
        await pause.approval

    assert git(remote, "for-each-ref") == refs
    await told_a_draft(pair, name)


@drafts_stay
async def test_a_push_of_which_all_but_the_commands_was_sent_is_called_back(
    pair: tuple[Replica, Replica], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused, other = pair
    greeted, go_on = threading.Event(), threading.Event()

    def send_head_and_sleep(connection: HTTPConnection, *arguments: Any, **named: Any) -> None:
        HTTPConnection.endheaders(connection, *arguments, **named)
        options = connection._response_options
        if options is not None and options.request_url.endswith("/git-receive-pack"):
            monkeypatch.delattr(carriers._Watched, "endheaders")
            greeted.set()
            go_on.wait(SLOW)

    with git_server(tmp_path / "served") as server:
        remote = create_repository(server.root / "remote.git")
        await paused.engine.register_url("repo", f"{server.url}/remote.git", seconds=SLOW)
        await known_to(other)
        name = await proposal(paused.engine)
        refs = run_git(remote, "for-each-ref")
        monkeypatch.setattr(carriers._Watched, "endheaders", send_head_and_sleep, raising=False)
        approval = asyncio.create_task(paused.engine.approve(name))
        assert await asyncio.to_thread(greeted.wait, SLOW)
        await paused.lose_lease()
        await other.engine.move(name, "Draft")
        go_on.set()
        with pytest.raises(Conflict):
            await approval

        assert run_git(remote, "for-each-ref") == refs
        await told_a_draft(pair, name)


@drafts_stay
async def test_what_another_is_writing_it_does_not_publish_with_a_new_turn(
    pair: tuple[Replica, Replica], tmp_path: Path
) -> None:
    paused, other = pair
    remote, name, pause = await publishing(pair, tmp_path, in_git=False)

    async with other.engine.store.claim(claim_on(NAMESPACE, name)) as claimed:
        assert claimed
        pause.wake()
        with pytest.raises(ServiceUnavailable):
            await pause.approval

    assert git(remote, "tag") == ""
    await paused.engine.approve(name)
    assert git(remote, "tag") == "app/v1"


@drafts_stay
async def test_a_draft_that_is_to_stay_in_the_database_is_not_pushed_by_a_replica_that_has_not_heard_of_it_yet(
    pair: tuple[Replica, Replica], tmp_path: Path
) -> None:
    behind, other = pair
    remote = new_remote(tmp_path / "remote.git")
    await registered(pair, remote)
    held = behind.engine.repositories.get(NAMESPACE, "repo")
    (following,) = (task for task in behind.engine.store._tasks if task.get_name() == "log follower")
    following.cancel()
    await asyncio.wait([following])
    await other.engine.create("app")
    await behind.engine.repositories._pusher.push_parcels(held)

    assert git(remote, "for-each-ref", "refs/heads/drafts") == ""


async def test_what_it_had_read_from_the_outbox_it_fetches_once_that_was_pushed(
    pair: tuple[Replica, Replica], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused, other = pair
    remote, away = new_remote(tmp_path / "remote.git"), tmp_path / "away.git"
    await registered(pair, remote)
    draft = await other.engine.create("app")
    await quiet(other.engine)
    remote.rename(away)
    await other.engine.save(draft.name, one_txt="1\n")
    await paused.engine.store.get_fresh(draft.key)
    begun, go_on, build = threading.Event(), threading.Event(), DraftWriter._build

    def sleep_and_build(*arguments: Any) -> Any:
        begun.set()
        go_on.wait(SLOW)
        return build(*arguments)

    monkeypatch.setattr(DraftWriter, "_build", sleep_and_build)
    saving = asyncio.create_task(paused.engine.save(draft.name, two_txt="2\n"))
    assert await asyncio.to_thread(begun.wait, SLOW)
    away.rename(remote)
    await quiet(other.engine)
    go_on.set()
    await saving

    assert {"one.txt", "two.txt"} <= (await paused.engine.contents(draft.name)).keys()
