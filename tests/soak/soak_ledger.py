"""What the server owes its clients: for each package revision the states it may be in after what was sent and answered.

An acknowledged write leaves one state, a refused one the state before it; a write whose answer never came leaves both
until somebody looks. Each revision is written by one client only, so its ledger is never in doubt about anything else.
"""

from dataclasses import dataclass, field, replace

COUNTER = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: counter\ndata:\n  saved: "{0}"\n  padding: "{1}"\n  again: "{0}"\n'
"""A file that says its number at both ends: a torn write would not."""
PAIR = ("counter.yaml", "deep/er/second.yaml")
"""Two files that are always saved together with the same number: half a save would differ."""
MARK = "soak.porch.test/mark"
"""A label: metadata that lives beside Git."""


@dataclass(frozen=True)
class State:
    """One state of a revision: its lifecycle ("" when it is not there), the number last saved, its mark."""

    lifecycle: str = ""
    saved: int = 0
    mark: str = ""

    @property
    def files(self) -> dict[str, str]:
        """The files that were saved with the number."""
        padding = "x" * (self.saved * 97 % 4000)
        return dict.fromkeys(PAIR, COUNTER.format(self.saved, padding)) if self.saved else {}


@dataclass
class Owed:
    """What is owed about one package revision; ``shared`` packages are approved into by several clients."""

    repository: str
    package: str
    workspace: str
    shared: bool = False
    possible: set[State] = field(default_factory=lambda: {State()})
    number: int = 0
    """Its revision number, as soon as it was seen published."""

    @property
    def name(self) -> str:
        """The object's name."""
        return f"{self.repository}.{self.package}.{self.workspace}"

    @property
    def place(self) -> tuple[str, str]:
        """Repository and package."""
        return self.repository, self.package

    @property
    def state(self) -> State | None:
        """The state, unless more than one is possible."""
        return next(iter(self.possible)) if len(self.possible) == 1 else None

    @property
    def may_be_gone(self) -> bool:
        """Whether it was published, and deleted as far as anybody knows."""
        return self.number > 0 and any(not state.lifecycle for state in self.possible)

    def sent(self, after: State) -> None:
        """A write was sent that leads to ``after``."""
        self.possible.add(after)

    def acknowledged(self, after: State) -> None:
        """The write was answered with success."""
        self.possible = {after}

    def refused(self, after: State, before: State) -> None:
        """The write was answered with a refusal that changes nothing."""
        self.possible.discard(after)
        self.possible.add(before)

    def found(self, state: State) -> None:
        """Somebody looked: it is this one of the possible states.

        Raises:
            AssertionError: it is none of them.
        """
        assert state in self.possible, f"{self.name} is {state}, and owed was one of {sorted_states(self.possible)}"
        self.possible = {state}


def moved(state: State, lifecycle: str) -> State:
    """Return the state after a change of lifecycle."""
    return replace(state, lifecycle=lifecycle)


def sorted_states(states: set[State]) -> list[State]:
    """Return states in an order that two runs share."""
    return sorted(states, key=lambda state: (state.lifecycle, state.saved, state.mark))
