"""How previews of sets are printed, and what their exit codes are. Source: ``variants.md`` 6.1."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from krm.cli.text_table import text_table
from krm.meta.conditions import find_condition
from krm.variants.sets.preview import ACTIONS, UNCHANGED

Json = dict[str, Any]

EXIT_ERRORS: Final = 2
"""A target has an error, or the set would be stalled."""
EXIT_CHANGES: Final = 3
"""There is something to write, and nothing wrong; only where the user asked to be told."""
_HEADERS: Final = ("ACTION", "NOW", "VARIANT", "DOWNSTREAM", "DETAIL")
_SHOWN: Final = 2
"""Differences that a line has."""
_LONG: Final = 60
"""Characters of a value."""


def exit_code(statuses: Sequence[Json], *, tell_changes: bool) -> int:
    """Return the exit code for what was previewed."""
    if any(has_errors(status) for status in statuses):
        return EXIT_ERRORS
    changes = any((status.get("summary") or {}).get(action) for status in statuses for action in ACTIONS[:-1])
    return EXIT_CHANGES if changes and tell_changes else 0


def has_errors(status: Json) -> bool:
    """Tell whether a target has an error, or the set would be stalled."""
    stalled = find_condition(status.get("conditions"), "Stalled") or {}
    return bool((status.get("summary") or {}).get("failed")) or stalled.get("status") == "True"


def as_text(name: str, status: Json) -> Iterator[str]:
    """Yield the lines that people read of one set."""
    targets = status.get("targets") or ()
    if targets:
        yield from text_table([_HEADERS, *map(_row, targets)])
        yield "\n"
    yield f"{name}: {_summary(status.get('summary') or {})}\n"
    for one in status.get("conditions") or ():
        yield f"{one['type']}={one['status']} {one.get('reason', '')}: {one.get('message', '')}\n"
    for one in status.get("warnings") or ():
        yield f"Warning: {one.get('message', '')}\n"


def _summary(summary: Mapping[str, int]) -> str:
    numbers = [f"{summary.get(action, 0)} to {action}" for action in ACTIONS[:-1]]
    numbers += [f"{summary.get(UNCHANGED, 0)} unchanged", f"{summary.get('failed', 0)} failed"]
    told = f"{', '.join(numbers)}; {summary.get('admitted', 0)} written by the next pass"
    return f"{told}; {summary['omitted']} entries left out" if summary.get("omitted") else told


def _row(target: Json) -> tuple[str, ...]:
    downstream = target.get("downstream") or {}
    where = f"{downstream.get('repo', '')}/{downstream.get('package', '')}"
    action = "error" if "error" in target else target.get("action", "")
    now = {True: "yes", False: "no"}.get(target.get("admitted", ""), "-")
    detail = "; ".join(filter(None, (target.get("error"), target.get("reason"), _differences(target)))) or "-"
    return action, now, target.get("name") or "-", where, detail.replace("\n", " ")


def _differences(target: Json) -> str:
    found = target.get("diff") or ()
    told = [f"{one['path']}: {_value(one, 'old')} -> {_value(one, 'new')}" for one in found[:_SHOWN]]
    return ", ".join(told) + (f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")


def _value(difference: Json, side: str) -> str:
    if side not in difference:
        return "(none)"
    written = json.dumps(difference[side], ensure_ascii=False, sort_keys=True)
    return written if len(written) <= _LONG else f"{written[:_LONG]}…"
