"""A server under a mixed load for minutes: nothing unexpected is answered, and it does not grow.

Clients keep about as many revisions as they began with, so what grows is the server's own: memory, files, threads.
"""

import random
import statistics
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import soak_invariants as invariants
from eventually import eventually
from git_host import GitHost
from porch_process import PorchProcess
from remotes import Remote
from resuming_watcher import Watcher, versions
from soak_client import Conditions, Desk, SoakClient
from soak_readers import Blunderer, Caller, Reader
from soak_repositories import register

SAMPLE_SECONDS = 2.0
WATCHERS = 4
QUIET_SECONDS = 120.0


@dataclass(frozen=True)
class Options:
    """How much, and for how long."""

    seconds: float
    clients: int = 16
    repositories: int = 20
    pause: float = 0.25
    """Seconds that each client thinks between two writes, on average."""
    warm_up: float = 0.25
    """The part of the time after which memory is compared."""


@dataclass(frozen=True)
class Sample:
    """The server process at one moment; ``memory`` in megabytes."""

    seconds: float
    memory: float
    files: int
    threads: int


@dataclass
class Report:
    """What happened."""

    options: Options
    samples: list[Sample] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)
    events: int = 0
    unexpected: list[str] = field(default_factory=list)

    def windows(self) -> tuple[Sequence[Sample], Sequence[Sample]]:
        """Return the samples of two equally long times: after the warm-up, and at the end."""
        ran = self.samples[-1].seconds  # shorter than was wanted when something went wrong
        warm = [sample for sample in self.samples if sample.seconds >= ran * self.options.warm_up]
        part = max(1, len(warm) // 4)
        return warm[:part], warm[-part:]

    @property
    def growth(self) -> float:
        """By which part of itself the memory grew after the warm-up."""
        early, late = (statistics.median(sample.memory for sample in window) for window in self.windows())
        return late / early - 1

    def grown(self, most_memory: float) -> list[str]:
        """Return what grew after the warm-up; ``most_memory`` is the part by which memory may."""
        early, late = self.windows()
        files, threads = (
            [statistics.median(getattr(one, what) for one in window) for window in (early, late)]
            for what in ("files", "threads")
        )
        grown = ["memory"] if self.growth > most_memory else []
        # A clone has some packs more or less open, a push has a thread: medians, and room for chance.
        grown += ["open files"] if files[1] > files[0] * 1.15 + 20 else []
        return grown + (["threads"] if threads[1] > threads[0] + 8 else [])

    def table(self) -> str:
        """Return a table: the process minute by minute, and what was done."""
        lines = ["| seconds | MB resident | open files | threads |", "| ---: | ---: | ---: | ---: |"]
        step = max(1, len(self.samples) // 20)
        lines += [
            f"| {one.seconds:.0f} | {one.memory:.0f} | {one.files} | {one.threads} |" for one in self.samples[::step]
        ]
        writes = sum(self.done.values())
        said = ", ".join(f"{count} × {what}" for what, count in sorted(self.done.items()))
        others = ", ".join(f"{count} by {who}" for who, count in sorted(self.requests.items()))
        lines += [
            "",
            f"{writes} writes acknowledged, {writes / self.options.seconds:.1f}/s: {said}",
            f"other requests: {others}; {self.events} watch events",
            f"memory after the warm-up: {self.growth:+.1%}; unexpected answers: {len(self.unexpected)}",
        ]
        return "\n".join(lines)


def endure(folder: Path, options: Options) -> Report:
    """Put a new server below ``folder`` under the load; return what happened.

    Raises:
        AssertionError: after the load something is not as the clients' ledgers say, or object and Git differ.
    """
    report = Report(options)
    with _server(folder, options.repositories) as (server, remotes):
        desks = [Desk(number) for number in range(1, options.clients + 1)]
        load = _Load(server, desks, sorted(remotes), options, report)
        load.run()
        porch = server.client()
        owed = [one for desk in desks for one in desk.owed]

        def right() -> None:
            found = invariants.look(porch)
            invariants.check_owed(found, owed)
            invariants.check_latest(found)
            invariants.check_git(found, remotes, drafts=True)
            invariants.check_shared_history(found, remotes)
            invariants.check_outbox(found, server.data, drafts=True)
            load.check_watchers(versions([seen.body for seen in found.values()]))

        eventually(right, timeout=QUIET_SECONDS)
        load.end_watchers()
        porch.close()
        invariants.fsck_clones(server.data, server.data)
    return report


@contextmanager
def _server(folder: Path, count: int) -> Iterator[tuple[PorchProcess, dict[str, Remote]]]:
    """Run a server with so many registered repositories, each with a published package."""
    host = GitHost(folder / "remotes")
    host.root.mkdir(parents=True)
    remotes = {f"r{number:02}": host.create(f"r{number:02}") for number in range(1, count + 1)}
    server = PorchProcess(folder / "data", environment={"PORCH_SYNC_INTERVAL": "10", "PORCH_LOG_LEVEL": "error"})
    with ExitStack() as stack:
        stack.callback(host.kill)
        host.start()
        stack.callback(server.stop)
        server.start()
        porch = server.client()
        register(porch, remotes)
        porch.close()
        yield server, remotes


class _Load:
    """Everybody who works, reads, watches and errs at the same time."""

    def __init__(
        self, server: PorchProcess, desks: Sequence[Desk], repositories: Sequence[str], options: Options, report: Report
    ) -> None:
        self._server = server
        self._desks = desks
        self._report = report
        conditions = Conditions(pause=options.pause, clears=True)
        self._clients = [
            SoakClient(desk, server.client, repositories, random.Random(desk.number), conditions)  # noqa: S311 -- a load, no secret
            for desk in desks
        ]
        self._callers: list[Caller] = [
            Reader(server.client, 1, repositories),
            Reader(server.client, 2, repositories),
            Blunderer(server.client, 3, repositories),
        ]
        self._watchers = [Watcher(server.client) for _ in range(WATCHERS)]

    def run(self) -> None:
        """Work for the time that is wanted, and look at the process meanwhile."""
        for watcher in self._watchers:
            watcher.start()
        for client in self._clients:
            client.start()
        for caller in self._callers:
            caller.start()
        began = time.monotonic()
        while (seconds := time.monotonic() - began) < self._report.options.seconds:
            self._report.samples.append(sample(self._server.pid, seconds))
            if self._failed():
                break
            time.sleep(SAMPLE_SECONDS)
        for client in self._clients:
            client.stop()
        for client in self._clients:
            if not client.ended_within(60):
                self._report.unexpected.append(f"{client.name} still waits for an answer")
        for caller in self._callers:
            caller.stop()
            self._report.requests[type(caller).__name__.lower()] += caller.sent
        self._report.unexpected += self._failed()
        self._report.done = sum((Counter(desk.done) for desk in self._desks), Counter())

    def _failed(self) -> list[str]:
        by_clients = [problem for client in self._clients for problem in client.unexpected]
        return by_clients + [problem for caller in self._callers for problem in caller.unexpected]

    def check_watchers(self, expected: dict[str, str]) -> None:
        """Every watcher has seen one history, and its end is what is there."""
        for watcher in self._watchers:
            assert not watcher.violations, watcher.violations
            assert watcher.seen == expected, "a watcher saw another state"

    def end_watchers(self) -> None:
        """Stop watching."""
        for watcher in self._watchers:
            watcher.stop()
        for watcher in self._watchers:
            watcher.join(timeout=60)
            self._report.events += watcher.events


def sample(pid: int, seconds: float) -> Sample:
    """Look at a process."""
    proc = Path(f"/proc/{pid}")
    status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    memory = int(status["VmRSS"].split()[0]) / 1024
    return Sample(seconds, memory, len(list((proc / "fd").iterdir())), int(status["Threads"]))
