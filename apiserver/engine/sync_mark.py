"""A note beside a clone: "the log holds everything that these refs say". Lets a restart skip reading all revisions.

The note is trusted only if the clone's refs are exactly those it names and the log has not gone back since: a backup that was
put back makes another incarnation of the database (ADR 0027). It is written when refs and log agree; a crash in between leaves an old note, and the next start compares
everything.
"""

import contextlib
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

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


def noted_ahead(folder: Path, rv: int, incarnation: str = "") -> int:
    """Return the revision of a note about this life of the database which the log, now at ``rv``, has not reached; 0 without one.

    A log only grows: what it held is lost, as after a failover to a standby that lagged (ADR 0040).
    """
    noted = _read(folder)
    return noted.rv if noted is not None and noted.incarnation == incarnation and noted.rv > rv else 0


def remove_mark(folder: Path) -> None:
    """Take back a note that does not hold, or is not to be believed."""
    with contextlib.suppress(OSError):
        (folder / NAME).unlink(missing_ok=True)


def mark_holds(folder: Path, refs: Mapping[str, str], rv: int, incarnation: str = "") -> bool:
    """Tell whether the log, now at ``rv``, is known to hold what ``refs`` say."""
    noted = _read(folder)
    if noted is None or noted.form != FORM or noted.incarnation != incarnation:
        return False
    return noted.digest == digest(refs) and 0 < noted.rv <= rv


class _Note(NamedTuple):
    digest: str
    rv: int
    form: int
    incarnation: str


def _read(folder: Path) -> _Note | None:
    try:
        noted, at, form, *life = (folder / NAME).read_text().split()
        return _Note(noted, int(at), int(form), "".join(life))
    except (OSError, ValueError):
        return None
