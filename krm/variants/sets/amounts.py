"""Amounts that are written as a number or as a percentage: ``maxDeletions``, ``maxInFlight``, ``failureThreshold``.

Source: ``variants.md`` 6.2 and 6.11.
"""

import re
from dataclasses import dataclass
from typing import Final

_PERCENTAGE: Final = re.compile(r"(100|[1-9]?[0-9])%")
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
MAX_NUMBER: Final = 999_999_999


class InvalidAmount(ValueError):
    """What is written is neither a number of 0 or more nor a percentage from 0% to 100%."""


@dataclass(frozen=True, slots=True)
class Amount:
    """So many, or such a share."""

    number: int = 0
    percent: int | None = None
    """From 0 to 100; then the number does not count."""

    @classmethod
    def of(cls, written: object) -> "Amount":
        """Read what JSON has.

        Raises:
            InvalidAmount: it is no amount.
        """
        if isinstance(written, int) and not isinstance(written, bool) and 0 <= written <= MAX_NUMBER:
            return cls(number=written)
        if isinstance(written, str) and (match := _PERCENTAGE.fullmatch(written)):
            return cls(percent=int(match[1]))
        if isinstance(written, str) and _NUMBER.fullmatch(written):
            return cls(number=int(written))
        raise InvalidAmount('must be a number of 0 or more, or a percentage such as "20%"')

    def most(self, total: int) -> int:
        """Return how many of ``total`` that are at most: a share is rounded down, but not to 0 unless it is 0%."""
        if self.percent is None:
            return self.number
        return max(total * self.percent // 100, 1) if self.percent else 0
