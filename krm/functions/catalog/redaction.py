"""Keeping secrets out of function results. Source: ``kpt.md`` 4.10, last point."""

import re
from collections.abc import Iterable

REDACTED = "<redacted>"
_LONGEST = 128
"""Characters of a value that are shown."""
_TELLING_NAME = re.compile(
    r"password|passwd|secret|token|api[_-]?key|credential|private_?key|cert|certificate|bearer|auth", re.IGNORECASE
)
_TELLING_VALUE = re.compile(
    r"-----BEGIN |\AeyJ[\w-]+\.[\w-]+\.|\A(?:AKIA|ASIA)[0-9A-Z]{16}\Z|\Agh[pousr]_\w{20,}|\Axox[abprs]-|\Ask-\w{16,}"
    r"|\A[A-Za-z0-9+/]{64,}={0,2}\Z"
)


def redacted(value: str, path: str, names: Iterable[str]) -> str:
    """Return what may be shown of ``value``: nothing when its place, its setters or itself look secret."""
    if any(_TELLING_NAME.search(name) for name in (path, *names)) or _TELLING_VALUE.search(value):
        return REDACTED
    if len(value) > _LONGEST:
        return f"{value[:_LONGEST]}... (truncated {len(value) - _LONGEST} chars)"
    return value
