"""``make bench``: the yardsticks on a server and Git remotes of its own, and a table of what they say.

``run.py`` takes about forty-five minutes; ``run.py --short`` six, with small figures that prove only that everything runs.
``--write docs/benchmarks.md`` puts the table there; ``--only NAME`` runs one part; ``--check`` fails when a bound is not met.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import cluster
import kube_api
import many_repositories
import measurements as m
import set_rendering
import stress_rows
import variant_sets
import variants
from report import Row, machine, table, write
from session import Session
from testbed import PorchProcess, RemoteServer, address_of, control_plane, register, remotes, uses_acceptance_programs
from toolchain_rows import toolchain_rows

PARTS = (
    "toolchain",
    "kubernetes",
    "growth",
    "parallel",
    "watch",
    "stress",
    "rendering",
    "sync",
    "large",
    "many",
    "variants",
    "sets",
    "cluster",
)


class Bench:
    """One run: its folder, its Git server and its sizes."""

    def __init__(self, folder: Path, git: RemoteServer, sizes: m.Sizes) -> None:
        self._folder = folder
        self._git = git
        self._sizes = sizes
        self._growth: list[m.Window] = []

    def _start(self, name: str) -> PorchProcess:
        server = PorchProcess(
            self._folder / name, environment={"PORCH_SYNC_INTERVAL": "3600", "PORCH_LOG_LEVEL": "warning"}
        )
        server.start()
        return server

    def _register_empty(self, server: PorchProcess, name: str) -> None:
        remotes.empty_remote(self._git.path(name))
        client = server.client()
        register(client, name, self._git.url(name))
        m.wait_until_ready(client, name)
        client.close()

    def growth(self) -> list[Row]:
        """One client and a growing repository; then, on the same server, watchers and memory."""
        server = self._start("growth")
        try:
            self._register_empty(server, "growing")
            self._growth = m.lifecycle(address_of(server), self._git, "growing", self._sizes, "p")
            rows = m.one_client_rows(self._growth)
            count = self._growth[-1].lists["revisions"]
            rows.append(m.memory_row(server, count, 150, "159 MB"))
            return rows
        finally:
            server.stop()

    def watch(self) -> list[Row]:
        """Watchers."""
        server = self._start("growth")
        try:
            if not self._growth:
                self._register_empty(server, "growing")
                m.lifecycle(address_of(server), self._git, "growing", m.SHORT, "w")
            return m.watch_rows(server, self._sizes)
        finally:
            server.stop()

    def stress(self) -> list[Row]:
        """Watchers that lose their connections, and some that do not read."""
        server = self._start("stress")
        try:
            short = self._sizes is m.SHORT
            return stress_rows.stress_rows(server, stress_rows.SHORT if short else stress_rows.FULL)
        finally:
            server.stop()

    def parallel(self) -> list[Row]:
        """Many clients."""
        server = self._start("parallel")
        try:
            self._register_empty(server, "crowded")
            rows = m.parallel_rows(server, self._git, "crowded", self._sizes)
            return rows + self._crowd(server)
        finally:
            server.stop()

    def _crowd(self, server: PorchProcess) -> list[Row]:
        remotes.blueprints_remote(self._git.path("blueprints"))
        client = server.client()
        register(client, "blueprints", self._git.url("blueprints"))
        m.wait_until_ready(client, "blueprints")
        client.close()
        self._register_empty(server, "crowd")
        return m.crowd_rows(server, "blueprints.basens.v1", "crowd", 10 if self._sizes is m.SHORT else 50)

    def rendering(self) -> list[Row]:
        """Reading while the server renders."""
        server = self._start("rendering")
        try:
            self._register_empty(server, "rendered")
            return m.rendering_rows(server, "rendered", self._sizes)
        finally:
            server.stop()

    def toolchain(self) -> list[Row]:
        """Reading, rendering and merging packages, without a server."""
        return toolchain_rows(self._sizes is m.SHORT)

    def kubernetes(self) -> list[Row]:
        """Core objects, beside a real kube-apiserver where one is built."""
        short = self._sizes is m.SHORT
        calls = kube_api.SHORT if short else kube_api.FULL
        load = stress_rows.FAN_OUT_SHORT if short else stress_rows.FAN_OUT_FULL
        server = self._start("kubernetes")
        try:
            ours = Session(server.url, "default", str(server.data / "admin.crt"), str(server.data / "admin.key"))
            with control_plane(self._folder / "control-plane") as real:
                theirs = Session(real.url, "default", *map(str, real.client_certificate)) if real else None
                rows = list(kube_api.rows(kube_api.compare(ours, theirs, calls), calls))
                return [*rows, stress_rows.fan_out_row(server, real, load)]
        finally:
            server.stop()

    def sync(self) -> list[Row]:
        """First syncs of the smaller repository, and of the larger one without a git binary."""
        small, large = (m.make_big(self._git, size) for size in (self._sizes.small, self._sizes.large))
        server = self._start("sync")
        try:
            rows = m.first_sync_rows(server, self._git, small, self._folder, upstream="100 s")
        finally:
            server.stop()
        return rows + m.without_git_rows(self._git, large, self._folder / "without-git")

    def large(self) -> list[Row]:
        """The larger repository: sync, LIST, memory, and the lifecycle in its midst."""
        name = f"big-{self._sizes.large[0]}x{self._sizes.large[1]}"
        if not self._git.path(name).exists():
            m.make_big(self._git, self._sizes.large)
        server = self._start("large")
        try:
            rows = m.first_sync_rows(server, self._git, name, self._folder, upstream="fails after 5 min")
            rows += m.unchanged_rows(server, self._git, name, self._sizes)
            client = server.client()
            count = len(client.revisions())
            client.close()
            rows += m.many_rows(server, count)
            rows.append(m.memory_row(server, count, 250, "–"))
            if self._growth:
                few = m.Sizes(2, 25, self._sizes.pushes, 0, 0, 0, 0, (0, 0), (0, 0), 0, 0)
                midst = m.lifecycle(address_of(server), self._git, name, few, "q")[-1]
                rows += m.flat_rows(self._growth[0], midst, count)
            return rows
        finally:
            server.stop()

    def many(self) -> list[Row]:
        """Up to a thousand repositories with a hundred thousand revisions."""
        stages = many_repositories.SHORT if self._sizes is m.SHORT else many_repositories.FULL
        return many_repositories.rows(self._start, self._git, stages)

    def variants(self) -> list[Row]:
        """A thousand PackageVariants and their controllers."""
        load = variants.SHORT if self._sizes is m.SHORT else variants.FULL
        return variants.rows(self._start, self._git, self._folder, load)

    def sets(self) -> list[Row]:
        """One package fanned out by a PackageVariantSet to a thousand repositories."""
        short = self._sizes is m.SHORT
        rows = set_rendering.rows(set_rendering.SHORT if short else set_rendering.FULL)
        load = variant_sets.SHORT if short else variant_sets.FULL
        return [*rows, *variant_sets.rows(self._start, self._git, self._folder, load)]

    def cluster(self) -> list[Row]:
        """The server behind a real kube-apiserver, on PostgreSQL; nothing where no control plane is built."""
        folder = self._folder / "cluster"
        with control_plane(folder / "control-plane") as real:
            if real is None:
                print("  left out: there is no control plane; make controlplane builds one, which needs Go", flush=True)
                return []
            return cluster.rows(folder, real, self._git, cluster.SHORT if self._sizes is m.SHORT else cluster.FULL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="small figures, under two minutes")
    parser.add_argument("--only", choices=PARTS, action="append", help="run this part only; may be repeated")
    parser.add_argument("--write", type=Path, help="put the table into this document")
    parser.add_argument("--check", action="store_true", help="exit 1 when a bound is not met")
    options = parser.parse_args()
    began = time.monotonic()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="porch-bench-") as name:
        folder = Path(name)
        (folder / "remotes").mkdir()
        with RemoteServer(folder / "remotes") as git:
            bench = Bench(folder, git, m.SHORT if options.short else m.FULL)
            for part in PARTS:
                if not options.only or part in options.only:
                    print(f"== {part}", flush=True)
                    measure: Callable[[], list[Row]] = getattr(bench, part)
                    rows += measure()
    programs = "the acceptance's programs" if uses_acceptance_programs() else "the programs of bench/"
    notes = [f"Load by {programs}; the run took {time.monotonic() - began:.0f} s."]
    print(f"\n{machine()}\n\n{table(rows)}\n\n{notes[0]}")
    if options.write:
        write(options.write, rows, notes)
    missed = [row.what for row in rows if row.met is False]
    if missed:
        print("not met: " + "; ".join(missed))
    return 1 if options.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
