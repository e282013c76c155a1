"""What the doctor found: how bad it is, with which object, what is wrong and what would put it right."""

import datetime as dt
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

Json = dict[str, Any]

MOST: Final = 20
"""Findings that one check tells one by one; the rest is counted."""


class Severity(StrEnum):
    """How bad it is."""

    ERROR = "error"
    """Something does not work."""
    WARNING = "warning"
    """Something will stop to work, or waits for somebody."""
    NOTE = "note"
    """Good to know; nothing is wrong."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found."""

    severity: Severity
    object: str
    """Kind, namespace and name, or what else it is about."""
    problem: str
    fix: str
    """What would put it right, as something to do."""
    since: str = ""
    """RFC 3339, empty where nobody knows."""


@dataclass(slots=True)
class Diagnosis:
    """All that was found, and what could not be looked at."""

    findings: list[Finding] = field(default_factory=list)
    not_looked_at: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    """How many findings of a check are not told one by one."""
    _told: Counter[str] = field(default_factory=Counter)

    def add(self, check: str, found: Iterable[Finding]) -> None:
        """Take what a check found; of each check the first are kept."""
        for finding in found:
            if self._told[check] < MOST:
                self._told[check] += 1
                self.findings.append(finding)
            elif finding.severity is not Severity.NOTE:
                self.left_out[check] += 1

    def cannot_look(self, at: str) -> None:
        """Take that something could not be looked at; what is told twice is kept once."""
        if at not in self.not_looked_at:
            self.not_looked_at.append(at)

    @property
    def sorted(self) -> list[Finding]:
        """The findings, the worst first."""
        order = [*Severity]
        return sorted(self.findings, key=lambda one: (order.index(one.severity), one.object, one.problem))

    @property
    def is_healthy(self) -> bool:
        """Whether nothing is wrong, as far as was looked."""
        return not self.left_out and all(one.severity is Severity.NOTE for one in self.findings)


def reference(body: Json) -> str:
    """Name an object as messages do."""
    meta = body.get("metadata") or {}
    place = f"{meta['namespace']}/" if meta.get("namespace") else ""
    return f"{body.get('kind') or 'Object'} {place}{meta.get('name', '')}"


def age(moment: str, now: dt.datetime) -> dt.timedelta:
    """Return how long ago a timestamp was; nothing for one that cannot be read, or lies ahead."""
    try:
        found = dt.datetime.fromisoformat(moment)
    except ValueError:
        return dt.timedelta()
    return max(now - found, dt.timedelta()) if found.tzinfo else dt.timedelta()


def span(length: dt.timedelta) -> str:
    """Write a duration as kubectl does: its largest unit."""
    seconds = int(length.total_seconds())
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
