"""A note beside a clone: "the log holds everything that these refs say". Lets a restart skip reading all revisions.

The note is trusted only if the clone's refs are exactly those it names and the log has not gone back since: a backup that was
put back makes another incarnation of the database (ADR 0027). It is written when refs and log agree; a crash in between leaves an old note, and the next start compares
everything.
"""

import contextlib
import hashlib
from collections.abc import Mapping
from pathlib import Path

NAME = "porch-synced"
FORM = 2
"""What revisions look like that a sync writes. Raise it when they change: every repository is then compared once."""


def digest(refs: Mapping[str, str]) -> str:
    """Return a fingerprint of refs, whatever their order."""
    lines = "\n".join(f"{ref} {oid}" for ref, oid in sorted(refs.items()))
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def write_mark(folder: Path, refs: Mapping[str, str], rv: int, incarnation: str = "") -> None:
    """Note that the log at revision ``rv`` holds what ``refs`` say; losing the note costs one full comparison."""
    draft = folder / f"{NAME}.new"
    try:
        draft.write_text(f"{digest(refs)} {rv} {FORM} {incarnation}".rstrip() + "\n")
        draft.replace(folder / NAME)
    except OSError:
        return


def remove_mark(folder: Path) -> None:
    """Take back a note that does not hold, or is not to be believed."""
    with contextlib.suppress(OSError):
        (folder / NAME).unlink(missing_ok=True)


def mark_holds(folder: Path, refs: Mapping[str, str], rv: int, incarnation: str = "") -> bool:
    """Tell whether the log, now at ``rv``, is known to hold what ``refs`` say."""
    try:
        noted, at, form, *life = (folder / NAME).read_text().split()
        return noted == digest(refs) and 0 < int(at) <= rv and int(form) == FORM and "".join(life) == incarnation
    except (OSError, ValueError):
        return False
