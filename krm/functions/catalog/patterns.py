"""Patterns that users write for paths, turned into RE2 programs: matching takes linear time, whatever the pattern.

Source: ``kpt.md`` 4.12 and 0.3 point 5.
"""

import re
from collections.abc import Iterator

import re2

_MEMORY = 8 << 20
"""Bytes that a compiled expression may take; RE2's own default."""
LONGEST = 1 << 16
"""Characters of a pattern."""


class PatternError(ValueError):
    """The pattern cannot be used; the text says why."""


class Pattern:
    """A compiled regular expression, with Go's syntax and meaning."""

    __slots__ = ("_program", "groups")

    def __init__(self, expression: str) -> None:
        """Compile ``expression``.

        Raises:
            PatternError: the syntax is wrong, or the expression is too big.
        """
        _check_length(expression)
        options = re2.Options()
        options.log_errors = False
        options.max_mem = _MEMORY
        try:
            self._program = re2.compile(expression, options)
        except re2.error as error:
            reason = error.args[0].decode() if isinstance(error.args[0], bytes) else error.args[0]
            raise PatternError(f"error parsing regexp: {reason}") from None
        self.groups: int = self._program.groups

    def search(self, text: str) -> tuple[str | None, ...] | None:
        """Return what the groups capture (the whole match first) at the leftmost match, None without one."""
        found = self._program.search(text)
        return None if found is None else (found.group(), *found.groups())

    def is_all_of(self, text: str) -> bool:
        """Say whether the whole of ``text`` matches."""
        return self._program.fullmatch(text) is not None


def file_pattern(glob: str) -> Pattern:
    """Compile a file glob: ``*``, ``?``, ``[a-z]``, ``{a,b}`` within a name, ``**`` across directories.

    Raises:
        PatternError: it is too long, or a bracket does not close.
    """
    _check_length(glob)
    return Pattern("(?s)" + "".join(_file_parts(glob)))


def field_pattern(path: str) -> Pattern:
    """Compile a field path: ``*`` for one element or part of its name, ``**`` for any number of elements.

    Match it with the path as results show it, and a ``.`` behind.

    Raises:
        PatternError: it is too long.
    """
    _check_length(path)
    return Pattern("(?s)" + "".join(map(_field_part, path.split("."))))


def _check_length(pattern: str) -> None:
    if len(pattern) > LONGEST:
        raise PatternError(f"a pattern is longer than {LONGEST} characters")


def _file_parts(glob: str) -> Iterator[str]:
    place = 0
    depth = 0
    while place < len(glob):
        char = glob[place]
        if glob.startswith("**/", place) and glob[place - 1 : place] in ("", "/"):
            yield "(?:.*/)?"
            place += 3
            continue
        if glob[place:] == "/**":
            yield "(?:/.*)?"
            return
        if glob.startswith("**", place):
            yield ".*" if glob == "**" else "[^/]*"
            place += 2
            continue
        if char == "[":
            end = glob.find("]", place + 2)
            if end < 0:
                raise PatternError(f"syntax error in pattern {glob!r}: [ without ]")
            chars = glob[place + 1 : end]
            negated = chars[0] in "!^"
            chars = chars[negated:].replace("\\", "\\\\").replace("[", "\\[").replace("^", "\\^")
            yield f"[{'^/' if negated else ''}{chars}]"
            place = end + 1
            continue
        if char == "\\" and place + 1 < len(glob):
            place += 1
            yield re.escape(glob[place])
        elif char == "{":
            depth += 1
            yield "(?:"
        elif char == "}" and depth:
            depth -= 1
            yield ")"
        elif char == "," and depth:
            yield "|"
        else:
            yield {"*": "[^/]*", "?": "[^/]"}.get(char) or re.escape(char)
        place += 1


def _field_part(element: str) -> str:
    if element == "**":
        return r"(?:[^.]*\.)*"
    if element == "*":
        return r"[^.]+\."
    return "[^.]*".join(map(re.escape, element.split("*"))) + r"\."
