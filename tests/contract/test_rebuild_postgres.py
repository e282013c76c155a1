"""The database compared with Git, and taken back to a backup, on PostgreSQL: what the guide tells to type there."""

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest
import remotes
from embedded_postgres import new_postgres
from eventually import eventually
from porch_client import CONFIG, PorchClient
from porch_process import PorchProcess

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "back-up-and-restore.md"


@pytest.fixture
def url(postgres_server: str) -> str:
    return new_postgres(postgres_server)


@pytest.fixture
def server(tmp_path: Path, url: str) -> Iterator[PorchProcess]:
    server = PorchProcess(tmp_path / "data", environment={"PORCH_DATABASE_URL": url})
    server.start()
    yield server
    server.stop()


def run_check(server: PorchProcess, url: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "apiserver", "rebuild", "--check", "--data", str(server.data)]
    environment = {**os.environ, "PORCH_DATABASE_URL": url}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout + done.stderr


def register(porch: PorchClient, path: Path) -> None:
    body = {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "Repository",
        "metadata": {"name": "repo"},
        "spec": {"type": "git", "git": {"repo": path.as_uri()}},
    }
    at = f"{CONFIG}/namespaces/default/repositories"
    assert porch.request("POST", at, body).code == 201

    def ready() -> None:
        status = porch.request("GET", f"{at}/repo").object.get("status") or {}
        assert [one["status"] for one in status.get("conditions") or []] == ["True"]

    eventually(ready)


def test_the_check_reads_a_database_in_use_and_what_a_restore_types_moves_the_revisions_on(
    server: PorchProcess, url: str, tmp_path: Path
) -> None:
    remote = remotes.blueprints_remote(tmp_path / "remote.git")
    porch = server.client()
    register(porch, remote)
    assert run_check(server, url) == (0, "default/repo: 16 revisions: all as in Git\n")
    before = int(porch.revision("repo.basens.v1").object["metadata"]["resourceVersion"])
    porch.close()
    server.stop()
    statement = re.search(r"-c '(UPDATE [^']*)'", GUIDE.read_text())
    assert statement is not None

    asyncio.run(_execute(url, statement[1]))
    server.start()

    porch = server.client()
    made = porch.create_revision("repo", "after")
    assert made.code == 201, made.body
    assert int(made.object["metadata"]["resourceVersion"]) > before + 1_000_000_000 - 1000
    porch.close()


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
