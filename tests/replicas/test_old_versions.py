# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""Upgrade and downgrade across two former versions with their own programs, and nothing that was acknowledged is lost.

Source: ``users.md`` 7.2; issue 9 parts 3 and 6.
"""

import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from drafts import accepted, draft, published
from embedded_postgres import new_postgres
from eventually import eventually
from git_server import GitServer
from old_version import old_server
from porch_client import PorchClient
from porch_process import PorchProcess
from remotes import Remote, empty_remote
from replica_fixtures import remote  # noqa: F401 # found by name
from replica_set import SHARED, SLOW, register

from storage.sql.migrate import downgrade

pytestmark = pytest.mark.timeout(900)  # five servers start one after the other
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class Life:
    """What users did so far, and what therefore must be there, whichever version serves it."""

    def __init__(self, remote: Remote, repository: str) -> None:
        self.repository = repository
        self._remote = remote
        self._maps: set[str] = set()
        self._drafts: set[str] = set()
        self._published: set[str] = set()

    def go_on(self, server: PorchProcess, name: str) -> None:
        """Make an object, a labelled draft and a published revision."""
        with closing(server.client()) as porch:
            self._go_on(porch, name)

    def _go_on(self, porch: PorchClient, name: str) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        accepted(porch.request("POST", CONFIG_MAPS, body))
        self._maps.add(name)
        made = draft(porch, self.repository, self._remote, f"{name}-draft")
        labelled = porch.revision(made.name).object
        labelled["metadata"]["labels"] = {"made": name}
        accepted(porch.request("PUT", porch.path("packagerevisions", made.name), labelled))
        self._drafts.add(made.name)
        self._published.add(published(porch, self.repository, self._remote, f"{name}-done").name)

    def check(self, server: PorchProcess) -> None:
        """See that everything is there; a replica may be behind by a moment."""
        with closing(server.client()) as porch:
            eventually(lambda: self._check(porch), SLOW)

    def begin(self, server: PorchProcess, remote: GitServer) -> None:
        """Register the repository and go on from there."""
        with closing(server.client()) as porch:
            register([porch], remote, self.repository)
            self._go_on(porch, "first")

    def _check(self, porch: PorchClient) -> None:
        maps = {one["metadata"]["name"] for one in porch.request("GET", CONFIG_MAPS).object["items"]}
        revisions = {one["metadata"]["name"]: one for one in porch.revisions()}
        assert maps >= self._maps
        assert revisions.keys() >= self._drafts | self._published
        assert {revisions[name]["spec"]["lifecycle"] for name in self._drafts} <= {"Draft"}
        assert {revisions[name]["spec"]["lifecycle"] for name in self._published} <= {"Published"}
        assert all(revisions[name]["metadata"]["labels"]["made"] for name in self._drafts)
        for name in self._drafts:
            files = porch.resources(name)
            assert files.code == 200, files.body
            assert "Kptfile" in files.object["spec"]["resources"]


def migrate(arguments: list[str], data: Path, url: str) -> None:
    """Type ``porch migrate`` of today's version."""
    command = [sys.executable, "-m", "apiserver", "migrate", *arguments, "--data", str(data)]
    environment = {**os.environ, "PORCH_DATABASE_URL": url} if url else None
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def life(remote: GitServer) -> Life:
    """The life of a repository that is not registered yet."""
    name = f"deployments-{len(list(remote.root.iterdir()))}"
    path = empty_remote(remote.root / f"{name}.git")
    return Life(Remote(path, f"{remote.url}/{name}.git"), name)


def test_replicas_are_replaced_one_after_the_other_and_the_way_back_is_open(
    tmp_path: Path, postgres_server: str, remote: GitServer, life: Life
) -> None:
    url = new_postgres(postgres_server)
    downgrade(url)
    environment = {"PORCH_DATABASE_URL": url, "PORCH_SYNC_INTERVAL": "2"}
    one, two = tmp_path / "one", tmp_path / "two"
    oldest = old_server("0001", tmp_path, one, environment)
    newest = PorchProcess(two, environment=environment)
    try:
        oldest.start()
        life.begin(oldest, remote)

        migrate(["up"], two, url)  # two steps, while the old server serves
        life.go_on(oldest, "while-migrated")
        _share_keys(one, two)
        newest.start()
        life.check(newest)
        life.go_on(newest, "side-by-side")
        life.check(oldest)
        life.go_on(oldest, "last-of-old")
        life.check(newest)
        oldest.stop()
        life.go_on(newest, "new-alone")
        newest.stop()
        _step_by_step_back(life, tmp_path, two, environment)
    finally:
        oldest.stop()
        newest.stop()


def test_a_file_goes_two_versions_up_and_back_step_by_step(tmp_path: Path, remote: GitServer, life: Life) -> None:
    environment = {"PORCH_SYNC_INTERVAL": "2"}
    data = tmp_path / "data"
    oldest = old_server("0001", tmp_path, data, environment)
    newest = PorchProcess(data, environment=environment)
    try:
        oldest.start()
        life.begin(oldest, remote)
        oldest.kill()
        newest.start()  # which migrates
        life.check(newest)
        life.go_on(newest, "new")
        newest.kill()
        _step_by_step_back(life, tmp_path, data, environment)
    finally:
        oldest.stop()
        newest.stop()


def _step_by_step_back(life: Life, folder: Path, data: Path, environment: dict[str, str]) -> None:
    """Go down to each former schema, have its version serve what there is and write more; then up again, all at once."""
    url = environment.get("PORCH_DATABASE_URL", "")
    for schema in ("0001.1", "0001"):
        migrate(["down", "--to", schema], data, url)
        server = old_server(schema, folder, data, environment)
        server.start()
        life.check(server)
        life.go_on(server, f"back-at-{schema.replace('.', '-')}")
        server.kill()
    server = PorchProcess(data, environment=environment)
    server.start()
    life.check(server)
    server.stop()


def _share_keys(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for name in SHARED:
        if (source / name).exists():
            shutil.copy(source / name, target / name)
