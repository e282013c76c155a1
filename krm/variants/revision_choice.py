"""What ``spec.upstream.revision`` asks for, in whichever way it is spelled; variants and sets read it alike.

Source: ``variants.md`` 2.3 (normalisation), C-02 and C-21.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from krm.variants.revisions import PLACEHOLDER_REVISION

_NUMBER: Final = re.compile(r"v?([1-9][0-9]{0,17})")
"""At most 18 digits: no package gets further, and longer texts are not worth a number."""


class InvalidRevision(ValueError):
    """What is written chooses no revision: a boolean, a fraction, a list, a mapping, or a number below -1."""


class By(Enum):
    """How a revision is chosen."""

    UNSET = auto()
    """The latest, or the branch where nothing is numbered yet (C-01)."""
    LATEST = auto()
    NUMBER = auto()
    PLACEHOLDER = auto()
    """The branch itself."""
    WORKSPACE = auto()
    """A text that is no number, as revisions of old releases were."""


@dataclass(frozen=True, slots=True)
class RevisionChoice:
    """One way to choose, with what it needs."""

    by: By
    number: int = 0
    workspace: str = ""


def revision_choice(written: object) -> RevisionChoice:
    """Read a revision as JSON has it.

    Raises:
        InvalidRevision: it chooses none.
    """
    if written is None or written == "":
        return RevisionChoice(By.UNSET)
    if isinstance(written, str):
        return _of_text(written)
    if isinstance(written, bool) or not isinstance(written, int):
        raise InvalidRevision(_what(written))
    if written < PLACEHOLDER_REVISION:
        raise InvalidRevision(_what(written))
    return _of_number(written)


def parse_number(text: str) -> int:
    """Read the number of a revision such as ``v3`` or ``3``; -1 where it is none."""
    match = _NUMBER.fullmatch(text)
    return int(match.group(1)) if match else 0 if text in ("0", "v0") else PLACEHOLDER_REVISION


def _of_text(text: str) -> RevisionChoice:
    if text == "latest":
        return RevisionChoice(By.LATEST)
    if match := _NUMBER.fullmatch(text):
        return RevisionChoice(By.NUMBER, number=int(match.group(1)))
    if re.fullmatch(r"-?[0-9]{1,18}", text):
        return revision_choice(int(text)) if text == str(int(text)) else RevisionChoice(By.WORKSPACE, workspace=text)
    return RevisionChoice(By.WORKSPACE, workspace=text)


def _of_number(number: int) -> RevisionChoice:
    if number == 0:
        return RevisionChoice(By.UNSET)
    return (
        RevisionChoice(By.PLACEHOLDER) if number == PLACEHOLDER_REVISION else RevisionChoice(By.NUMBER, number=number)
    )


def _what(written: object) -> str:
    return f"no revision: {type(written).__name__}"
