"""A clone that lacks objects is completed before anything is concluded from what cannot be read in it."""

from pathlib import Path
from typing import Any

import pytest
from engine_fixture import eventually, new_remote, running_engine

from apiserver.engine import sources
from apiserver.engine.sync import Synchronizer
from apiserver.rules.schedule import parse_schedule
from apiserver.rules.sync_plan import SyncWishes
from krm.meta.errors import ServiceUnavailable
from storage.git.clone import Clone
from storage.git.discovery import Discovery
from storage.git.errors import GitError, ObjectMissing


async def test_a_clone_that_is_damaged_again_is_completed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = new_remote(tmp_path / "remote.git")
    discover, damaged = Synchronizer._discover, [False]

    def damaged_at_times(self: Synchronizer, *arguments: Any) -> Discovery:
        found = discover(self, *arguments)
        if not damaged[0]:
            return found
        damaged[0] = False
        return Discovery([], ["an object is missing"], [], incomplete=True)

    monkeypatch.setattr(Synchronizer, "_discover", damaged_at_times)
    async with running_engine(tmp_path) as engine:
        held = await engine.register("repo", remote)
        name = (await engine.create("app")).name
        for _ in range(2):
            damaged[0] = True
            held.synchronizer.compare_everything()
            with pytest.raises(GitError, match="everything is fetched again"):
                await engine.sync()
            await engine.sync()
            assert engine.entry(name) is not None


async def test_what_readers_miss_is_fetched_again_once_also_where_a_schedule_says_when_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = new_remote(tmp_path / "remote.git")
    fetches: list[bool] = []
    fetch = Clone.fetch

    def counted(self: Clone, *arguments: Any, complete: bool = False) -> None:
        fetches.append(complete)
        fetch(self, *arguments, complete=complete)

    def missing(*_arguments: object) -> None:
        raise ObjectMissing("0" * 40)

    async with running_engine(tmp_path) as engine:
        held = await engine.register("repo", remote)
        name = (await engine.create("app")).name
        await eventually(lambda: held.outbox.drafts == 0 and "drafts/app/v1" in str(held.repository.clone.refs))
        held.wishes = SyncWishes(parse_schedule("@yearly"))
        monkeypatch.setattr(Clone, "fetch", counted)
        monkeypatch.setattr(sources, "read_contents", missing)
        for _ in range(3):
            with pytest.raises(ServiceUnavailable, match="after the next sync"):
                await engine.contents(name)
            await eventually(lambda: not held.repository.damaged)

        assert fetches == [True]
