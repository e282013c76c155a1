"""The bare push that approvals are held against: ``git push --atomic`` of one commit and one tag.

It goes to a copy of the remote that Porch works on, made at the moment of measuring: as many refs, in the same files,
behind the same Git server.
"""

import shutil
import tempfile
import time
from pathlib import Path

from testbed import RemoteServer, remotes


class Twin:
    """A copy of a remote, and a clone to push to it from."""

    def __init__(self, server: RemoteServer, name: str) -> None:
        self._name = f"{name}-twin"
        self._target = server.path(self._name)
        shutil.copytree(server.path(name), self._target)
        self._url = server.url(self._name, user=True)
        self._clone = Path(tempfile.mkdtemp(prefix="twin-"))
        remotes.git("init", "--quiet", "--bare", cwd=self._clone)
        remotes.git("fetch", "--quiet", "--no-tags", str(self._target), "main:main", cwd=self._clone)
        self._pushed = 0

    def push(self) -> float:
        """Push one commit and one tag; return the milliseconds that git push took."""
        self._pushed += 1
        message = f"bare push {self._pushed}"
        commit = remotes.git("commit-tree", "main^{tree}", "-p", "main", "-m", message, cwd=self._clone)
        refs = [f"{commit}:refs/heads/main", f"{commit}:refs/tags/bare/v{self._pushed}"]
        started = time.perf_counter()
        remotes.git("push", "--quiet", "--atomic", self._url, *refs, cwd=self._clone)
        took = (time.perf_counter() - started) * 1000
        remotes.git("update-ref", "refs/heads/main", commit, cwd=self._clone)
        return took

    def close(self) -> None:
        """Remove the copy and the clone."""
        shutil.rmtree(self._target, ignore_errors=True)
        shutil.rmtree(self._clone, ignore_errors=True)


def bare_pushes(server: RemoteServer, name: str, count: int) -> list[float]:
    """Return the milliseconds of ``count`` pushes to a fresh copy of a remote; one more warms up."""
    twin = Twin(server, name)
    try:
        twin.push()
        return [twin.push() for _ in range(count)]
    finally:
        twin.close()
