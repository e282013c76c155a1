"""Reading ``kpt-set`` comments: the pattern, its setters, and the values that a field's text gives them.

Source: ``kpt.md`` 4.10.
"""

import re
from collections.abc import Mapping

_SETTER = re.compile(r"\$\{([^${}]*)\}")
_PREFIX = re.compile(r"#[ \t]?kpt-set:[ \t]?")
_MENTION = "kpt-set:"
LONGEST = 1 << 20
"""Characters of a value that setters are put into; values may name further setters, which could go on."""


class SetterError(Exception):
    """Setters cannot be put into a field; the text says why."""


def may_have_setters(text: str) -> bool:
    """Say whether a document is worth looking through."""
    return _MENTION in text


def setter_pattern(comment: str) -> str:
    """Return the pattern of a line comment, empty when it is about something else."""
    found = _PREFIX.match(comment)
    return comment[found.end() :].strip() if found else ""


def setter_names(pattern: str) -> list[str]:
    """Return the setters in a pattern, in its order."""
    return _SETTER.findall(pattern)


def is_one_setter(pattern: str) -> bool:
    """Say whether the pattern is one setter and nothing else, as a list's must be."""
    return _SETTER.fullmatch(pattern) is not None


def filled(pattern: str, values: Mapping[str, str], current: str) -> str:
    """Return the pattern with all setters replaced: by ``values``, else by what ``current`` has in their place.

    Setters are replaced one after the other by name, so the value of one may name a later one.

    Raises:
        SetterError: a setter has no value, or the result is too long.
    """
    result = pattern
    last = ""
    while following := [name for name in setter_names(result) if name in values and name >= last]:
        last = min(following)
        place = f"${{{last}}}"
        if len(result) + result.count(place) * len(values[last]) > LONGEST:
            raise SetterError(f"a value would be longer than {LONGEST} characters")
        result = result.replace(place, values[last])
        last += "\0"
    missing = setter_names(result)
    if missing:
        for name, value in derived_values(pattern, current).items():
            result = result.replace(f"${{{name}}}", value)
    unresolved = [f"${{{name}}}" for name in dict.fromkeys(setter_names(result)) if name in missing]
    if unresolved:
        raise SetterError(f"values for setters [{' '.join(unresolved)}] must be provided")
    return result


def derived_values(pattern: str, current: str) -> dict[str, str]:
    """Read the setters' values out of a field's text; empty unless each of them gets one."""
    parts = _SETTER.split(pattern)
    names, literals = parts[1::2], parts[0::2]
    # Two setters without anything between them cannot be told apart.
    if not names or "\n" in current or not all(literals[1:-1]):
        return {}
    values = captured(current, literals)
    return dict(zip(names, values, strict=True)) if all(values) else {}


def captured(text: str, literals: list[str]) -> list[str]:
    """Return what greedy groups between ``literals`` capture, empty strings when they do not match.

    The same as a regular expression of ``(.*)`` groups finds, without its backtracking: the first literal
    stands as far left as it can, every other as far right as those behind it allow.
    """
    nothing = [""] * (len(literals) - 1)
    start = text.find(literals[0])
    if start < 0:
        return nothing
    end = len(text)
    places = []
    for literal in reversed(literals[1:]):
        end = text.rfind(literal, 0, end)
        if end < 0:
            return nothing
        places.append(end)
    left = start + len(literals[0])
    values = []
    for place, literal in zip(reversed(places), literals[1:], strict=True):
        if place < left:
            return nothing
        values.append(text[left:place])
        left = place + len(literal)
    return values
