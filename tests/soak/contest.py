"""Three processes of controllers contend for one Lease while they are killed, stopped, continued and told to end at random.

What is owed in the end is the same as if nothing had happened: every variant Ready, one draft each, with what was asked for last.
"""

import random
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from contender import QUICK, Contender, add_variants, all_are_done, context_is
from eventually import eventually
from variant_place import Place

PROCESSES = 3
ACTS = ("kill", "stop", "stop", "continue", "continue", "end", "edit", "edit")
PAUSES = (0.2, 2.5)
"""Seconds between two acts: shorter and longer than a Lease takes to run out, together."""
EDITED = 10
"""Variants that are edited at a time."""
PATIENCE = 120.0
LEAST = 6
"""Acts of any contest: on a busy machine one can take as long as ten."""


@dataclass
class Contest:
    """One contest; ``acts`` counts what was done to whom."""

    place: Place
    folder: Path
    seed: int
    variants: int = 40
    acts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Begin with nobody."""
        self._random = random.Random(self.seed)  # noqa: S311 # repeatable, not secret
        self._all: list[Contender] = []
        self._running: list[Contender] = []
        self._stopped: list[Contender] = []
        self._names = [f"v{number}" for number in range(self.variants)]

    def run(self, seconds: float) -> None:
        """Do it for so long, let everybody continue, and see that nothing is left undone, nor done twice."""
        try:
            for _ in range(PROCESSES):
                self._start()
            add_variants(self.place, self._names)
            end = time.monotonic() + seconds
            while time.monotonic() < end or self.acts.total() < LEAST:
                time.sleep(self._random.uniform(*PAUSES))
                self._act(self._random.choice(ACTS))
            self._finish()
        finally:
            for one in self._all:
                one.kill()

    def _act(self, act: str) -> None:
        self.acts[act] += 1
        if act == "edit":
            self._edit(self._random.sample(self._names, min(EDITED, len(self._names))))
        elif act == "continue" and self._stopped:
            self._running.append(self._one_of(self._stopped))
            self._running[-1].signal(signal.SIGCONT)
        elif act == "stop" and len(self._running) > 1:
            self._stopped.append(self._one_of(self._running))
            self._stopped[-1].signal(signal.SIGSTOP)
        elif act in {"kill", "end"}:
            self._one_of(self._running).signal(signal.SIGKILL if act == "kill" else signal.SIGTERM)
            self._start()

    def _finish(self) -> None:
        """Edit every variant once more, and see that all of it arrives."""
        self._edit(self._names)
        for one in self._stopped:
            one.signal(signal.SIGCONT)
        wanted = f'edit: "{self.acts["edits"]}"'
        for name in self._names:
            eventually(lambda name=name: context_is(self.place, name, wanted), timeout=PATIENCE)  # type: ignore[misc]
        all_are_done(self.place, self._names, PATIENCE)

    def _edit(self, names: list[str]) -> None:
        self.acts["edits"] += 1
        for name in names:
            self.place.change_variant(name, packageContext={"data": {"edit": str(self.acts["edits"])}})

    def _start(self) -> None:
        one = Contender(self.place, f"contender-{len(self._all)}", self.folder, QUICK)
        one.start()
        self._all.append(one)
        self._running.append(one)

    def _one_of(self, contenders: list[Contender]) -> Contender:
        return contenders.pop(self._random.randrange(len(contenders)))
