"""A draft is deleted while the server itself writes it, or while its push is planned again. Found by ``make soak``."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from engine_fixture import SLOW, Engine, eventually, git, new_remote, running_engine

from apiserver.engine.drafts import DraftJob
from apiserver.engine.push_jobs import RefView
from apiserver.engine.recording import Recorder
from krm.meta.errors import Conflict
from storage.bodies import decode, encode_body
from storage.git.clone import Clone
from storage.git.objects import GitObject
from storage.interfaces import Entry, Mutation, Op
from storage.outbox import OutboxChange
from storage.turns import Turn

Json = dict[str, Any]


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return new_remote(tmp_path / "remote.git")


def note(body: Json) -> None:
    """Change what a client cannot have asked for, as the server does when it learns something of Git."""
    annotations = body["metadata"].setdefault("annotations", {})
    annotations["noted"] = str(int(annotations.get("noted", 0)) + 1)


def propose(body: Json) -> None:
    body["spec"]["lifecycle"] = "Proposed"


def written_first(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, change: Callable[[Json], None], times: int
) -> list[int]:
    """Have the server change a revision just before each of the first ``times`` deletions of it; return the versions."""
    write = engine.store.write
    done: list[int] = []

    async def slow(
        mutations: Sequence[Mutation], outbox: Sequence[OutboxChange] = (), turn: Turn | None = None
    ) -> Sequence[Entry]:
        deleted = [mutation.key for mutation in mutations if mutation.op is Op.DELETE]
        if deleted and len(done) < times:
            entry = engine.store.get(deleted[0])
            assert entry is not None
            body = decode(entry)
            change(body)
            changed = Mutation(entry.key, Op.UPDATE, entry.rv, entry.uid, encode_body(body))
            done.append((await write([changed]))[0].rv)
        return await write(mutations, outbox, turn)

    monkeypatch.setattr(engine.store, "write", slow)
    return done


@pytest.mark.parametrize("push_drafts", ["async", "sync", "never"])
async def test_a_delete_goes_on_when_the_server_only_noted_something_meanwhile(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch, push_drafts: str
) -> None:
    async with running_engine(tmp_path, push_drafts=push_drafts) as engine:
        await engine.register("repo", remote)
        name = (await engine.create("app")).name
        noted = written_first(engine, monkeypatch, note, 1)

        await engine.delete(name)

        assert len(noted) == 1
        assert engine.entry(name) is None


@pytest.mark.parametrize(
    ("change", "times"), [pytest.param(propose, 1, id="proposed"), pytest.param(note, 2, id="twice")]
)
async def test_a_delete_that_meets_more_than_a_note_is_a_conflict_and_deletes_nothing(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Json], None], times: int
) -> None:
    async with running_engine(tmp_path) as engine:
        await engine.register("repo", remote)
        name = (await engine.create("app")).name
        written = written_first(engine, monkeypatch, change, times)

        with pytest.raises(Conflict, match="the object has been modified"):
            await engine.delete(name)

        entry = engine.entry(name)
        assert entry is not None
        assert entry.rv == written[-1]


async def test_a_push_that_is_planned_again_after_its_draft_went_asks_for_nothing_more(
    tmp_path: Path, remote: Path
) -> None:
    async with running_engine(tmp_path, push_delay=3600) as engine:
        held = await engine.register("repo", remote)
        name = (await engine.create("app")).name
        parcel = await engine.store.outbox.parcel("ns/repo", name)
        assert parcel is not None
        job = DraftJob(held.repository, engine.store, Recorder(engine.store, engine.index), engine.claims, parcel)
        job.plan(RefView(held.repository))  # this push is lost to somebody else's
        await engine.delete(name)

        view = RefView(held.repository)
        job.plan(view)
        await job.settle()

        assert view.updates() == []
        assert not job.postponed


async def test_a_draft_deleted_in_the_moment_in_which_its_push_ends_leaves_no_branch(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_engine(tmp_path) as engine:
        await engine.register("repo", remote)
        name = (await engine.create("app")).name
        await eventually(lambda: "drafts/app/v1" in git(remote, "for-each-ref"))
        await outbox_is_empty(engine, name)
        under_way, go_on = threading.Event(), threading.Event()
        push, unpushed_commits = Clone.push, engine.repositories.unpushed_commits

        def slow_push(*arguments: Any) -> None:
            under_way.set()
            go_on.wait(SLOW)
            push(*arguments)

        async def slow_read(key: str, revision: str) -> list[GitObject]:
            go_on.set()
            await outbox_is_empty(engine, name)
            return await unpushed_commits(key, revision)

        monkeypatch.setattr(Clone, "push", slow_push)
        monkeypatch.setattr(engine.repositories, "unpushed_commits", slow_read)
        await engine.save(name, note_txt="one\n")
        await eventually(under_way.is_set)

        await engine.delete(name)

        await eventually(lambda: "drafts/app/v1" not in git(remote, "for-each-ref"))


async def outbox_is_empty(engine: Engine, name: str) -> None:
    """Wait until nothing is owed to the remote."""
    async with asyncio.timeout(SLOW):
        while await engine.store.outbox.parcel("ns/repo", name) is not None:
            await asyncio.sleep(0.01)
