"""Which paths may be written to Git: relative, bounded, and special to no file system.

Source: users.md 7.3 row 1. Packages are never put on a disk by name here, but whoever clones the remote does that.
"""

from dulwich.index import validate_path_element_hfs, validate_path_element_ntfs

from storage.git.errors import UnsafePath

MAX_DEPTH = 32
"""Levels of directories in one path."""

MAX_PATH = 1024
"""Bytes of one path."""

MAX_NAME = 255
"""Bytes of one part of a path."""


def check_path(path: str) -> str:
    """Return ``path`` if it is a safe relative path with slashes.

    Raises:
        UnsafePath: absolute, empty or dot parts, control characters, backslashes, any spelling of ``.git``, over-long.
    """
    parts = path.split("/")
    raw = path.encode("utf-8", "surrogateescape")
    if len(raw) > MAX_PATH or len(parts) > MAX_DEPTH or not all(map(_is_safe, parts)):
        raise UnsafePath(f"{path[:200]!r} is not a safe path inside a package")
    return path


def _is_safe(part: str) -> bool:
    raw = part.encode("utf-8", "surrogateescape")
    if (
        not raw
        or len(raw) > MAX_NAME
        or part in (".", "..")
        or "\\" in part
        or any(c < " " or c == "\x7f" for c in part)
    ):
        return False
    # Both file systems are asked, because the remote's readers decide where it lands. HFS+ has no names that are
    # not UTF-8 (they decode to surrogates here).
    return validate_path_element_ntfs(raw) and (_has_surrogate(part) or validate_path_element_hfs(raw))


def _has_surrogate(part: str) -> bool:
    return any("\ud800" <= c <= "\udfff" for c in part)
