"""How much one package revision, one draft and one ConfigMap take, on the disk and in memory (``make capacity``).

A server of its own is loaded in stages; what a stage adds, divided by what it made, is the figure. Memory is the resident memory of
the server's process after a restart, where there is nothing but what it keeps. So are the same stages on PostgreSQL, there with a
second replica; controllers beside PackageVariants; watches that rest; and a server behind a real kube-apiserver (``make controlplane``).
``--only`` takes some of these parts. ``--short`` takes small stages, which prove that it runs and no more. The tables are what
``docs/reference/capacity.md`` shows.
"""

import argparse
import asyncio
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import asyncpg
import capacity_controllers
from session import CONFIG_MAP, Session, new_revision
from testbed import (
    PorchClient,
    PorchProcess,
    control_plane,
    register,
    remotes,
    repository_path,
    resident_megabytes,
    yardstick,
)

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

    def __init__(self, folder: Path, server: PorchProcess, url: str = "") -> None:
        self._folder = folder
        self._url = url
        self.server = server
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
            asyncio.run(_postgres_size(self._url)) if self._url else _size(data.glob("porch.db*")),
            _size((data / "clones").rglob("*")),
            start,
        )

    def _wait_until_synced(self) -> None:
        with closing(self.server.client()) as client:
            answer = client.request("GET", repository_path(client, "")).object
        for item in answer["items"]:
            self.wait_until_ready(item["metadata"]["name"])

    def wait_until_ready(self, name: str) -> None:
        """Wait until a repository was read."""
        deadline = time.monotonic() + PATIENCE
        with closing(self.server.client()) as client:
            while time.monotonic() < deadline:
                if _is_ready(client, name):
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


def _is_ready(client: PorchClient, name: str) -> bool:
    answer = client.request("GET", repository_path(client, name))
    if answer.code != 200:  # a server that is busy may ask to come again
        return False
    status = answer.object.get("status") or {}
    return any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ())


async def _postgres_size(url: str) -> int:
    """Return the bytes of a database as after the server's own vacuum."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("VACUUM")
        return int(await connection.fetchval("SELECT pg_database_size(current_database())"))
    finally:
        await connection.close()


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


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of each is made."""

    packages: int
    drafts: int
    maps: int
    variants: int
    watches: int


FULL: Final = Sizes(packages=1000, drafts=1000, maps=10_000, variants=500, watches=1000)
SHORT: Final = Sizes(packages=20, drafts=20, maps=50, variants=5, watches=20)
# Drafts stay in the database, where they take most.
KEPT: Final = {"PORCH_PUSH_DRAFTS": "never"}


def _show(title: str, empty: State, stages: Sequence[Stage]) -> None:
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    print(f"\n{title}: {when}, Python {platform.python_version()}")
    print(
        f"empty server: {empty.memory:.0f} MB, {empty.database / MEGA:.1f} MB, start {empty.start:.1f} s of processor\n"
    )
    print(table(stages), flush=True)


def _drafts(loaded: Loaded, folder: Path) -> None:
    remotes.empty_remote(folder / "drafts.git")
    with closing(loaded.server.client()) as client:
        register(client, "drafts", (folder / "drafts.git").as_uri())
    loaded.wait_until_ready("drafts")


def on_sqlite(folder: Path, sizes: Sizes) -> None:
    """Measure every kind of thing."""
    loaded = Loaded(folder, PorchProcess(folder / "data", environment=KEPT))
    try:
        empty = loaded.state
        packages, drafts, maps = sizes.packages, sizes.drafts, sizes.maps
        loaded.stage(
            "published revisions, 10 of a package", packages * 10, lambda: loaded.register("big", packages, 10)
        )
        _drafts(loaded, folder)
        loaded.stage("drafts that no remote has", drafts, lambda: loaded.draft(drafts))
        loaded.stage("one save more of each", drafts, lambda: loaded.save(drafts))
        loaded.stage("ConfigMaps of 1 KB", maps, lambda: loaded.configure(maps))
        _show("SQLite", empty, loaded.stages)
    finally:
        loaded.server.stop()


