"""Is a history of one object linearizable: could every operation have happened at one moment between its call and its answer?

The search of Wing and Gong, with Lowe's memory of configurations seen: operations are tried in every order that time allows until
all are explained by the model. The model is one Kubernetes object: absent, or present with a value that no other write has and
a lifecycle. Source: ``users.md`` 7.2 #1.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class State(NamedTuple):
    """The object: ``token`` is what its last write put into it, "" while it does not exist."""

    token: str = ""
    lifecycle: str = ""


ABSENT = State()
NEVER = math.inf


@dataclass(frozen=True, slots=True)
class Operation:
    """One request. ``after`` returns the state that it leaves, or None if its answer cannot be true in the state before.

    ``returned`` is :data:`NEVER` when nobody knows whether the request took effect; it may then happen late, or not at all.
    """

    called: float
    returned: float
    after: Callable[[State], State | None]
    told: str
    """For people: what was asked and answered."""

    @property
    def certain(self) -> bool:
        """Whether its answer is known."""
        return self.returned != NEVER


def read(seen: State) -> Callable[[State], State | None]:
    """A read that was answered with this state."""
    return lambda state: state if state == seen else None


def created(token: str, lifecycle: str = "Draft") -> Callable[[State], State | None]:
    """A create that succeeded."""
    return lambda state: State(token, lifecycle) if state == ABSENT else None


def refused_create(state: State) -> State | None:
    """A create that was told that the object exists."""
    return state if state != ABSENT else None


def written(expected: State, new: State) -> Callable[[State], State | None]:
    """A write with a precondition that succeeded."""
    return lambda state: new if state == expected else None


def refused_write(expected: State) -> Callable[[State], State | None]:
    """A write that was told that the object is another by now, or gone."""
    return lambda state: state if state != expected else None


def violation(history: Sequence[Operation], start: State = ABSENT) -> str | None:
    """Return None if a history is linearizable; else how far it can be explained, for people."""
    operations = sorted(history, key=lambda one: one.called)
    needed = sum(1 << number for number, one in enumerate(operations) if one.certain)
    seen: set[tuple[int, State]] = set()
    stack = [(0, start)]
    longest = 0
    while stack:
        done, state = stack.pop()
        if done & needed == needed:
            return None
        if (done, state) in seen:
            continue
        seen.add((done, state))
        if done.bit_count() > longest.bit_count():
            longest = done
        stack.extend(_steps(operations, done, state))
    return _explain(operations, longest)


def _steps(operations: Sequence[Operation], done: int, state: State) -> list[tuple[int, State]]:
    """Return what may come next: operations called before any other that is left had returned."""
    steps: list[tuple[int, State]] = []
    deadline = NEVER
    for number, one in enumerate(operations):
        if one.called > deadline:
            break
        if done >> number & 1:
            continue
        deadline = min(deadline, one.returned)
        after = one.after(state)
        if after is not None:
            steps.append((done | 1 << number, after))
    return steps[::-1]


def _explain(operations: Sequence[Operation], done: int) -> str:
    left = [one for number, one in enumerate(operations) if not done >> number & 1 and one.certain]
    told = [f"{one.called:.4f}–{one.returned:.4f} {one.told}" for one in left[:8]]
    return f"{done.bit_count()} of {len(operations)} operations can be explained; not with these:\n" + "\n".join(told)
