"""The chart's Job migrates a real PostgreSQL database: with its own command, and nothing but what its Pod gets."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from chart_rendering import HELM, SECONDS, Done, Helm, built, named
from embedded_postgres import new_postgres

from storage.sql.migrate import current_revision, downgrade
from storage.sql.schema import REVISION

PRODUCTION = Path(__file__).parent / "values" / "production.yaml"


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """Return the command of the Job's container."""
    job = named(Helm(built(HELM), tmp_path).render(PRODUCTION), "Job", "porch-migrations")
    (only,) = job["spec"]["template"]["spec"]["containers"]
    return [*only.get("command", ["porch"]), *only.get("args", [])]


def run(command: list[str], url: str) -> Done:
    """Run it where the image's programs are on the path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {"PATH": path, "PORCH_DATABASE_URL": url}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)


def test_an_empty_database_is_migrated_and_a_second_run_changes_nothing(
    command: list[str],
    postgres_server: str,
) -> None:
    url = new_postgres(postgres_server)
    downgrade(url)

    first, second = run(command, url), run(command, url)

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert current_revision(url) == REVISION


def test_a_database_that_does_not_answer_fails_the_job_without_its_password(command: list[str]) -> None:
    done = run(command, "postgresql://porch:s3cret@127.0.0.1:1/porch")

    assert done.returncode != 0
    assert done.stderr
    assert "s3cret" not in done.stdout + done.stderr
