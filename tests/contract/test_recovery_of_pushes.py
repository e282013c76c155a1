"""What a remote has and the log does not know, and the reverse: put right without anybody's help.

Each case was found by ``make soak``: a crash or a full disk between a push and its record.
"""

import asyncio
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from engine_fixture import NAMESPACE, SLOW, Engine, eventually, git, new_remote, running_engine

from apiserver.engine.package_index import Package
from krm.meta.errors import ServiceUnavailable
from storage.git.objects import GitObject
from storage.interfaces import StoreUnavailable


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return new_remote(tmp_path / "remote.git")


def refs(remote: Path) -> set[str]:
    return set(git(remote, "for-each-ref", "--format=%(refname)").split())


@contextmanager
def full_disk(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the database refuse every write for the length of the block."""

    async def refuse(_batch: Any) -> None:
        raise StoreUnavailable("the SQLite database cannot be used: database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(engine.store._database, "commit", refuse)
        yield


def arrive(remote: Path, objects: Iterable[GitObject]) -> None:
    """Put objects into the remote, as a push does that nobody hears of."""
    for obj in objects:
        command = ["git", "hash-object", "-w", "--literally", "-t", obj.kind, "--stdin"]
        subprocess.run(command, cwd=remote, input=obj.data, capture_output=True, check=True)


async def outbox_holds(engine: Engine, *names: str) -> None:
    """Wait until the outbox has parcels of just these revisions."""
    async with asyncio.timeout(SLOW):
        while [parcel.revision for parcel in await engine.store.outbox.parcels("ns/repo")] != list(names):
            await asyncio.sleep(0.01)


async def proposal(engine: Engine, package: str = "app") -> str:
    name = (await engine.create(package)).name
    await engine.move(name, "Proposed")
    return name


async def test_an_approval_that_cannot_be_recorded_is_said_to_be_unknown_and_is_recorded_as_soon_as_it_can_be(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_engine(tmp_path) as engine:
        await engine.register("repo", remote)
        name = await proposal(engine)

        with (
            full_disk(engine, monkeypatch),
            pytest.raises(ServiceUnavailable, match="may be in its Git remote already"),
        ):
            await engine.approve(name)

        assert "refs/tags/app/v1" in refs(remote)
        await eventually(lambda: engine.body(name)["spec"]["lifecycle"] == "Published")
        assert engine.body(name)["spec"]["revision"] == 1
        await eventually(lambda: refs(remote) == {"refs/heads/main", "refs/tags/app/v1"})
        await outbox_holds(engine)


async def test_an_approval_that_could_not_be_recorded_and_is_asked_for_again_gets_no_second_number(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_engine(tmp_path) as engine:
        held = await engine.register("repo", remote)
        held.tasks[0].cancel()  # nobody looks by himself
        name = await proposal(engine)
        with full_disk(engine, monkeypatch), pytest.raises(ServiceUnavailable):
            await engine.approve(name)

        other = await proposal(engine, "other")
        await engine.approve(other)

        assert engine.body(name)["spec"]["revision"] == 1
        assert {ref for ref in refs(remote) if "/app/" in ref} == {"refs/tags/app/v1"}


async def test_a_deletion_that_cannot_be_recorded_is_recorded_as_soon_as_it_can_be(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_engine(tmp_path) as engine:
        await engine.register("repo", remote)
        name = await proposal(engine)
        await engine.approve(name)
        await engine.move(name, "DeletionProposed")
        await eventually(lambda: "refs/heads/deletionProposed/app/v1" in refs(remote))

        with (
            full_disk(engine, monkeypatch),
            pytest.raises(ServiceUnavailable, match="may be in its Git remote already"),
        ):
            await engine.delete(name)

        await eventually(lambda: engine.entry(name) is None)
        assert refs(remote) == {"refs/heads/main"}


async def test_a_deletion_that_reached_the_remote_before_a_crash_is_not_undone_by_the_proposal_that_waited(
    tmp_path: Path, remote: Path
) -> None:
    async with running_engine(tmp_path, push_delay=3600) as engine:
        await engine.register("repo", remote)
        name = await proposal(engine)
        await engine.approve(name)
        await engine.move(name, "DeletionProposed")
        assert len(await engine.store.outbox.parcels("ns/repo")) == 1
    git(remote, "update-ref", "-d", "refs/tags/app/v1")  # as far as the deletion came

    async with running_engine(tmp_path) as engine:
        await engine.register("repo", remote)

        await eventually(lambda: engine.entry(name) is None)
        held = engine.repositories.get(NAMESPACE, "repo")
        await eventually(lambda: not held.dirty.is_set())
        await engine.sync()
        assert refs(remote) == {"refs/heads/main"}


async def test_deletion_proposals_reach_git_also_where_drafts_never_do(tmp_path: Path, remote: Path) -> None:
    async with running_engine(tmp_path, push_drafts="never") as engine:
        await engine.register("repo", remote)
        name = await proposal(engine)
        await engine.approve(name)
        draft = (await engine.create("other")).name

        await engine.move(name, "DeletionProposed")

        await eventually(lambda: "refs/heads/deletionProposed/app/v1" in refs(remote))
        await outbox_holds(engine, draft)
        assert not any("drafts" in ref for ref in refs(remote))


@pytest.mark.parametrize("later", ["sync", "async"])
async def test_drafts_that_waited_when_the_setting_changed_are_pushed_and_can_be_saved(
    later: str, tmp_path: Path, remote: Path
) -> None:
    async with running_engine(tmp_path, push_drafts="never") as engine:
        await engine.register("repo", remote)
        name = (await engine.create("app")).name
        await engine.save(name, note_txt="one\n")

    async with running_engine(tmp_path, push_drafts=later) as engine:
        await engine.register("repo", remote)

        await eventually(lambda: "refs/heads/drafts/app/v1" in refs(remote))
        await engine.save(name, note_txt="two\n")
        await eventually(lambda: git(remote, "show", "drafts/app/v1:app/note.txt") == "two")


async def test_a_draft_deleted_while_its_push_arrived_unnoticed_leaves_no_branch(tmp_path: Path, remote: Path) -> None:
    async with running_engine(tmp_path) as engine:
        await engine.register("repo", remote)
        name = (await engine.create("app")).name
        await eventually(lambda: "refs/heads/drafts/app/v1" in refs(remote))
        await outbox_holds(engine)
    async with running_engine(tmp_path, push_delay=3600) as engine:
        await engine.register("repo", remote)
        await engine.save(name, note_txt="one\n")
        parcel = await engine.store.outbox.parcel("ns/repo", name)
        assert parcel is not None
        arrive(remote, parcel.objects)
        git(remote, "update-ref", "refs/heads/drafts/app/v1", engine.body(name)["status"]["selfLock"]["git"]["commit"])
        await engine.delete(name)

    async with running_engine(tmp_path) as engine:
        await engine.register("repo", remote)

        await eventually(lambda: refs(remote) == {"refs/heads/main"})
        await engine.sync()
        assert engine.entry(name) is None


async def test_a_proposal_deleted_while_the_push_of_its_draft_arrived_unnoticed_leaves_no_branch(
    tmp_path: Path, remote: Path
) -> None:
    """Kill test, life 35: created, edited, proposed and deleted while its first push was under way."""
    async with running_engine(tmp_path, push_delay=3600) as engine:
        await engine.register("repo", remote)
        name = (await engine.create("app")).name
        parcel = await engine.store.outbox.parcel("ns/repo", name)
        assert parcel is not None
        arrive(remote, parcel.objects)
        git(remote, "update-ref", "refs/heads/drafts/app/v1", engine.body(name)["status"]["selfLock"]["git"]["commit"])
        await engine.save(name, note_txt="one\n")
        await engine.move(name, "Proposed")
        await engine.delete(name)

    async with running_engine(tmp_path) as engine:
        await engine.register("repo", remote)

        await eventually(lambda: refs(remote) == {"refs/heads/main"})
        await engine.sync()
        assert engine.entry(name) is None


@pytest.mark.parametrize("push_drafts", ["async", "sync", "never"])
async def test_a_proposal_to_delete_what_is_gone_from_git_goes_too(
    tmp_path: Path, remote: Path, push_drafts: str
) -> None:
    """A deletion reached the remote, its answer did not reach us (kill test, life 50); or somebody removed the tag."""
    async with running_engine(tmp_path, push_drafts=push_drafts) as engine:
        await engine.register("repo", remote)
        name = await proposal(engine)
        await engine.approve(name)
        await engine.move(name, "DeletionProposed")
        await eventually(lambda: "refs/heads/deletionProposed/app/v1" in refs(remote))
        git(remote, "update-ref", "-d", "refs/tags/app/v1")

        await engine.sync()

        assert engine.entry(name) is None
        await eventually(lambda: "refs/heads/deletionProposed/app/v1" not in refs(remote))
        await outbox_holds(engine)


async def test_a_number_is_above_all_that_are_in_git_although_a_lower_one_is_free_again(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kill test, life 34: the log did not have the third yet, and the second was just deleted."""
    async with running_engine(tmp_path) as engine:
        await engine.register("repo", remote)
        for workspace in ("v1", "w2", "w3", "w4"):
            task = {"type": "edit", "edit": {"sourceRef": {"name": "repo.app.v1"}}} if workspace != "v1" else None
            name = (await engine.create("app", workspace=workspace, task=task)).name
            await engine.move(name, "Proposed")
            if workspace != "w4":
                await engine.approve(name)
        await engine.move("repo.app.w2", "DeletionProposed")
        await engine.delete("repo.app.w2")
        monkeypatch.setattr(Package, "next_revision", lambda _package: 2)

        await engine.approve("repo.app.w4")

        assert engine.body("repo.app.w4")["spec"]["revision"] == 4
        assert {ref for ref in refs(remote) if "tags" in ref} == {f"refs/tags/app/v{number}" for number in (1, 3, 4)}
