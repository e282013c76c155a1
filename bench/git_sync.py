"""Compare clone, listing and discovery of a big repository with what git itself takes.

Usage: ``PYTHONPATH=tests python bench/git_sync.py REPOSITORY``, a bare repository such as make_big_repo.py writes.
"""

import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from git_server import git_server, run_git

from storage.git.clone import Clone
from storage.git.discovery import discover
from storage.git.remote import Remote

T = TypeVar("T")


def timed(name: str, work: Callable[[], T]) -> T:
    start = time.perf_counter()
    result = work()
    print(f"{name:32s} {(time.perf_counter() - start) * 1000:8.0f} ms")
    return result


def sync(remote: Remote, path: Path, git: str | None) -> None:
    suffix = "with git" if git else "without git"
    clone = Clone.open(path, git=git)
    refs = timed(f"first listing, {suffix}", lambda: clone.list_remote(remote))
    timed(f"first fetch, {suffix}", lambda: clone.fetch(remote, refs))
    timed(f"listing again, {suffix}", lambda: clone.list_remote(remote))
    found = timed(f"discovery, {suffix}", lambda: discover(clone, clone.refs, directory="", branch="main"))
    timed(f"opening again, {suffix}", lambda: Clone.open(path, git=git))
    print(f"{len(found.revisions)} revisions, {len(found.problems)} problems")


def main() -> None:
    repository = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder, git_server(repository.parent) as server:
        remote = Remote(f"{server.url}/{repository.stem}")
        timed("git clone --mirror", lambda: run_git(None, "clone", "-q", "--mirror", remote.url, f"{folder}/m.git"))
        timed("git ls-remote", lambda: run_git(None, "ls-remote", remote.url))
        for git in (shutil.which("git"), None):
            sync(remote, Path(folder) / f"clone-{bool(git)}", git)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB, the server included")


if __name__ == "__main__":
    main()
