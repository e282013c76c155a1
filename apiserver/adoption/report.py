"""What a person is told of a plan, line by line. Names come from another server, so nothing in them reaches a terminal raw."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import orjson

from apiserver.adoption.plan import Plan, Remark
from storage.interfaces import Mutation

SHOWN: Final = 50
"""Lines of one kind, unless all are asked for."""
MAX_LINE: Final = 500
"""Characters of one line."""


def lines(plan: Plan, *, everything: bool = False) -> Iterator[str]:
    """Yield what would be taken over, what will differ, and what cannot be taken over and why."""
    for text in _told(plan, None if everything else SHOWN):
        yield _printable(text)


def document(plan: Plan, source: str, *, written: bool) -> str:
    """Return everything of a plan and what became of it, as JSON for programs."""
    told = {
        "source": source,
        "repositories": [
            {"key": one.key, "state": one.state, "alreadyThere": one.there, "packageRevisions": one.names}
            for one in plan.repositories
        ],
        "otherObjects": [_named(mutation) for mutation in plan.outer],
        "differences": _remarked(plan.notes),
        "problems": _remarked(plan.problems),
        "written": written,
    }
    return orjson.dumps(told, option=orjson.OPT_INDENT_2).decode()


def _remarked(remarks: Iterable[Remark]) -> list[dict[str, str]]:
    return [{"about": remark.about, "says": remark.says} for remark in sorted(set(remarks))]


def outcome(plan: Plan) -> str:
    """Return how much a plan takes over, in one sentence."""
    there = sum(one.there for one in plan.repositories)
    taken = f"{len(plan.revisions)} package revisions, {len(plan.registrations)} Repositories and {len(plan.outer)} other objects"
    return f"{taken} to take over; {there} package revisions are there already; {len(plan.problems)} problems"


def _told(plan: Plan, limit: int | None) -> Iterator[str]:
    for one in plan.repositories:
        yield f"Repository {one.key} {one.state}: {len(one.revisions)} package revisions to take over, {one.there} there already"
        yield from _cut([f"  {line}" for line in one.revisions], limit)
    if plan.outer:
        yield "Other objects to take over:"
        yield from _cut([f"  {_named(mutation)}" for mutation in plan.outer], limit)
    yield from _remarks("What differs from the old server:", plan.notes, limit)
    yield from _remarks("What cannot be taken over:", plan.problems, limit)


def _remarks(title: str, remarks: Iterable[Remark], limit: int | None) -> Iterator[str]:
    told = sorted(set(remarks))
    if told:
        yield title
        yield from _cut([f"  {remark.about}: {remark.says}" for remark in told], limit)


def _named(mutation: Mutation) -> str:
    key = mutation.key
    return f"{key.resource} {key.namespace}/{key.name}" if key.namespace else f"{key.resource} {key.name}"


def _cut(told: Sequence[str], limit: int | None) -> Iterator[str]:
    shown = told if limit is None else told[:limit]
    yield from shown
    if len(told) > len(shown):
        yield f"  … and {len(told) - len(shown)} more: --all shows them"


def _printable(text: str) -> str:
    cut = text if len(text) <= MAX_LINE else f"{text[:MAX_LINE]}…"
    return "".join(char if char.isprintable() else "�" for char in cut)
