"""Clones of repositories that nobody registered: shared, bounded, and no way around the remote's permission."""

import os
import shutil
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from git_server import GitServer, git_server
from remotes import commit_files, init_bare

from apiserver.engine import upstream_clones
from apiserver.engine.upstream_clones import PackageNotFound, UpstreamClones
from storage.git.clone import Clone
from storage.git.errors import AuthenticationFailed, RemoteUnavailable
from storage.git.remote import Credentials, Remote

KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: p\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    (tmp_path / "remotes").mkdir()
    with git_server(tmp_path / "remotes", credentials="ann:secret") as running:
        yield running


@pytest.fixture
def clones(tmp_path: Path) -> UpstreamClones:
    return UpstreamClones(tmp_path / "upstreams")


def repository(server: GitServer, name: str, size: int = 10) -> Path:
    """Make a remote with a package on main, tagged ``p/v1``, and another commit on branch other."""
    path = init_bare(server.root / f"{name}.git")
    blob = os.urandom(size).hex()
    commit_files(path, {"p/Kptfile": KPTFILE, "p/blob.txt": blob}, "one", tag="p/v1")
    commit_files(path, {"p/Kptfile": KPTFILE, "p/other.txt": os.urandom(size).hex()}, "two", branch="other")
    return path


def remote(server: GitServer, name: str, *, credentials: Credentials | None = None, timeout: float = 20) -> Remote:
    return Remote(f"{server.url}/{name}", credentials, timeout=timeout)


def posts(server: GitServer) -> int:
    return sum(1 for method, path, _ in server.requests if method == "POST" and "upload-pack" in path)


def test_a_package_is_fetched_once_and_then_only_looked_up(server: GitServer, clones: UpstreamClones) -> None:
    path = repository(server, "one")

    first = clones.package(remote(server, "one"), "p", "v1")
    asked = posts(server)
    again = clones.package(remote(server, "one"), "p", "p/v1")

    assert first == again
    assert set(first.contents) == {"Kptfile", "blob.txt"}
    assert posts(server) == asked + 1, "one listing, no fetch"
    newer = commit_files(path, {"p/blob.txt": "changed"}, "three")
    assert clones.package(remote(server, "one"), "p", "main").commit == newer


def test_only_what_is_asked_for_is_fetched(server: GitServer, clones: UpstreamClones, tmp_path: Path) -> None:
    repository(server, "one")

    main = clones.package(remote(server, "one"), "p", "main").commit
    (folder,) = (tmp_path / "upstreams").iterdir()
    listed = Clone.open(folder).list_remote(remote(server, "one"))

    assert Clone.open(folder).has(main)
    assert not Clone.open(folder).has(listed["refs/heads/other"])


def test_a_remote_that_hangs_holds_up_only_those_who_want_it(
    server: GitServer, clones: UpstreamClones, tmp_path: Path
) -> None:
    repository(server, "quick")
    with git_server(tmp_path / "remotes") as slow, ThreadPoolExecutor(4) as pool:
        slow.faults.hang = True
        hanging = [pool.submit(clones.package, remote(slow, "quick", timeout=60), "p", "v1") for _ in range(2)]
        time.sleep(0.2)

        clones.package(remote(server, "quick"), "p", "v1")

        assert not any(future.done() for future in hanging)
        slow.stop()
        for future in hanging:
            with pytest.raises(RemoteUnavailable):
                future.result(timeout=60)


def test_many_at_once_share_one_clone(server: GitServer, clones: UpstreamClones, tmp_path: Path) -> None:
    repository(server, "one")

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: clones.package(remote(server, "one"), "p", "v1"), range(16)))

    assert all(each == found[0] for each in found)
    assert len(list((tmp_path / "upstreams").iterdir())) == 1
    assert threading.active_count() < 50


def test_a_kept_clone_is_no_way_around_the_remotes_permission(server: GitServer, clones: UpstreamClones) -> None:
    repository(server, "private")
    server.faults.private = True
    ann = Credentials("ann", "secret")
    commit = clones.package(remote(server, "private", credentials=ann), "p", "v1").commit

    for ref in ("v1", commit):
        with pytest.raises(AuthenticationFailed):
            clones.package(remote(server, "private"), "p", ref)


def test_the_least_recently_used_clones_go_when_all_are_over_the_limit(server: GitServer, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        repository(server, name, size=300_000)
    folder = tmp_path / "upstreams"
    clones = UpstreamClones(folder, limit=750_000)

    held = []
    for name in ("a", "b", "a", "c"):
        before = set(folder.iterdir()) if folder.exists() else set()
        clones.package(remote(server, name), "p", "v1")
        held.append(set(folder.iterdir()) - before)

    (a,), (b,), _, (c,) = held
    assert set(folder.iterdir()) == {a, c}
    assert b not in set(folder.iterdir())
    assert set(clones.package(remote(server, "b"), "p", "v1").contents) == {"Kptfile", "blob.txt"}


def test_a_clone_that_lost_its_objects_is_begun_anew(server: GitServer, clones: UpstreamClones, tmp_path: Path) -> None:
    repository(server, "one")
    first = clones.package(remote(server, "one"), "p", "v1")
    (folder,) = (tmp_path / "upstreams").iterdir()
    shutil.rmtree(folder / "objects")
    (folder / "objects" / "pack").mkdir(parents=True)

    assert clones.package(remote(server, "one"), "p", "v1") == first


def test_a_commit_without_a_ref_is_fetched_where_the_remote_allows_it(
    server: GitServer, clones: UpstreamClones
) -> None:
    path = repository(server, "one")
    old = commit_files(path, {"p/blob.txt": "old"}, "old")
    commit_files(path, {"p/blob.txt": "new"}, "new")

    found = clones.package(remote(server, "one"), "p", old)

    assert (found.commit, found.contents["blob.txt"].data) == (old, b"old")
    with pytest.raises(PackageNotFound, match=r"no branch or tag is at commit f{40}"):
        clones.package(remote(server, "one"), "p", "f" * 40)


def test_a_remote_that_went_away_is_told_apart_from_a_commit_it_has_not(
    server: GitServer, clones: UpstreamClones
) -> None:
    repository(server, "one")
    clones.package(remote(server, "one"), "p", "v1")
    server.faults.status = 503

    with pytest.raises(RemoteUnavailable):
        clones.package(remote(server, "one"), "p", "f" * 40)


def test_what_a_kill_left_of_a_removal_goes_with_the_next(
    server: GitServer, clones: UpstreamClones, tmp_path: Path
) -> None:
    left = tmp_path / "upstreams" / "0123456789abcdef01234567.git.going"
    left.mkdir(parents=True)
    (left / "pack").write_bytes(b"x" * 1000)
    repository(server, "one")

    clones.package(remote(server, "one"), "p", "v1")

    assert not left.exists()


def test_no_more_wait_for_remotes_that_hang_than_there_may_be_threads(
    server: GitServer, clones: UpstreamClones, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream_clones, "MAX_AT_ONCE", 3)
    repository(server, "quick")
    with git_server(tmp_path / "remotes") as slow, ThreadPoolExecutor(3) as pool:
        slow.faults.hang = True
        hanging = [pool.submit(clones.package, remote(slow, f"r{n}", timeout=60), "p", "v1") for n in range(3)]
        time.sleep(0.3)

        with pytest.raises(RemoteUnavailable, match="too many"):
            clones.package(remote(server, "quick"), "p", "v1")

        slow.stop()
        for future in hanging:
            with pytest.raises(RemoteUnavailable):
                future.result(timeout=60)
    assert clones.package(remote(server, "quick"), "p", "v1").contents
