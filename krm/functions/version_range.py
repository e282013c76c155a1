"""Ranges of versions, as a pipeline's ``tag`` may name one: ``~0.2``, ``>=1 <2``, ``0.1.x || 0.3``.

The grammar is that of Go's Masterminds library; order and parsing of versions are the package ``semver``'s.
Source: ``kpt.md`` 2.14, ``libraries.md`` 8.
"""

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from semver import Version

LONGEST_RANGE = 256
"""Characters of a range; keeps the work on hostile ones small."""
_PARTS = 3
"""Major, minor and patch."""

_ANY_PART = ("x", "X", "*")
_VERSION = (
    r"v?(?P<major>\d+|[xX*])(?:\.(?P<minor>\d+|[xX*]))?(?:\.(?P<patch>\d+|[xX*]))?"
    r"(?:-(?P<pre>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z.-]+)?"
)
_TERM = re.compile(rf"\s*(?P<sign>=>|=<|>=|<=|!=|~>|[=<>~^]|)\s*{_VERSION}(?=[\s,]|\Z)")
_HYPHEN = re.compile(r"([^\s,]+)\s+-\s+([^\s,]+)")
_TAG_VERSION = re.compile(r"v?(?P<core>\d+(?:\.\d+){0,2})(?P<rest>[-+].*)?")

_Test = Callable[[Version], bool]


class InvalidRange(ValueError):
    """A text is no range of versions."""

    def __init__(self, text: str) -> None:
        super().__init__(f'"{text}" is not a version constraint; examples are "~0.2", ">=1 <2" and "0.1.x"')


@dataclass(frozen=True, slots=True)
class _All:
    """Tests that must all hold."""

    tests: tuple[_Test, ...]
    admits_prereleases: bool
    """Whether a version of the group names a pre-release: only then do pre-releases count at all."""

    def __contains__(self, version: Version) -> bool:
        if version.prerelease and not self.admits_prereleases:
            return False
        return all(test(version) for test in self.tests)


@dataclass(frozen=True, slots=True)
class VersionRange:
    """A set of versions; ask with ``in``."""

    groups: tuple[_All, ...]

    def __contains__(self, version: Version) -> bool:
        return any(version in group for group in self.groups)


@lru_cache(maxsize=256)
def parse_range(text: str) -> VersionRange:
    """Return the range that ``text`` describes.

    Raises:
        InvalidRange: ``text`` is none.
    """
    if len(text) > LONGEST_RANGE:
        raise InvalidRange(text[:LONGEST_RANGE] + "…")
    return VersionRange(tuple(_group(part, text) for part in text.split("||")))


def is_range(text: str) -> bool:
    """Say whether ``text`` is a range; a single version, however short, is none: it is a tag."""
    if version_of(text) is not None:
        return False
    try:
        parse_range(text)
    except InvalidRange:
        return False
    return True


def version_of(tag: str) -> Version | None:
    """Return the version that a tag stands for (``v0.2`` is 0.2.0), None when it is none."""
    found = _TAG_VERSION.fullmatch(tag) if len(tag) <= LONGEST_RANGE else None
    if found is None:
        return None
    core = ".".join(str(int(part)) for part in (found["core"] + ".0.0").split(".")[:_PARTS])
    try:
        return Version.parse(core + (found["rest"] or ""))
    except ValueError:
        return None


def newest_tag(tags: Iterable[str], constraint: str) -> str | None:
    """Return the tag of the highest version in a range, spelt as it is.

    None when no tag is in it, or when ``constraint`` is no range.
    """
    try:
        wanted = parse_range(constraint)
    except InvalidRange:
        return None
    versions = ((version_of(tag), tag) for tag in tags if _names_release(tag))
    found = [(version, tag) for version, tag in versions if version is not None and version in wanted]
    return max(found, key=operator.itemgetter(0))[1] if found else None


def _names_release(tag: str) -> bool:
    """Leave out what registries list besides releases: signatures and builds of a commit."""
    return not tag.startswith("sha256-") and "-git-" not in tag


def _group(text: str, whole: str) -> _All:
    text = _HYPHEN.sub(r">=\1 <=\2", text) if text.strip() else "*"
    tests: list[_Test] = []
    prereleases = False
    place = 0
    while place < len(text):
        term = _TERM.match(text, place)
        if term is None:
            raise InvalidRange(whole)
        tests += _tests(term, whole)
        prereleases = prereleases or bool(term["pre"])
        place = _after_separator(text, term.end())
    return _All(tuple(tests), prereleases)


def _after_separator(text: str, place: int) -> int:
    """Step over white space and at most one comma, which must have a term behind it."""
    rest = text[place:].lstrip()
    if rest.startswith(",") and rest[1:].strip():
        rest = rest[1:]
    return len(text) if not rest else len(text) - len(rest)


def _tests(term: re.Match[str], whole: str) -> list[_Test]:
    parts = _given_parts(term)
    low = _version(parts, term["pre"], whole)
    sign = {"=>": ">=", "=<": "<=", "~>": "~", "": "="}.get(term["sign"], term["sign"])
    if not parts:
        # Every version is both at least and at most any; none is above, below or other than any.
        return [] if sign in ("=", ">=", "<=", "~", "^") else [lambda _: False]
    if sign == "~":
        return _between(low, _bumped(parts, min(len(parts), 2)))
    if sign == "^":
        return _between(low, _bumped(parts, _first_nonzero(parts)))
    if sign in ("=", "!=") and len(parts) < _PARTS:
        low_test, high_test = _between(low, _bumped(parts, len(parts)))
        inside = sign == "="
        return [lambda version: (low_test(version) and high_test(version)) is inside]
    if len(parts) < _PARTS and sign in (">", "<="):
        return [_compare(">=" if sign == ">" else "<", _bumped(parts, len(parts)))]
    return [_compare(sign, low)]


def _given_parts(term: re.Match[str]) -> list[int]:
    """Return the numbers up to the first part that is absent or a wildcard."""
    parts: list[int] = []
    for name in ("major", "minor", "patch"):
        if term[name] is None or term[name] in _ANY_PART:
            break
        parts.append(int(term[name]))
    return parts


def _version(parts: list[int], prerelease: str | None, whole: str) -> Version:
    major, minor, patch = (*parts, 0, 0, 0)[:_PARTS]
    core = f"{major}.{minor}.{patch}"
    try:
        return Version.parse(f"{core}-{prerelease}" if prerelease else core)
    except ValueError:
        raise InvalidRange(whole) from None


def _bumped(parts: list[int], count: int) -> Version:
    """Return the first version above all that share the first ``count`` parts."""
    raised = [*parts[: count - 1], parts[count - 1] + 1, 0, 0]
    return Version(*raised[:_PARTS])


def _first_nonzero(parts: list[int]) -> int:
    """Return how many leading parts a caret keeps: up to the first that is not zero."""
    return next((place for place, part in enumerate(parts, 1) if part), len(parts))


def _between(low: Version, high: Version) -> list[_Test]:
    # "-0" is the lowest pre-release: those of the first version outside are outside too.
    return [_compare(">=", low), _compare("<", high.replace(prerelease="0"))]


_COMPARISONS: dict[str, Callable[[Version, Version], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


def _compare(sign: str, bound: Version) -> _Test:
    holds = _COMPARISONS[sign]
    return lambda version: holds(version, bound)
