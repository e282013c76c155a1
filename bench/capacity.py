"""How much one package revision, one draft and one ConfigMap take, on the disk and in memory (``make capacity``).

A server of its own is loaded in stages; what a stage adds, divided by what it made, is the figure. Memory is the resident memory of
the server's process after a restart, where there is nothing but what it keeps; it is told for drafts before one, too, since those are
made by a server that runs. ``--short`` takes small stages, which prove that it runs and no more. The table is what
``docs/reference/capacity.md`` shows.
"""

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from session import CONFIG_MAP, Session, new_revision
from testbed import PorchProcess, register, remotes, repository_path, resident_megabytes, yardstick

PATIENCE: Final = 600.0
"""Seconds that a sync may take before the run is given up."""
MEGA: Final = 1024 * 1024
NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class State:
    """What a server takes at one moment: MB of memory, bytes of database and clones, processor seconds until it was ready."""

    memory: float
    database: int
    clones: int
    start: float


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage made, and the server before and after it."""

    what: str
    made: int
    before: State
    after: State

    def row(self) -> list[str]:
        """Return the line of the table: kilobytes per object, and the server as it is then."""
        memory = (self.after.memory - self.before.memory) * 1024 / self.made
        database = (self.after.database - self.before.database) / self.made / 1024
        clones = (self.after.clones - self.before.clones) / self.made / 1024
        figures = (
            f"{memory:.1f}",
            f"{database:.1f}",
            f"{clones:.1f}",
            f"{self.after.memory:.0f}",
            f"{self.after.start:.1f}",
        )
        return [self.what, f"{self.made:,}", *figures]


class Loaded:
    """A server that is loaded stage by stage."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        # Drafts stay in the database, where they take most.
        self.server = PorchProcess(folder / "data", environment={"PORCH_PUSH_DRAFTS": "never"})
        self.server.start()
        self.stages: list[Stage] = []
        self.state = self._measured()

    def stage(self, what: str, made: int, work: Callable[[], None]) -> None:
        """Do something, and note what it added."""
        print(f"{what}: {made}", file=sys.stderr)
        work()
        before, self.state = self.state, self._measured()
        self.stages.append(Stage(what, made, before, self.state))

    def _measured(self) -> State:
        """Restart the server, which also makes the database's journal part of its file, and look at it when it rests."""
        self.server.stop()
        self.server.start()
        start = _processor_seconds(self.server.pid)
        self._wait_until_synced()
        time.sleep(3)  # what a start needed is given back to the system within two seconds
        data = self.server.data
        return State(
            resident_megabytes(self.server.pid),
            _size(data.glob("porch.db*")),
            _size((data / "clones").rglob("*")),
            start,
        )

    def _wait_until_synced(self) -> None:
        client = self.server.client()
        answer = client.request("GET", repository_path(client, "")).object
        for item in answer["items"]:
            self.wait_until_ready(item["metadata"]["name"])

    def wait_until_ready(self, name: str) -> None:
        """Wait until a repository was read."""
        client, deadline = self.server.client(), time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            status = client.request("GET", repository_path(client, name)).object.get("status") or {}
            if any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ()):
                return
            time.sleep(0.2)
        raise RuntimeError(f"{name} was not ready after {PATIENCE} s")

    def session(self) -> Session:
        """Return a connection."""
        data = self.server.data
        return Session(self.server.url, NAMESPACE, str(data / "admin.crt"), str(data / "admin.key"))

    def register(self, name: str, packages: int, revisions: int) -> None:
        """Register a remote with so many published revisions."""
        path = self._folder / f"{name}.git"
        arguments = str(path), str(packages), str(revisions)
        subprocess.run([*yardstick("make_big_repo.py", "big_repository.py"), *arguments], check=True, stdout=sys.stderr)
        register(self.server.client(), name, path.as_uri())
        self.wait_until_ready(name)

    def draft(self, number: int) -> None:
        """Make drafts of a Kptfile, a README and a package context, as init does."""
        session = self.session()
        for one in range(number):
            session.call("POST", "packagerevisions", new_revision("drafts", f"draft{one:05d}"))

    def save(self, number: int) -> None:
        """Save one more file in each of those drafts, which is one more commit that is not pushed."""
        session = self.session()
        for one in range(number):
            path = f"packagerevisionresources/drafts.draft{one:05d}.v1"
            body = session.call("GET", path)
            body["spec"]["resources"]["settings.yaml"] = CONFIG_MAP
            session.call("PUT", path, body)

    def configure(self, number: int) -> None:
        """Make ConfigMaps of 1 KB."""
        session = self.session()
        for one in range(number):
            body = {"metadata": {"name": f"settings-{one:05d}"}, "data": {"text": "x" * 1024}}
            session.call("POST", f"/api/v1/namespaces/{NAMESPACE}/configmaps", body)


def _processor_seconds(pid: int) -> float:
    """Return the processor time of a process so far, which, unlike time, is the same on a busy machine."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _size(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths if path.is_file())


def table(stages: Sequence[Stage]) -> str:
    """Return the figures as the document shows them."""
    head = [
        "what",
        "made",
        "memory, KB each",
        "database, KB each",
        "clones, KB each",
        "server then, MB",
        "start, s of processor",
    ]
    rows = [head, ["---"] * len(head), *[stage.row() for stage in stages]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="small stages")
    short = parser.parse_args().short
    packages, drafts, maps = (20, 20, 50) if short else (1000, 1000, 10_000)
    with tempfile.TemporaryDirectory(prefix="porch-capacity-") as name:
        folder = Path(name)
        loaded = Loaded(folder)
        try:
            empty = loaded.state
            loaded.stage(
                "published revisions, 10 of a package", packages * 10, lambda: loaded.register("big", packages, 10)
            )
            remotes.empty_remote(folder / "drafts.git")
            register(loaded.server.client(), "drafts", (folder / "drafts.git").as_uri())
            loaded.wait_until_ready("drafts")
            loaded.stage("drafts that no remote has", drafts, lambda: loaded.draft(drafts))
            loaded.stage("one save more of each", drafts, lambda: loaded.save(drafts))
            loaded.stage("ConfigMaps of 1 KB", maps, lambda: loaded.configure(maps))
        finally:
            loaded.server.stop()
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    print(
        f"{when}, Python {platform.python_version()}; empty server: {empty.memory:.0f} MB, start {empty.start:.1f} s of processor\n"
    )
    print(table(loaded.stages))


if __name__ == "__main__":
    main()
