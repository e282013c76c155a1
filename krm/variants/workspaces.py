"""The workspaces in which variants make their drafts: ``packagevariant-1`` and so on.

Source: ``variants.md`` 0.1 and 2.6.
"""

import re
from collections.abc import Collection, Iterable
from typing import Final

from krm.variants.revisions import Revision
from krm.variants.vocabulary import WORKSPACE_PREFIX

_NUMBERED: Final = re.compile(rf"{WORKSPACE_PREFIX}([0-9]{{1,9}})")
"""Longer numbers are somebody's joke: the one after them would soon not fit in a name."""


def next_workspace(revisions: Iterable[Revision], taken: Collection[str] = ()) -> str:
    """Return the workspace for the next draft of the package that ``revisions`` are of.

    ``taken`` are workspaces that the server has and ``revisions`` do not show yet.
    """
    names = {one.workspace for one in revisions} | set(taken)
    return f"{WORKSPACE_PREFIX}{max(map(workspace_number, names), default=0) + 1}"


def workspace_number(workspace: str) -> int:
    """Return the number of a variant's workspace; 0 where it is none of a variant, or has no number."""
    match = _NUMBERED.fullmatch(workspace)
    return int(match.group(1)) if match else 0
