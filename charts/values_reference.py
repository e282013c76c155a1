"""Writes the table of values into the chart's README: ``python charts/values_reference.py``.

What a value means is the comment ``# -- …`` before it in ``values.yaml``. With ``--check`` nothing is written, and the exit code
says whether the table is what would be written.
"""

import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from krm.generated_files import write_or_check

CHART: Final = Path("charts/porch")
VALUES: Final = CHART / "values.yaml"
README: Final = CHART / "README.md"
HEAD: Final = "| Value | Default | What it is |\n| --- | --- | --- |\n"
MARK: Final = "<!-- values: written by charts/values_reference.py -->\n"
KEY: Final = re.compile(r"( *)([A-Za-z0-9_.\"/-]+):")
COMMENT: Final = re.compile(r" *# (-- )?(.*)")

WHOLE: Final = {("resources",), ("podSecurityContext",), ("containerSecurityContext",), ("labels",)}
"""Mappings that are a value as a whole."""
ESCAPED: Final = r"\|"
"""A bar in a cell of a table."""

Keys = tuple[str, ...]
"""Keys from the root to a value."""


def described(text: str) -> dict[Keys, str]:
    """Return what the comments of a file of values say, by the path of the key after them."""
    found: dict[Keys, str] = {}
    above: list[tuple[int, str]] = []
    said: list[str] = []
    for line in text.splitlines():
        if comment := COMMENT.fullmatch(line):
            said = [comment[2]] if comment[1] else [*said, comment[2]] if said else []
        elif key := KEY.match(line):
            indent = len(key[1])
            above = [*((depth, name) for depth, name in above if depth < indent), (indent, key[2].strip('"'))]
            if said:
                found[tuple(name for _, name in above)] = " ".join(said)
            said = []
        else:
            said = []
    return found


def leaves(value: Any, path: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """Return every value that can be given: a mapping that has keys is looked into, unless it is one value."""
    if isinstance(value, dict) and value and path[-1:] not in WHOLE:
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    else:
        yield path, value


def meaning(path: Keys, said: dict[Keys, str]) -> str:
    """Return what a value is: its own comment, or that of the server's value of the same name, after that of what it is part of."""
    parts = [said.get(path[:depth], "") for depth in range(1, len(path))]
    own = said.get(path) or said.get(("server", *path[1:]), "")
    return ". ".join(part for part in (*parts, own) if part)


def table(text: str) -> str:
    """Return the table for a file of values."""
    said = described(text)
    rows = (
        (f"`{'.'.join(path)}`", f"`{json.dumps(default)}`", meaning(path, said))
        for path, default in leaves(yaml.safe_load(text))
    )
    return HEAD + "".join(f"| {' | '.join(cell.replace('|', ESCAPED) for cell in row)} |\n" for row in rows)


def readme(text: str, values: str) -> bytes:
    """Return a README with the table in its place, between two marks.

    Raises:
        ValueError: the README has not exactly two marks.
    """
    before, _, after = text.split(MARK)
    return f"{before}{MARK}\n{table(values)}\n{MARK}{after}".encode()


def main(arguments: Sequence[str]) -> int:
    """Write the README under the working directory, or check it."""
    written = readme(README.read_text(), VALUES.read_text())
    return write_or_check({README: written}, arguments, command="python charts/values_reference.py")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
