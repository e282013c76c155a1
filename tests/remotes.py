"""Git remotes for tests, made with the real ``git``: empty ones, the blueprints, and Nephio's catalog.

All are bare repositories below the root of a Git server (``git_server.py``).
"""

import os
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parent / "data"
BLUEPRINTS = DATA / "test-blueprints.bundle"
CATALOG = DATA / "nephio-catalog.tar.xz"
PUSHER = ("porch", "correct-horse")
"""User and password of those who may push to the fixtures' Git server."""
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "Fixture",
    "GIT_AUTHOR_EMAIL": "fixture@example.com",
    "GIT_COMMITTER_NAME": "Fixture",
    "GIT_COMMITTER_EMAIL": "fixture@example.com",
}


@dataclass(frozen=True)
class Remote:
    """A bare repository on disk and its address."""

    path: Path
    url: str


def git(*arguments: str, cwd: Path | None = None, stdin: bytes | None = None) -> str:
    """Run git with no configuration of the user's and return what it printed."""
    done = subprocess.run(
        ["git", *arguments], cwd=cwd, input=stdin, env=ENVIRONMENT, capture_output=True, check=False, timeout=120
    )
    if done.returncode:
        raise AssertionError(f"git {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
    return done.stdout.decode(errors="replace").strip()


def init_bare(path: Path) -> Path:
    """Create an empty bare repository that accepts pushes over HTTP."""
    git("init", "--quiet", "--bare", "--initial-branch=main", str(path))
    git("config", "http.receivepack", "true", cwd=path)
    return path


def empty_remote(path: Path) -> Path:
    """Create a bare repository with one commit, a README, on main."""
    commit_files(init_bare(path), {"README.md": f"# {path.stem}\n"}, "Initial commit")
    return path


def commit_files(remote: Path, files: Mapping[str, str], message: str, *, branch: str = "main", tag: str = "") -> str:
    """Add files on top of a branch in the remote itself, as somebody else's push would; return the commit."""
    with tempfile.TemporaryDirectory() as folder:
        index = {**ENVIRONMENT, "GIT_INDEX_FILE": str(Path(folder) / "index")}
        parent = _resolve(remote, f"refs/heads/{branch}")
        if parent:
            _run(["read-tree", parent], remote, index)
        for path, text in files.items():
            blob = _run(["hash-object", "-w", "--stdin"], remote, index, text.encode())
            _run(["update-index", "--add", "--cacheinfo", f"100644,{blob},{path}"], remote, index)
        tree = _run(["write-tree"], remote, index)
        commit = _run(["commit-tree", tree, "-m", message, *(["-p", parent] if parent else [])], remote, index)
    git("update-ref", f"refs/heads/{branch}", commit, cwd=remote)
    if tag:
        git("update-ref", f"refs/tags/{tag}", commit, cwd=remote)
    return commit


def blueprints_remote(path: Path) -> Path:
    """Create upstream's test-blueprints repository: six packages as eleven tags, branch main."""
    init_bare(path)
    git("fetch", "--quiet", str(BLUEPRINTS), "refs/heads/main:refs/heads/main", "refs/tags/*:refs/tags/*", cwd=path)
    return path


def catalog_remote(path: Path) -> Path:
    """Create a repository of Nephio's catalog: everything on main, each package tagged ``<package>/v1``."""
    init_bare(path)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(CATALOG) as archive:
            archive.extractall(folder, filter="data")
        worktree = ["--git-dir", str(path), "--work-tree", folder]
        git(*worktree, "add", "--all", "--force")
        git(*worktree, "commit", "--quiet", "--message=Nephio catalog")
        packages = top_packages(Path(folder))
    commit = refs(path)["refs/heads/main"]
    commands = "".join(f"create refs/tags/{package}/v1 {commit}\n" for package in packages)
    git("update-ref", "--stdin", cwd=path, stdin=commands.encode())
    return path


def top_packages(folder: Path) -> list[str]:
    """Return the folders with a Kptfile that are not inside another such folder."""
    found: list[str] = []
    for kptfile in sorted(folder.rglob("Kptfile"), key=lambda path: len(path.parts)):
        package = kptfile.parent.relative_to(folder).as_posix()
        if not any(package.startswith(f"{outer}/") for outer in found):
            found.append(package)
    return sorted(found)


def refs(remote: Path) -> dict[str, str]:
    """Return every branch and tag of a remote and the commit it is at."""
    lines = git("for-each-ref", "--format=%(refname) %(objectname)", cwd=remote).splitlines()
    return dict(line.split(" ", 1) for line in lines)


def files_at(remote: Path, commit: str, folder: str) -> dict[str, str]:
    """Return the text files below a folder in a commit, by their path in it."""
    names = git("ls-tree", "-r", "--name-only", f"{commit}:{folder}", cwd=remote).splitlines()
    return {name: _show(remote, f"{commit}:{folder}/{name}" if folder else f"{commit}:{name}") for name in names}


def is_ancestor(remote: Path, older: str, newer: str) -> bool:
    """Tell whether a commit is part of another's history."""
    command = ["git", "merge-base", "--is-ancestor", older, newer]
    return subprocess.run(command, cwd=remote, env=ENVIRONMENT, check=False, timeout=120).returncode == 0


def _show(remote: Path, blob: str) -> str:
    done = subprocess.run(["git", "cat-file", "blob", blob], cwd=remote, capture_output=True, check=True, timeout=120)
    return done.stdout.decode()


def _resolve(remote: Path, ref: str) -> str:
    return refs(remote).get(ref, "")


def _run(arguments: list[str], cwd: Path, environment: Mapping[str, str], stdin: bytes | None = None) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=cwd, env=environment, input=stdin, capture_output=True, check=True, timeout=60
    )
    return done.stdout.decode().strip()
