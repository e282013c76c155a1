"""Repositories and servers that come and go: one remote registered twice, clones left behind, a note that does not hold."""

import asyncio
import shutil
import socket
from pathlib import Path

import pytest
from engine_fixture import NAMESPACE, eventually, git, new_remote, running_engine

from apiserver.engine.repositories import RESOURCE as REPOSITORIES
from krm.meta.errors import ServiceUnavailable
from storage.bodies import decode, encode_body
from storage.interfaces import Mutation, ObjectKey, Op


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return new_remote(tmp_path / "remote.git")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.mkdir()
    return path


async def test_approvals_through_two_repositories_of_one_remote_share_its_revision_numbers(
    data: Path, remote: Path
) -> None:
    async with running_engine(data) as engine:
        for repository in ("one", "two"):
            await engine.register(repository, remote)
        for number in range(3):
            for repository in ("one", "two"):
                name = (await engine.create(f"own-{repository}-{number}", repository=repository)).name
                await engine.move(name, "Proposed")
        both = [f"{repository}.own-{repository}-{number}.v1" for repository in ("one", "two") for number in range(3)]
        for repository in ("one", "two"):
            name = (await engine.create("app", repository=repository, workspace=f"by-{repository}")).name
            await engine.move(name, "Proposed")
            both.append(name)

        await asyncio.gather(*(engine.approve(name) for name in both))

        tags = set(git(remote, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/tags").splitlines())
        own = {f"own-{repository}-{number}/v1" for repository in ("one", "two") for number in range(3)}
        assert tags == own | {"app/v1", "app/v2"}
        await engine.sync("one")
        await engine.sync("two")
        for repository in ("one", "two"):
            numbers = {
                entry.fields[3]: int(entry.fields[0])
                for entry in engine.index.revisions(NAMESPACE, repository)
                if entry.fields[1] == "app"
            }
            assert sorted(numbers) == ["by-one", "by-two", "main"]
            assert sorted(numbers.values()) == [-1, 1, 2]


async def test_a_create_before_the_first_read_says_what_to_wait_for_and_that_trying_again_helps(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        async with running_engine(data) as engine:
            registering = asyncio.create_task(
                engine.register_url("slow", f"http://127.0.0.1:{deaf.getsockname()[1]}/x")
            )
            await eventually(lambda: _registered(engine, "slow"))

            with pytest.raises(ServiceUnavailable) as refused:
                await engine.create("app", repository="slow")

            registering.cancel()
    assert "kubectl wait --for=condition=Ready repository/slow" in refused.value.message
    assert refused.value.retry_after == 1


def _registered(engine: object, name: str) -> bool:
    return (NAMESPACE, name) in engine.repositories._held  # type: ignore[attr-defined]


async def test_clones_of_repositories_that_are_gone_are_removed_at_the_next_start(data: Path, remote: Path) -> None:
    async with running_engine(data) as engine:
        used = (await engine.register("repo", remote)).repository.folder
    left = data / "clones" / "gone-0123456789abcdef.git"
    (left / "objects").mkdir(parents=True)

    async with running_engine(data):
        await eventually(lambda: not left.exists())

        assert used.is_dir()


async def test_a_note_that_does_not_hold_is_removed_even_while_the_remote_is_down(data: Path, remote: Path) -> None:
    """A restored log grows past the revision in the note again, and would then seem to hold what it does not."""
    async with running_engine(data) as engine:
        folder = (await engine.register("repo", remote)).repository.folder
        await eventually((folder / "porch-synced").exists)
    note = folder / "porch-synced"
    digest = note.read_text().split()[0]
    note.write_text(f"{digest} 1000000\n")
    shutil.move(remote, remote.with_suffix(".down"))

    async with running_engine(data):
        await eventually(lambda: not note.exists())


async def test_a_name_that_is_registered_again_at_once_keeps_the_new_revisions(data: Path, remote: Path) -> None:
    """Without a finalizer, as some client may have left it: the old registration is still being forgotten."""
    main = git(remote, "rev-parse", "refs/heads/main")
    async with running_engine(data) as engine:
        await engine.register("repo", remote)
        for number in range(20):
            await engine.create(f"app-{number}")
        key = ObjectKey(REPOSITORIES, NAMESPACE, "repo")
        entry = engine.store.get(key)
        assert entry is not None

        await engine.store.write([Mutation(key, Op.DELETE, entry.rv, entry.uid, encode_body(decode(entry)))])
        await engine.register("repo", remote)

        assert engine.index.count(NAMESPACE, "repo") == 20, "drafts were pushed before they were forgotten"
        await asyncio.sleep(0.5)
        assert engine.index.count(NAMESPACE, "repo") == 20
    assert git(remote, "rev-parse", "refs/heads/main") == main
