"""Names of branches and tags that carry package revisions. Source: porch-api.md 6.1."""

import re
from dataclasses import dataclass
from typing import Literal

from storage.git.errors import UnsafePath

HEADS = "refs/heads/"
TAGS = "refs/tags/"
DRAFTS = "refs/heads/drafts/"
PROPOSED = "refs/heads/proposed/"
DELETIONS = "refs/heads/deletionProposed/"

MAX_REF_LENGTH = 1024
"""Bytes; file systems end at 255 per component and Git at 4096 per path."""

_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)")
_NUMBERED = re.compile(r"v?([0-9]{1,9})")

RefKind = Literal["branch", "draft", "proposed", "tag", "deletion"]


@dataclass(frozen=True, slots=True)
class RefMeaning:
    """What a ref says: ``package`` is relative to the repository's directory, ``name`` is its last part.

    ``name`` is a workspace for drafts and proposals, a version for tags, either for deletions; a plain branch has
    its whole short name there and no package.
    """

    kind: RefKind
    package: str
    name: str

    @property
    def revision(self) -> int:
        """The number in a version such as ``v3`` or ``3``; −1 when it has none."""
        found = _NUMBERED.fullmatch(self.name)
        number = int(found[1]) if found else 0
        return number if number > 0 else -1


def check_ref(ref: str) -> str:
    """Return ``ref`` if Git accepts it as a full name.

    Raises:
        UnsafePath: it breaks a rule of ``git check-ref-format``, or is over-long.
    """
    bad = (
        not ref.startswith("refs/")
        or ref.count("/") < 2  # noqa: PLR2004 -- refs/<kind>/<name>
        or ref.endswith(("/", "."))
        or "/-" in ref
        or _FORBIDDEN.search(ref) is not None
        or len(ref.encode(errors="surrogateescape")) > MAX_REF_LENGTH
    )
    if bad:
        raise UnsafePath(f"{ref[:200]!r} is not a valid ref name")
    return ref


def is_valid_ref(ref: str) -> bool:
    """Tell whether :func:`check_ref` accepts the name."""
    try:
        check_ref(ref)
    except UnsafePath:
        return False
    return True


def branch_ref(branch: str) -> str:
    """Name the ref of a branch."""
    return check_ref(HEADS + branch)


def draft_ref(path: str, workspace: str) -> str:
    """Name the branch of a draft; ``path`` is the full package path."""
    return check_ref(f"{DRAFTS}{path}/{workspace}")


def proposed_ref(path: str, workspace: str) -> str:
    """Name the branch of a proposal; ``path`` is the full package path."""
    return check_ref(f"{PROPOSED}{path}/{workspace}")


def tag_ref(path: str, revision: int) -> str:
    """Name the tag of a published revision; ``path`` is the full package path."""
    return check_ref(f"{TAGS}{path}/v{revision}")


def deletion_ref(path: str, name: int | str) -> str:
    """Name the branch that proposes a deletion: of a revision number, or of a workspace."""
    return check_ref(f"{DELETIONS}{path}/{f'v{name}' if isinstance(name, int) else name}")


def short_ref(ref: str) -> str:
    """Drop ``refs/heads/`` or ``refs/tags/``, as selfLock shows refs."""
    return ref.removeprefix(HEADS).removeprefix(TAGS)


def full_path(directory: str, package: str) -> str:
    """Join a repository's directory and a package path."""
    return "/".join(part for part in (directory.strip("/"), package.strip("/")) if part)


_PREFIXES: tuple[tuple[str, RefKind], ...] = (
    (DRAFTS, "draft"),
    (PROPOSED, "proposed"),
    (DELETIONS, "deletion"),
    (TAGS, "tag"),
)


def parse_ref(ref: str, directory: str = "") -> RefMeaning | None:
    """Say what a ref means below ``directory``; None if it is not about a package there.

    A branch outside the three prefixes means itself.
    """
    for prefix, kind in _PREFIXES:
        if ref.startswith(prefix):
            path, _, name = ref[len(prefix) :].rpartition("/")
            package = _below(path, directory.strip("/"))
            return RefMeaning(kind, package, name) if package and name else None
    if ref.startswith(HEADS):
        return RefMeaning("branch", "", ref[len(HEADS) :])
    return None


def _below(path: str, directory: str) -> str:
    if not directory:
        return path
    return path[len(directory) + 1 :] if path.startswith(directory + "/") else ""
