"""The life of one server under a mixed load, with some sudden deaths: what one seed of the kill test stands for.

A seed fixes the load, the setting of ``--push-drafts``, who is killed and when, as far as two runs can be alike. After each
death the server is started again on the same data, and everything it owes is looked for (``soak_invariants``).
"""

import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import soak_invariants as invariants
from eventually import eventually
from git_host import GitHost, Moment, Trap
from porch_client import PorchClient
from porch_process import PorchProcess, ServerDied
from remotes import Remote
from resuming_watcher import Watcher, versions
from soak_client import Conditions, Desk, SoakClient
from soak_ledger import Owed
from soak_repositories import register
from tight_disk import TightDisk

ROUNDS = 4
"""Deaths in one life."""
CLIENTS = 4
REPOSITORIES = ("alpha", "beta")
WORK_SECONDS = (0.3, 1.6)
"""How long the clients work before somebody dies."""
START_SECONDS = (0.3, 3.0)
"""How long it may start until it is killed again; it begins to look at its remotes after about one."""
TROUBLE_SECONDS = (0.2, 0.8)
"""How long they go on beside a dead Git host or a full disk."""
QUIET_SECONDS = 120.0
"""How long a restarted server may take until everything is right; a remote that was down is tried again with pauses."""
GIT_TIMEOUT = "15"
DISK_MEGABYTES = 96
MODES = ("async", "async", "sync", "never", "async")
"""The setting of ``--push-drafts``, by seed."""
TIGHT = 4
"""Which of every five lives has a small disk."""


@dataclass(frozen=True)
class Options:
    """How much is done in one life."""

    rounds: int = ROUNDS
    clients: int = CLIENTS
    mounts: bool = True
    """Whether small disks can be mounted here."""