def on_postgres(folder: Path, sizes: Sizes) -> None:
    """Measure what takes most, and a second replica beside it."""
    # The tests' folder is on the path once testbed is imported.
    from embedded_postgres import OwnPostgres, new_postgres

    postgres = OwnPostgres(folder / "pg")
    url = new_postgres(postgres.url)
    loaded = Loaded(folder, PorchProcess(folder / "data", environment={**KEPT, "PORCH_DATABASE_URL": url}), url)
    try:
        empty, few = loaded.state, sizes.packages // 10
        loaded.stage("published revisions, 10 of a package", few * 10, lambda: loaded.register("few", few, 10))
        more = sizes.packages - few
        loaded.stage("nine times as many more", more * 10, lambda: loaded.register("big", more, 10))
        _drafts(loaded, folder)
        loaded.stage("drafts that no remote has", sizes.drafts, lambda: loaded.draft(sizes.drafts))
        _show("PostgreSQL", empty, loaded.stages)
        second = PorchProcess(folder / "second", environment={**KEPT, "PORCH_DATABASE_URL": url})
        second.data.mkdir()
        for path in loaded.server.data.glob("*.*"):
            shutil.copy(path, second.data / path.name)
        second.start()
        time.sleep(10)
        print(f"second replica beside it, its clones included: {resident_megabytes(second.pid):.0f} MB", flush=True)
        second.stop()
    finally:
        loaded.server.stop()
        postgres.end()


def of_controllers(folder: Path, sizes: Sizes) -> None:
    """Measure controllers beside variants, then watches that rest."""
    loaded = Loaded(folder, PorchProcess(folder / "data"))
    try:
        loaded.register("blueprints", 1, 1)
        _drafts(loaded, folder)
        found = capacity_controllers.measured(loaded.server, folder, "blueprints", PACKAGE, "drafts", sizes.variants)
        print(
            f"\ncontrollers: {found.none:.0f} MB without variants, {found.all:.0f} MB with {found.number}: {found.each:.1f} KB each"
        )
        loaded.server.restart()
        time.sleep(5)
        before = resident_megabytes(loaded.server.pid)
        with ExitStack() as kept:
            for _ in range(sizes.watches):
                kept.enter_context(closing(_watch(loaded.server)))
            time.sleep(5)
            added = resident_megabytes(loaded.server.pid) - before
        print(f"{sizes.watches} watches over TLS that rest: {added * 1024 / sizes.watches:.1f} KB each", flush=True)
    finally:
        loaded.server.stop()


PACKAGE: Final = "pkg00000"
"""The first package of a big repository."""


def _watch(server: PorchProcess) -> PorchClient:
    """Begin a watch that begins now, and do not read it."""
    client = server.client()
    client.send("GET", "/api/v1/namespaces/default/configmaps?watch=true&resourceVersion=0")
    return client


def in_a_cluster(folder: Path, sizes: Sizes) -> None:
    """Measure a server behind a real kube-apiserver."""
    # The tests' folder is on the path once testbed is imported.
    from aggregated_process import AggregatedProcess, install_rights
    from embedded_postgres import OwnPostgres, new_postgres

    with control_plane(folder / "cluster") as cluster:
        if cluster is None:
            print("\nno control plane is built here: make controlplane")
            return
        install_rights(cluster)
        postgres = OwnPostgres(folder / "pg")
        url = new_postgres(postgres.url)
        loaded = Loaded(
            folder, AggregatedProcess(cluster, folder / "data", environment={"PORCH_DATABASE_URL": url}), url
        )
        try:
            empty, packages = loaded.state, sizes.packages
            loaded.stage(
                "published revisions, 10 of a package", packages * 10, lambda: loaded.register("big", packages, 10)
            )
            _show("Behind a kube-apiserver, on PostgreSQL", empty, loaded.stages)
        finally:
            loaded.server.stop()
            postgres.end()


PARTS: Final[dict[str, Callable[[Path, Sizes], None]]] = {
    "sqlite": on_sqlite,
    "postgres": on_postgres,
    "controllers": of_controllers,
    "cluster": in_a_cluster,
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="small stages")
    parser.add_argument("--only", choices=PARTS, action="append", help="a part; may be repeated")
    arguments = parser.parse_args()
    for part in arguments.only or PARTS:
        with tempfile.TemporaryDirectory(prefix="porch-capacity-") as name:
            PARTS[part](Path(name), SHORT if arguments.short else FULL)


if __name__ == "__main__":
    main()
