"""What an adoption would do: every write of it, and everything that a person should know before.

A plan is values. Its mutations are compare-and-swap on the state that was read, so that writing it later either does exactly
what was shown or nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from storage.interfaces import Mutation
from storage.outbox import OutboxChange

NEW: Final = "to be registered"
"""What is said of a Repository that the new server does not have."""


@dataclass(frozen=True, slots=True, order=True)
class Remark:
    """One sentence about one object: ``namespace/name``, with its kind where that is no package revision."""

    about: str
    says: str


@dataclass(slots=True)
class RepositoryPlan:
    """What becomes of one Repository and its package revisions."""

    key: str
    """``namespace/name``."""
    state: str = NEW
    revisions: list[str] = field(default_factory=list)
    """A line for each package revision that is written."""
    names: list[str] = field(default_factory=list)
    """Their names, in order."""
    there: int = 0
    """Package revisions that are there already as they should be."""

    @property
    def namespace(self) -> str:
        """The namespace of the Repository and its package revisions."""
        return self.key.partition("/")[0]


@dataclass(slots=True)
class Plan:
    """Everything that is taken over at once. ``outer`` comes before the package revisions, ``repositories`` after them."""

    outer: list[Mutation] = field(default_factory=list)
    revisions: list[Mutation] = field(default_factory=list)
    registrations: list[Mutation] = field(default_factory=list)
    outbox: list[OutboxChange] = field(default_factory=list)
    repositories: list[RepositoryPlan] = field(default_factory=list)
    notes: list[Remark] = field(default_factory=list)
    """What will differ from the old server, and does no harm."""
    problems: list[Remark] = field(default_factory=list)
    """What cannot be taken over as it is."""
    states: dict[str, str] = field(default_factory=dict)
    """What the old server showed of each Repository (``namespace/name``), as a digest; see :mod:`freeze`."""

    @property
    def mutations(self) -> list[Mutation]:
        """Every write in the order in which watchers are to see it: nothing before what it depends on."""
        return [*self.outer, *self.revisions, *self.registrations]

    def note(self, about: str, says: str) -> None:
        """Add a difference that does no harm."""
        self.notes.append(Remark(about, says))

    def refuse(self, about: str, says: Iterable[str] | str) -> None:
        """Add what cannot be taken over, and why."""
        for one in [says] if isinstance(says, str) else says:
            self.problems.append(Remark(about, one))
