# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""``porch migrate``: up and down between schemas with data in them, on both databases, and nothing of the data changes.

What the former versions themselves wrote: ``tests/replicas/test_old_versions.py``.
"""

import os
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from object_store_cases import (
    create,
    delete,
    new_database,  # noqa: F401 # fixtures are found by name
    open_store,
    sqlite_template,  # noqa: F401
    target,  # noqa: F401
    update,
)
from typer.testing import CliRunner, Result

from apiserver.commands import cli
from storage.bodies import decode
from storage.interfaces import ObjectStore
from storage.outbox import GitObject, OutboxChange
from storage.sql import alembic_run
from storage.sql.migrate import Target, downgrade, upgrade
from storage.sql.schema import REVISION
from storage.sql.sqlite import locked

SCHEMAS = [name for name, _ in alembic_run.steps()]
LOWER = SCHEMAS[:-1][-2:]
"""The two schemas before this version's, as far as there are."""
BLOB = GitObject("blob", b"text\n", "8ab686eafeb1f44702738c8b0f24f2567c36da6d")


def porch(*arguments: str, at: Target) -> Result:
    """Type a command on a database; a SQLite file lies in its data directory under another name than a server's."""
    if isinstance(at, Path):
        standard = at.parent / "porch.db"
        if not standard.exists():
            os.link(at, standard)
        arguments += ("--data", str(at.parent))
    else:
        arguments += ("--database-url", at)
    return CliRunner().invoke(cli, ["migrate", *arguments])


async def contents(store: ObjectStore) -> Any:
    """Everything that clients and the pusher would see."""
    objects = [decode(entry) for entry in store.snapshot("widgets.example.com")]
    return objects, list(await store.outbox.parcels()), store.rv


async def fill(store: ObjectStore) -> None:
    """Write a life of objects, some of it compacted, and a draft that is not pushed."""
    one, two, three = await store.write([create("one"), create("two"), create("three")])
    (one,) = await store.write([update(one, colour="red")])
    await store.write([delete(two)])
    await store.compact(store.rv)
    draft = OutboxChange("ns/repository", "three", objects=[BLOB], seen={"refs/heads/drafts/a/v1": "0" * 40})
    await store.write([update(one, colour="blue"), update(three, colour="green")], [draft])


@pytest.mark.parametrize("lower", LOWER)
async def test_what_is_stored_stays_when_the_schema_goes_down_and_up(target: Target, lower: str) -> None:
    async with open_store(target) as store:
        await fill(store)
        before = await contents(store)

    downgrade(target, lower)
    upgrade(target)

    async with open_store(target) as store:
        assert await contents(store) == before
        (entry,) = await store.write([create("four")])
        assert entry.rv == before[2] + 1


def test_the_command_goes_down_and_up_and_says_where_it_is(target: Target) -> None:
    assert porch("status", at=target).exit_code == 0

    down = porch("down", "--to", LOWER[-1], at=target)
    behind = porch("status", at=target)
    up = porch("up", at=target)

    assert f"at schema {LOWER[-1]}, 1 behind {REVISION}" in down.output
    assert behind.exit_code == 1
    assert f"  {REVISION}  " in behind.output, "each step that is to be made, and what it does"
    assert up.exit_code == 0
    assert f"at schema {REVISION}, up to date" in up.output
    assert porch("up", at=target).exit_code == 0


@pytest.mark.parametrize("wanted", ["base", "9999", "0001; DROP TABLE k_log", REVISION + "0"])
def test_a_schema_that_is_not_below_is_refused(target: Target, wanted: str) -> None:
    done = porch("down", "--to", wanted, at=target)

    assert done.exit_code == 3
    assert "no schema below" in done.output
    assert porch("status", at=target).exit_code == 0


def test_a_server_that_runs_on_the_file_is_in_the_way(tmp_path: Path) -> None:
    down = ["migrate", "down", "--to", LOWER[-1], "--data", str(tmp_path)]
    assert CliRunner().invoke(cli, ["migrate", "up", "--data", str(tmp_path)]).exit_code == 0

    with locked(tmp_path / "porch.db"):
        refused = CliRunner().invoke(cli, down)

    assert refused.exit_code == 3
    assert "in use by another process" in refused.output
    assert CliRunner().invoke(cli, down).exit_code == 0


def test_a_schema_of_a_newer_version_is_only_undone_by_that(tmp_path: Path) -> None:
    upgrade(tmp_path / "porch.db")
    newer(tmp_path / "porch.db")

    status = CliRunner().invoke(cli, ["migrate", "status", "--data", str(tmp_path)])
    done = CliRunner().invoke(cli, ["migrate", "down", "--to", LOWER[-1], "--data", str(tmp_path)])

    assert status.exit_code == 1
    assert "made by a newer version" in status.output
    assert done.exit_code == 3
    assert "with the version that made it" in done.output


def newer(path: Path) -> None:
    """Say in the file that a later version added something."""
    engine = sa.create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '0001.99'"))
    engine.dispose()
