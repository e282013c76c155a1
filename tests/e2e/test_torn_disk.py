"""Files that a power cut left torn below the data directory: the server starts, gives no wrong answer and repairs what Git has.

Source: ``users.md`` 7.2, row 4. A clone is a cache of its remote; the end of the database may be lost with the disk's own.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from drafts import Revision, accepted, draft, published
from eventually import eventually
from git_server import GitServer
from manifests import credentials, repository
from porch_client import CONFIG, PorchClient
from porch_process import PorchProcess
from remotes import Remote, files_at, git, refs


def objects(clone: Path) -> list[Path]:
    """Return the object files of a clone, newest first."""
    files = [path for path in (clone / "objects").rglob("*") if path.is_file()]
    return sorted(files, key=lambda path: path.stat().st_mtime_ns, reverse=True)


def cut(path: Path) -> None:
    """Leave the first half of a file."""
    path.chmod(0o644)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def cut_newest_objects(clone: Path) -> None:
    for path in objects(clone)[:5]:
        cut(path)


def empty_every_object(clone: Path) -> None:
    for path in objects(clone):
        path.chmod(0o644)
        path.write_bytes(b"")


def cut_refs(clone: Path) -> None:
    for path in itertools.chain(clone.glob("packed-refs"), clone.glob("porch-journal-*")):
        cut(path)


def fill_refs_with_garbage(clone: Path) -> None:
    (clone / "packed-refs").write_bytes(b"\x00\xff" * 500)


def lose_head(clone: Path) -> None:
    (clone / "HEAD").unlink()


def cut_mark(clone: Path) -> None:
    (clone / "porch-synced").write_text("0123")


DAMAGES = [cut_newest_objects, empty_every_object, cut_refs, fill_refs_with_garbage, lose_head, cut_mark]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PorchProcess]:
    """A server that looks at its remote only after a start, or when something is missing."""
    one = PorchProcess(tmp_path / "data", environment={"PORCH_SYNC_INTERVAL": "3600"})
    one.start()
    yield one
    one.stop()


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_torn_clone_is_repaired_from_its_remote(
    damage: Callable[[Path], None], server: PorchProcess, git_http: GitServer, empty_remote: Remote
) -> None:
    porch = registered(server, empty_remote)
    app, work = published(porch, "deployments", empty_remote), draft(porch, "deployments", empty_remote, "work")
    work.wait_until_pushed()
    before = {one.name: one.files for one in (app, work)}
    porch.close()
    server.kill()
    (clone,) = (server.data / "clones").glob("*.git")

    damage(clone)
    server.start()

    porch = server.client()
    for one in (app, work):
        eventually(lambda name=one.name: check_files(porch, name, before[name]))  # type: ignore[misc]
    again = Revision(porch, empty_remote, work.name, "work")
    accepted(porch.propose(work.name))
    accepted(porch.approve(work.name))
    assert files_at(empty_remote.path, "refs/tags/work/v1", "work") == again.files
    assert set(refs(empty_remote.path)) == {"refs/heads/main", "refs/tags/app/v1", "refs/tags/work/v1"}
    git("fsck", "--full", "--no-dangling", cwd=empty_remote.path)
    porch.close()


def registered(server: PorchProcess, remote: Remote) -> PorchClient:
    porch = server.client()
    accepted(porch.request("POST", "/api/v1/namespaces/default/secrets", credentials()))
    path = f"{CONFIG}/namespaces/default/repositories"
    accepted(porch.request("POST", path, repository("deployments", remote.url)))
    eventually(lambda: check_ready(porch, f"{path}/deployments"))
    return porch


def check_ready(porch: PorchClient, path: str) -> None:
    status = porch.request("GET", path).object.get("status") or {}
    assert [one["status"] for one in status.get("conditions") or []] == ["True"], status


def check_published(porch: PorchClient, name: str) -> None:
    spec = porch.revision(name).object.get("spec") or {}
    assert (spec.get("lifecycle"), spec.get("revision")) == ("Published", 1)


def check_files(porch: PorchClient, name: str, expected: dict[str, str]) -> None:
    answer = porch.resources(name)
    assert answer.code == 200, answer.body
    assert answer.object["spec"]["resources"] == expected


@pytest.mark.parametrize("part", [0.2, 0.5, 0.9])
def test_a_database_that_lost_its_end_agrees_with_git_again(
    part: float, server: PorchProcess, git_http: GitServer, empty_remote: Remote
) -> None:
    porch = registered(server, empty_remote)
    apps = [published(porch, "deployments", empty_remote, f"app{number}") for number in range(4)]
    files = {app.name: app.files for app in apps}
    porch.close()
    server.kill()
    log = server.data / "porch.db-wal"

    with log.open("r+b") as file:
        file.truncate(int(log.stat().st_size * part))
    server.start()

    porch = server.client()
    if porch.request("GET", f"{CONFIG}/namespaces/default/repositories/deployments").code == 404:
        porch.close()  # the registration was lost, too
        porch = registered(server, empty_remote)
    for name, expected in files.items():
        eventually(lambda at=name: check_published(porch, at))  # type: ignore[misc]
        check_files(porch, name, expected)
    time.sleep(1.5)  # what the older log still wanted to push is pushed now
    assert set(refs(empty_remote.path)) == {"refs/heads/main", *(f"refs/tags/{app.package}/v1" for app in apps)}
    porch.close()