class Life:
    """One life; use it as a context manager and call :meth:`live`."""

    def __init__(self, seed: int, folder: Path, options: Options) -> None:
        self.seed = seed
        self.restarts: list[float] = []
        """Seconds from each start after a death until the server was ready."""
        self._options = options
        self._dice = random.Random(seed)  # noqa: S311 -- moments to kill at, no secret
        self._mode = MODES[seed % len(MODES)]
        self._folder = folder
        self._host = GitHost(folder / "remotes")
        self._server = PorchProcess(folder / "data", environment=self._environment())
        self._desks = [Desk(number) for number in range(1, options.clients + 1)]
        self._gone: list[Owed] = []
        """What was deleted in rounds before; its numbers are no gaps."""
        self._remotes: dict[str, Remote] = {}
        self._stack = ExitStack()
        self._disk: TightDisk | None = None
        self._watcher: Watcher | None = None
        self._clients: list[SoakClient] = []
        self._unexpected: list[str] = []

    def _environment(self) -> dict[str, str]:
        # A server that never looks at its remotes by itself has only its first sync to get right.
        interval = self._dice.choice(["1", "3600"])
        return {
            "PORCH_SYNC_INTERVAL": interval,
            "PORCH_GIT_TIMEOUT": GIT_TIMEOUT,
            "PORCH_PUSH_DRAFTS": self._mode,
            "PORCH_LOG_LEVEL": "warning",
        }

    def __enter__(self) -> Self:
        try:
            self._begin()
        except BaseException:
            self._stack.close()
            raise
        return self

    def _begin(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._host.root.mkdir()
        self._remotes = {name: self._host.create(name) for name in REPOSITORIES}
        self._stack.callback(self._host.kill)
        self._host.start()
        if self._options.mounts and self.seed % len(MODES) == TIGHT:
            self._start_on_small_disk()
        else:
            self._server.start()
        self._stack.callback(self._end_server)
        porch = self._server.client()
        register(porch, self._remotes)
        porch.close()
        self._watcher = Watcher(lambda: self._server.client(timeout=20))
        self._watcher.start()
        self._stack.callback(self._end_watcher)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start_on_small_disk(self) -> None:
        self._server.start()
        self._server.stop()
        self._disk = TightDisk(self._server.data, DISK_MEGABYTES)
        self._stack.callback(self._disk.close)
        self._server.wrapper = self._disk.wrapper
        self._server.start()

    def _end_server(self) -> None:
        with suppress(AssertionError):
            self._server.kill()

    def _end_watcher(self) -> None:
        assert self._watcher is not None
        self._watcher.stop()
        self._watcher.join(timeout=60)

    # --- living ------------------------------------------------------------------------------------------

    def live(self) -> None:
        """Work and die as often as asked; raises AssertionError for whatever the server did not keep."""
        for number in range(self._options.rounds):
            name, die = self._death(number)
            try:
                die()
                self._recover()
            except AssertionError as error:
                raise AssertionError(f"round {number + 1} ({name}, --push-drafts={self._mode}): {error}") from error

    def done(self) -> Counter[str]:
        """Return how often each kind of write was acknowledged."""
        return sum((Counter(desk.done) for desk in self._desks), Counter())

    def _death(self, number: int) -> tuple[str, Callable[[], None]]:
        everywhere: list[tuple[str, Callable[[], None]]] = [
            ("killed", self._killed),
            ("killed after a push", lambda: self._trapped("after")),
            ("clients hang up", self._hung_up_on),
            ("Git host killed in a push", self._without_host),
            ("killed during a push", lambda: self._trapped("during")),
            ("killed while the Git host is down", self._both),
            ("killed before a push", lambda: self._trapped("before")),
            ("killed again while it starts", self._killed_again),
        ]
        with_disk = [("full disk", self._full_disk), ("killed on a full disk", lambda: self._full_disk(killed=True))]
        deaths = with_disk if self._disk is not None else everywhere
        return deaths[(self.seed * self._options.rounds + number) % len(deaths)]

    def _killed(self) -> None:
        self._work(Conditions())
        self._pause(WORK_SECONDS)
        self._kill()

    def _killed_again(self) -> None:
        self._killed()
        starting = threading.Thread(target=self._start_in_vain, daemon=True)
        starting.start()
        self._pause(START_SECONDS)
        self._server.kill()
        while starting.is_alive():  # a busy machine had not even begun
            starting.join(timeout=1)
            self._server.kill()

    def _start_in_vain(self) -> None:
        with suppress(ServerDied):
            self._server.start()

    def _trapped(self, moment: Moment) -> None:
        self._work(Conditions())
        self._pause((0.1, WORK_SECONDS[1] / 2))
        self._host.arm(Trap(self._server.pid, moment, self._dice.uniform(0, 0.02)))
        self._server.ended_within(WORK_SECONDS[1])
        self._host.disarm()
        self._kill()

    def _hung_up_on(self) -> None:
        self._work(Conditions(hang_up=0.3))
        self._pause((WORK_SECONDS[1], WORK_SECONDS[1]))
        if self._dice.random() < 0.5:
            self._rest()
            self._check()
        self._kill()

    def _without_host(self) -> None:
        self._work(Conditions(excused=frozenset({503})))
        self._pause((0.1, WORK_SECONDS[1] / 2))
        self._host.arm(Trap(0, "during", self._dice.uniform(0, 0.02)))
        self._pause(WORK_SECONDS)
        self._host.disarm()
        self._host.kill()
        self._pause(TROUBLE_SECONDS)
        self._host.start()
        self._pause(TROUBLE_SECONDS)
        self._kill()

    def _both(self) -> None:
        self._work(Conditions(excused=frozenset({503})))
        self._pause(WORK_SECONDS)
        self._host.kill()
        self._pause(TROUBLE_SECONDS)
        self._kill()
        self._start()
        porch = self._server.client()
        invariants.check_owed(invariants.look(porch), self._owed())  # what is acknowledged needs no remote
        porch.close()

    def _full_disk(self, *, killed: bool = False) -> None:
        assert self._disk is not None
        self._work(Conditions(excused=frozenset({503})))
        self._pause(WORK_SECONDS)
        self._disk.fill()
        self._pause(TROUBLE_SECONDS)
        if killed:
            self._kill()
        self._disk.empty()
        if not killed:
            self._pause(WORK_SECONDS)
            self._rest()
            self._check()
            self._kill()

    # --- parts of a round --------------------------------------------------------------------------------

    def _owed(self) -> Sequence[Owed]:
        return list(itertools.chain.from_iterable(desk.owed for desk in self._desks))

    def _work(self, conditions: Conditions) -> None:
        self._clients = [
            SoakClient(desk, self._server.client, REPOSITORIES, random.Random(self._dice.random()), conditions)  # noqa: S311 -- a load, no secret
            for desk in self._desks
        ]
        for client in self._clients:
            client.start()

    def _pause(self, seconds: tuple[float, float]) -> None:
        time.sleep(self._dice.uniform(*seconds))

    def _kill(self) -> None:
        self._server.kill()
        self._rest()

    def _rest(self) -> None:
        """Wait until the clients have ended: their server is gone, or they are told to."""
        for client in self._clients:
            client.stop()
        for client in self._clients:
            assert client.ended_within(60), f"{client.name} still waits for an answer"
        unexpected = [problem for client in self._clients for problem in client.unexpected]
        self._clients = []
        assert not unexpected, "; ".join(unexpected)

    def _start(self) -> None:
        began = time.monotonic()
        self._server.restart()
        self.restarts.append(time.monotonic() - began)

    def _recover(self) -> None:
        self._host.start()
        if not self._server.running:
            self._start()
        self._check()
        self._host.fsck()
        invariants.fsck_clones(self._server.data, self._data, self._server.wrapper)

    @property
    def _data(self) -> Path:
        """The server's data folder as seen from here."""
        return self._disk.seen(self._server.data) if self._disk else self._server.data

    def _check(self) -> None:
        """Wait until everything is as it has to be, then take it for what is owed from now on."""
        porch = self._server.client()
        owed = self._owed()
        try:
            found = eventually(lambda: self._right(porch, owed), timeout=QUIET_SECONDS)
        finally:
            porch.close()
        invariants.settle(found, owed)
        self._gone += [one for one in owed if one.may_be_gone]
        for desk in self._desks:
            desk.owed = [one for one in desk.owed if one.state is not None and one.state.lifecycle]

    def _right(self, porch: PorchClient, owed: Sequence[Owed]) -> dict[str, invariants.Seen]:
        drafts = self._mode != "never"
        found = invariants.look(porch)
        invariants.check_owed(found, owed)
        invariants.check_numbers(found, [*owed, *self._gone])
        invariants.check_latest(found)
        invariants.check_git(found, self._remotes, drafts=drafts)
        invariants.check_shared_history(found, self._remotes)
        invariants.check_outbox(found, self._data, drafts=drafts)
        watcher = self._watcher
        assert watcher is not None
        assert not watcher.violations, watcher.violations
        assert watcher.seen == versions([seen.body for seen in found.values()]), "the watcher saw another state"
        return found
