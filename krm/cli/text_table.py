"""What commands print for people: lines with columns, and nothing that steers a terminal."""

import sys
from collections.abc import Sequence
from typing import Final

_UNPRINTABLE: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}


def text_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as lines with columns of one width, three blanks apart, as kubectl has them."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows
    ]


def printable(text: str) -> str:
    """Return text as it is, but on a terminal without what would steer it: packages are other people's."""
    return text.translate(_UNPRINTABLE) if sys.stdout.isatty() else text
