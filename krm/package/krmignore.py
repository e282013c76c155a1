"""``.krmignore``: files that are in a package but not its resources. Source: ``kpt.md`` 1.8."""

import re
from collections.abc import Iterable
from typing import Any

import re2

from krm.package.contents import MAX_PATH_BYTES

_MOST_RULES = 1000
"""Lines that are read of one file; what follows them is ignored."""
_CLASS = re.compile(r"\[([!^]?)((?:\\.|[^\]\\/])+)\]")


class KrmIgnore:
    """The rules of one package's ``.krmignore``; paths are relative to that package."""

    def __init__(self, text: str) -> None:
        lines = [line.strip() for line in text.splitlines()[:_MOST_RULES]]
        rules = [line for line in lines if line and not line.startswith("#") and len(line) <= MAX_PATH_BYTES]
        self._accept = _Rules(rule[1:] for rule in rules if rule.startswith("!"))
        self._ignore = _Rules(rule for rule in rules if not rule.startswith("!"))
        self._directories: dict[str, bool] = {"": False}

    def ignores(self, path: str) -> bool:
        """Say whether a file is ignored, by itself or with a directory it lies in.

        Acceptance always wins over ignoring the same path. As in a walk, what lies in an ignored directory
        is never looked at.
        """
        return self._ignores_directory(path.rpartition("/")[0]) or self._matches(path, is_directory=False)

    def _ignores_directory(self, path: str) -> bool:
        known = self._directories.get(path)
        if known is None:
            known = self._ignores_directory(path.rpartition("/")[0]) or self._matches(path, is_directory=True)
            self._directories[path] = known
        return known

    def _matches(self, path: str, *, is_directory: bool) -> bool:
        return self._ignore.match(path, is_directory=is_directory) and not self._accept.match(
            path, is_directory=is_directory
        )


class _Rules:
    """Rules that are asked together: one expression for those of the same length and kind."""

    def __init__(self, rules: Iterable[str]) -> None:
        groups: dict[tuple[bool, bool, int], list[str]] = {}
        for rule in rules:
            pattern = _expression(rule.removesuffix("/").removeprefix("/"))
            if pattern is not None:
                kind = (rule.endswith("/"), rule.startswith("/"), rule.strip("/").count("/") + 1)
                groups.setdefault(kind, []).append(pattern)
        self._groups = [(*kind, each) for kind, patterns in groups.items() for each in _compiled(patterns)]

    def match(self, path: str, *, is_directory: bool) -> bool:
        """Say whether any rule matches: an anchored one the whole path, another its last segments."""
        segments = path.split("/")
        for directories_only, anchored, length, pattern in self._groups:
            if (directories_only and not is_directory) or length > len(segments):
                continue
            if anchored and length != len(segments):
                continue
            if pattern.fullmatch("/".join(segments[-length:])):
                return True
        return False


def _compiled(patterns: list[str]) -> list[Any]:
    try:
        return [re2.compile("|".join(patterns))]
    except re2.error:
        # Together they are more than the engine's memory limit; each by itself is not.
        return [re2.compile(pattern) for pattern in patterns]


def _expression(glob: str) -> str | None:
    """Translate a shell pattern; None when it is none, and then matches nothing."""
    pieces = []
    place = 0
    while place < len(glob):
        char = glob[place]
        place += 1
        if char == "*":
            pieces.append("[^/]*")
        elif char == "?":
            pieces.append("[^/]")
        elif char == "[":
            found = _CLASS.match(glob, place - 1)
            if found is None:
                return None
            pieces.append(f"[{'^/' if found[1] else ''}{found[2].replace('[', chr(92) + '[')}]")
            place = found.end()
        else:
            if char == "\\" and place < len(glob):
                char, place = glob[place], place + 1
            pieces.append(re2.escape(char))
    try:
        re2.compile(expression := "".join(pieces))
    except re2.error:
        return None
    return f"(?:{expression})"
