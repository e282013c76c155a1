"""How a diagnosis is printed: a line a finding for people, JSON for programs."""

import json
from collections.abc import Iterator
from typing import Final

from krm.cli.doctor.finding import Diagnosis, Finding

EXIT_HEALTHY: Final = 0
EXIT_FINDINGS: Final = 1
EXIT_NOT_LOOKED: Final = 2
"""Something could not be looked at, so that nobody knows."""
MOST_CHARACTERS: Final = 400
"""Of what is wrong, as people are shown it; JSON has all of it."""


def exit_code(diagnosis: Diagnosis) -> int:
    """Return what the process ends with."""
    if diagnosis.not_looked_at:
        return EXIT_NOT_LOOKED
    return EXIT_HEALTHY if diagnosis.is_healthy else EXIT_FINDINGS


def lines(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the lines for people."""
    for finding in diagnosis.sorted:
        yield _line(finding)
    for check, number in sorted(diagnosis.left_out.items()):
        yield f"and {number} more of {check}: -n NAMESPACE looks at one namespace only"
    for one in diagnosis.not_looked_at:
        yield _clean(f"not looked at: {one}")
    if diagnosis.is_healthy and not diagnosis.not_looked_at:
        yield "Nothing is wrong."


def document(diagnosis: Diagnosis) -> str:
    """Return the same as JSON."""
    findings = [
        {
            "severity": one.severity.value,
            "object": one.object,
            "problem": one.problem,
            "fix": one.fix,
            **({"since": one.since} if one.since else {}),
        }
        for one in diagnosis.sorted
    ]
    told = {
        "healthy": diagnosis.is_healthy and not diagnosis.not_looked_at,
        "findings": findings,
        "leftOut": dict(sorted(diagnosis.left_out.items())),
        "notLookedAt": diagnosis.not_looked_at,
    }
    return json.dumps(told, indent=2)


def _line(finding: Finding) -> str:
    problem = finding.problem
    if len(problem) > MOST_CHARACTERS:
        problem = f"{problem[:MOST_CHARACTERS]}…"
    return _clean(f"{finding.severity.value.upper():<8} {finding.object}: {problem}; fix: {finding.fix}")


def _clean(text: str) -> str:
    """Keep one line one line, and a terminal unharmed: messages are other people's."""
    return "".join(one if one.isprintable() else " " for one in text)
