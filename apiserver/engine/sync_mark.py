"""A note beside a clone: "the log holds everything that these refs say". Lets a restart skip reading all revisions.

The note is trusted only if the clone's refs are exactly those it names and the log has not gone back since (a restored
backup). It is written when refs and log agree; a crash in between leaves an old note, and the next start compares
everything.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path

NAME = "porch-synced"


def digest(refs: Mapping[str, str]) -> str:
    """Return a fingerprint of refs, whatever their order."""
    lines = "\n".join(f"{ref} {oid}" for ref, oid in sorted(refs.items()))
    return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def write_mark(folder: Path, refs: Mapping[str, str], rv: int) -> None:
    """Note that the log at revision ``rv`` holds what ``refs`` say; losing the note costs one full comparison."""
    draft = folder / f"{NAME}.new"
    try:
        draft.write_text(f"{digest(refs)} {rv}\n")
        draft.replace(folder / NAME)
    except OSError:
        return


def mark_holds(folder: Path, refs: Mapping[str, str], rv: int) -> bool:
    """Tell whether the log, now at ``rv``, is known to hold what ``refs`` say."""
    try:
        noted, _, at = (folder / NAME).read_text().strip().partition(" ")
        return noted == digest(refs) and 0 < int(at) <= rv
    except (OSError, ValueError):
        return False
