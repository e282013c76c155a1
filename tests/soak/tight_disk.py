"""A small disk that can be filled and emptied below a server's data folder: a tmpfs in a mount namespace that outlives the server.

It needs neither root nor a loop device, only user namespaces; where those are not allowed, :func:`can_mount` says so.
"""

import subprocess
from pathlib import Path

UNSHARE = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
MOUNT = 'mount -t tmpfs -o size={size}m tmpfs "$0" && cp -a "$1/." "$0" && echo ready && exec cat'
BLOCK = 4096


def can_mount(folder: Path) -> bool:
    """Tell whether a tmpfs can be mounted in namespaces of one's own here."""
    command = [*UNSHARE, 'mount -t tmpfs -o size=1m tmpfs "$0"', str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


class TightDisk:
    """A disk of so many megabytes mounted over ``folder``, with what was there; ``wrapper`` runs a command that sees it."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        source = folder.with_name(f"{folder.name}-before")
        folder.rename(source)
        folder.mkdir()
        # What is seen from outside stays: a client reads its certificates there.
        subprocess.run(["cp", "-a", f"{source}/.", str(folder)], check=True)
        command = [*UNSHARE, MOUNT.format(size=megabytes), str(folder), str(source)]
        self._holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"ready\n", "the small disk could not be mounted"
        self.wrapper = ["nsenter", "--preserve-credentials", "--user", "--mount", f"--target={self._holder.pid}", "--"]
        self._filler = self.seen(folder / "filler")

    def seen(self, path: Path) -> Path:
        """Return where a path on the disk is seen from outside."""
        return Path(f"/proc/{self._holder.pid}/root") / path.relative_to("/")

    def fill(self) -> None:
        """Leave no space."""
        with self._filler.open("ab", buffering=0) as file:
            for size in (1024 * 1024, BLOCK, 1):
                _write_until_full(file, size)

    def empty(self) -> None:
        """Give the space back."""
        self._filler.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the disk and everything on it."""
        self._holder.kill()
        self._holder.communicate(timeout=60)


def _write_until_full(file: object, size: int) -> None:
    try:
        while file.write(b"x" * size):  # type: ignore[attr-defined] # a raw file
            pass
    except OSError:
        return
