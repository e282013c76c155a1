"""What was begun for a remote is ended cleanly when its repository, its namespace or its branch goes meanwhile."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from engine_fixture import NAMESPACE, Engine, eventually, git, new_remote, running_engine

from apiserver.engine import repositories as engine_repositories
from apiserver.engine.rebasing import PendingDrafts
from apiserver.engine.registered import RegisteredRepository
from apiserver.engine.repositories import RESOURCE as REPOSITORIES
from apiserver.engine.sync import Synchronizer
from apiserver.rules.lifecycle import Door
from krm.meta.errors import ServiceUnavailable
from storage.bodies import encode_body
from storage.git.errors import DiskFull
from storage.git.objects import GitObject
from storage.interfaces import Entry, Mutation, ObjectKey, Op

Json = dict[str, Any]


def refs(remote: Path) -> set[str]:
    return set(git(remote, "for-each-ref", "--format=%(refname)").split())


def delay_pushes(remote: Path, until: Path) -> None:
    """Make the remote take no push before a file is there."""
    hook = remote / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\nwhile [ ! -e '{until}' ]; do sleep 0.1; done\n")
    hook.chmod(0o755)


async def unregister(engine: Engine, name: str) -> None:
    entry = engine.store.get(ObjectKey(REPOSITORIES, NAMESPACE, name))
    assert entry is not None
    await engine.store.write([Mutation(entry.key, Op.DELETE, entry.rv, entry.uid, entry.body)])


async def terminate_namespace(engine: Engine) -> None:
    metadata = {"name": NAMESPACE, "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    namespace: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    key = ObjectKey("namespaces", "", NAMESPACE)
    await engine.store.write([Mutation(key, Op.CREATE, 0, "u", encode_body(namespace))])


async def test_an_approval_is_answered_and_gives_its_claim_back_when_its_repository_goes_while_the_remote_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_repositories, "FLUSH_SECONDS", 0.2)
    remote, go_on = new_remote(tmp_path / "remote.git"), tmp_path / "go-on"
    async with running_engine(tmp_path) as engine:
        await engine.register("repo", remote)
        name = (await engine.create("app")).name
        await engine.move(name, "Proposed")
        await eventually(lambda: "refs/heads/proposed/app/v1" in refs(remote))
        delay_pushes(remote, go_on)
        try:
            approval = asyncio.create_task(engine.approve(name))
            await asyncio.sleep(0.2)
            await unregister(engine, "repo")

            with pytest.raises(ServiceUnavailable, match="no longer registered"):
                await asyncio.wait_for(approval, 60)
        finally:
            go_on.touch()
        assert engine.claims.count() == 0


async def test_in_a_terminating_namespace_a_draft_with_edits_that_wait_keeps_its_branch(tmp_path: Path) -> None:
    remote = new_remote(tmp_path / "remote.git")
    async with running_engine(tmp_path, push_delay=1.0) as engine:
        held = await engine.register("repo", remote)
        name = (await engine.create("app")).name
        await eventually(lambda: "refs/heads/drafts/app/v1" in refs(remote))
        await eventually(lambda: held.outbox.drafts == 0)
        await engine.save(name, notes_txt="waits")
        await terminate_namespace(engine)

        await engine.delete(name)
        await asyncio.sleep(2.5)

        assert engine.entry(name) is None
        assert "refs/heads/drafts/app/v1" in refs(remote)


async def test_an_edit_of_a_draft_that_is_just_put_on_a_rewritten_branch_is_not_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote, loop = new_remote(tmp_path / "remote.git"), asyncio.get_running_loop()
    rebased, edits = PendingDrafts._rebased, ["edited meanwhile"]

    async with running_engine(tmp_path, push_delay=3600.0) as engine:
        await engine.register("repo", remote)
        name = (await engine.create("app")).name

        def edited_meanwhile(self: PendingDrafts, entry: Entry, head: str | None) -> tuple[str, list[GitObject]]:
            made = rebased(self, entry, head)
            if edits:
                asyncio.run_coroutine_threadsafe(engine.save(name, notes_txt=edits.pop()), loop).result()
            return made

        monkeypatch.setattr(PendingDrafts, "_rebased", edited_meanwhile)
        other = git(remote, "commit-tree", git(remote, "write-tree"), "-m", "Another beginning")
        git(remote, "update-ref", "refs/heads/main", other)
        await engine.sync()
        assert not edits

    async with running_engine(tmp_path) as engine:
        await engine.register("repo", remote)
        assert (await engine.contents(name))["notes.txt"].data == b"edited meanwhile"
        await eventually(lambda: "refs/heads/drafts/app/v1" in refs(remote))
        assert git(remote, "merge-base", "drafts/app/v1", "main") == other


async def test_a_deletion_waits_for_the_clone_and_does_not_end_the_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = new_remote(tmp_path / "remote.git")
    async with running_engine(tmp_path) as engine:
        await engine.register("repo", remote)
        name = (await engine.create("app")).name
        for lifecycle in ("Proposed", "Published", "DeletionProposed"):
            await engine.move(name, lifecycle, Door.APPROVAL if lifecycle == "Published" else Door.MAIN)

    async def not_now(_self: RegisteredRepository) -> None:
        raise DiskFull("no room for the clone")

    monkeypatch.setattr(RegisteredRepository, "open", not_now)
    async with running_engine(tmp_path) as engine:
        with pytest.raises(ServiceUnavailable, match="has not been read yet"):
            await engine.delete(name)
        assert engine.entry(name) is not None


async def test_a_draft_follows_a_rewritten_branch_although_the_sync_that_saw_it_did_not_get_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The refs are known from then on, so that no later sync sees them change."""
    remote = new_remote(tmp_path / "remote.git")

    async def broken_off(*_arguments: object, **_options: object) -> None:
        raise DiskFull("no room")

    async with running_engine(tmp_path, push_delay=3600.0) as engine:
        await engine.register("repo", remote)
        name = (await engine.create("app")).name
        await engine.save(name, notes_txt="waits")
        other = git(remote, "commit-tree", git(remote, "write-tree"), "-m", "Another beginning")
        git(remote, "update-ref", "refs/heads/main", other)
        with monkeypatch.context() as patched:
            patched.setattr(Synchronizer, "_read", broken_off)
            with pytest.raises(DiskFull):
                await engine.sync()

    async with running_engine(tmp_path) as engine:
        await engine.register("repo", remote)
        await eventually(lambda: "refs/heads/drafts/app/v1" in refs(remote))
        assert git(remote, "merge-base", "drafts/app/v1", "main") == other
        assert git(remote, "show", "drafts/app/v1:app/notes.txt") == "waits"


async def test_a_draft_whose_branch_is_in_the_remote_is_not_moved_by_a_full_sync(tmp_path: Path) -> None:
    remote = new_remote(tmp_path / "remote.git")
    async with running_engine(tmp_path, push_delay=0.5) as engine:
        held = await engine.register("repo", remote)
        name = (await engine.create("app")).name
        await eventually(lambda: "refs/heads/drafts/app/v1" in refs(remote) and held.outbox.drafts == 0)
        saved = await engine.save(name, notes_txt="waits")
        held.synchronizer.compare_everything()
        await engine.sync()

        after = engine.entry(name)
        assert after is not None
        assert after.rv == saved.rv
