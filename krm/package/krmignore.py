"""``.krmignore``: files that are in a package but not its resources. Source: ``kpt.md`` 1.8."""

from collections.abc import Sequence
from fnmatch import translate
from functools import lru_cache
from re import Pattern, compile  # noqa: A004 - the name says it best here

_MOST_RULES = 1000
"""Lines that are read of one file; what follows them is ignored."""


class KrmIgnore:
    """The rules of one package's ``.krmignore``; paths are relative to that package."""

    def __init__(self, text: str) -> None:
        lines = [line.strip() for line in text.splitlines()[:_MOST_RULES]]
        rules = [line for line in lines if line and not line.startswith("#")]
        self._accept = [rule[1:] for rule in rules if rule.startswith("!")]
        self._ignore = [rule for rule in rules if not rule.startswith("!")]

    def ignores(self, path: str) -> bool:
        """Say whether a file is ignored, by itself or with a directory it lies in. Acceptance always wins."""
        if not self._ignore:
            return False
        segments = path.split("/")
        ends = range(1, len(segments) + 1)
        if any(_matches(rule, segments[:end], is_file=end == len(segments)) for rule in self._accept for end in ends):
            return False
        return any(
            _matches(rule, segments[:end], is_file=end == len(segments)) for rule in self._ignore for end in ends
        )


def _matches(rule: str, segments: Sequence[str], *, is_file: bool) -> bool:
    if rule.endswith("/"):
        if is_file:
            return False
        rule = rule[:-1]
    anchored = rule.startswith("/")
    patterns = rule.removeprefix("/").split("/")
    if len(patterns) > len(segments) or (anchored and len(patterns) != len(segments)):
        return False
    return all(
        _pattern(pattern).match(segment) for pattern, segment in zip(patterns, segments[-len(patterns) :], strict=True)
    )


@lru_cache(maxsize=256)
def _pattern(glob: str) -> Pattern[str]:
    return compile(translate(glob))
