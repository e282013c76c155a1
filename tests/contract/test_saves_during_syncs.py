"""A draft that is saved while a sync compares everything: the sync leaves it as it was saved."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from engine_fixture import new_remote, running_engine

from storage.interfaces import Entry
from storage.outbox import Parcel


async def test_a_draft_that_is_saved_while_everything_is_compared_is_not_taken_for_stranded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_engine(tmp_path, push_drafts="never") as engine:
        held = await engine.register("repo", new_remote(tmp_path / "remote.git"))
        draft = await engine.create("app")
        outbox, saved = engine.store.outbox, list[Entry]()
        read = outbox.parcels

        async def read_and_save(repository: str | None = None) -> Sequence[Parcel]:
            found = await read(repository)
            if not saved:
                saved.append(await engine.save(draft.name, one_txt="1\n"))
            return found

        monkeypatch.setattr(outbox, "parcels", read_and_save)
        held.synchronizer.compare_everything()
        await engine.sync()

        found = engine.entry(draft.name)
        assert found is not None
        assert [found.rv] == [entry.rv for entry in saved]
