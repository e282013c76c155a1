"""Compare our push with the bare ``git push --atomic`` of one commit and one tag, interleaved, over HTTP.

Usage: ``PYTHONPATH=tests python bench/git_push.py [ROUNDS]``. Prints the medians in ms with 0 and with 10,000 tags in the remote, and
with a root directory of 1 and of 1,000 packages.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from git_server import create_repository, git_server, run_git

from krm.package.contents import File
from storage.git.clone import Clone, RefUpdate
from storage.git.commits import Identity, build_commit
from storage.git.objects import GitObject
from storage.git.refs import tag_ref
from storage.git.remote import Credentials, Remote
from storage.git.trees import replace_subtree, write_package

WHO = Identity("bench", "bench@example.com")
PACKAGE = {name: File(f"# {name}\n".encode() * 40) for name in ("Kptfile", "deployment.yaml", "service.yaml")}


def commit_of(clone: Clone, number: int, path: str) -> tuple[str, list[GitObject]]:
    head = clone.refs["refs/heads/main"]
    package, objects = write_package({**PACKAGE, "n.txt": File(f"{path} {number}\n".encode())})
    root, trees = replace_subtree(clone, clone.commit(head).tree, path, package)
    commit = build_commit(root, (head,), WHO, f"commit {number}", int(time.time()))
    return commit.oid, [*objects, *trees, commit]


def ours(clone: Clone, remote: Remote, number: int) -> float:
    oid, objects = commit_of(clone, number, "ours")
    start = time.perf_counter()
    updates = [RefUpdate("refs/heads/main", clone.refs["refs/heads/main"], oid)]
    updates.append(RefUpdate(tag_ref("ours", number), None, oid))
    clone.push(remote, updates, objects)
    took = time.perf_counter() - start
    clone.add_objects(objects)
    return took


def bare(work: Path, number: int) -> float:
    run_git(work, "fetch", "-q", "--no-tags", "origin", "main")
    run_git(work, "reset", "-q", "--soft", "FETCH_HEAD")
    (work / "bare").mkdir(exist_ok=True)
    (work / "bare" / "n.txt").write_text(f"bare {number}\n")
    run_git(work, "add", "bare")
    run_git(work, "commit", "-qm", f"bare {number}")
    run_git(work, "tag", f"bare/v{number}")
    start = time.perf_counter()
    run_git(work, "push", "-q", "--atomic", "origin", "HEAD:main", f"bare/v{number}")
    return time.perf_counter() - start


def compare(root: Path, packages: int, tags: int, rounds: int) -> None:
    repository = create_repository(root / f"p{packages}-t{tags}.git")
    blob = run_git(repository, "hash-object", "-w", "--stdin", data=b"x\n")
    folder = run_git(repository, "mktree", data=f"100644 blob {blob}\tKptfile\n".encode())
    tree = run_git(
        repository, "mktree", data="".join(f"040000 tree {folder}\tpkg{n:05d}\n" for n in range(packages)).encode()
    )
    commit = run_git(repository, "commit-tree", tree, "-m", "packages")
    run_git(repository, "update-ref", "refs/heads/main", commit)
    lines = "".join(f"create refs/tags/old{n % 1000}/v{n} {commit}\n" for n in range(tags))
    run_git(repository, "update-ref", "--stdin", data=lines.encode())
    run_git(repository, "pack-refs", "--all")
    with git_server(root, "u:p") as server:
        work = root / f"work-{packages}-{tags}"
        address = f"http://u:p@127.0.0.1:{server.port}/{repository.stem}"
        run_git(None, "clone", "-q", "--no-tags", address, str(work))
        clone = Clone.open(root / f"clone-{packages}-{tags}")
        remote = Remote(f"{server.url}/{repository.stem}", Credentials("u", "p"))
        times: dict[str, list[float]] = {"ours": [], "bare": []}
        for number in range(1, rounds + 1):
            times["bare"].append(bare(work, number))
            clone.fetch(remote, clone.list_remote(remote))
            times["ours"].append(ours(clone, remote, number))
        shown = "  ".join(f"{name} {statistics.median(values) * 1000:6.1f} ms" for name, values in times.items())
        print(f"{packages:5d} packages  {tags:6d} tags   {shown}")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print(subprocess.run(["git", "--version"], capture_output=True, check=True).stdout.decode().strip())
    with tempfile.TemporaryDirectory() as folder:
        for packages, tags in ((1, 0), (1, 10_000), (1000, 0), (1000, 10_000)):
            compare(Path(folder), packages, tags, rounds)


if __name__ == "__main__":
    main()
