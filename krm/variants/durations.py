"""Durations as people write them for Go programs: ``90s``, ``10m``, ``1h30m``.

Source: ``variants.md`` 6.2 and 6.3; https://pkg.go.dev/time#ParseDuration.
"""

import datetime as dt
from typing import Final

from krm.expressions.errors import CelError
from krm.expressions.times import duration

LONGEST: Final = dt.timedelta(microseconds=2**63 // 1000)
"""What Go holds, 292 years: added to any time of these days it gives a time."""


class InvalidDuration(ValueError):
    """What is written is no duration, or a negative one."""


def read_duration(written: object) -> dt.timedelta:
    """Read a duration; parts of a microsecond are cut off.

    Raises:
        InvalidDuration: it is no text, no duration, negative, or longer than :data:`LONGEST`.
    """
    try:
        found = duration(written) if isinstance(written, str) else None
    except CelError:
        found = None
    if found is None or not dt.timedelta() <= found <= LONGEST:
        raise InvalidDuration("must be a duration of 0 or more, such as 90s, 10m or 1h30m")
    return found
