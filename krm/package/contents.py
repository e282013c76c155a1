"""A package in memory: every file with its bytes and mode, nothing interpreted, nothing lost.

Also what may be in a package at all, and the text view of it that the API shows and takes.
"""

import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass

REGULAR = 0o100644
EXECUTABLE = 0o100755
SYMLINK = 0o120000
SUBMODULE = 0o160000

MAX_FILES = 10_000
"""Files of one package; ``users.md`` 7.3."""
MAX_TOTAL_BYTES = 64 << 20
"""Bytes of all files of one package together."""
MAX_PATH_BYTES = 1024
MAX_NAME_BYTES = 255
"""Of one path segment: the limit of the file systems that a clone is checked out on."""
MAX_SEGMENTS = 32
"""Directories of one path, its file included; what stores packages in Git takes no deeper ones."""

_IGNORED_BY_HFS = dict.fromkeys([*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])
"""Code points that HFS+ leaves out when it compares names, so that ``.g\\u200cit`` is ``.git`` there."""
_GIT_NAMES = (".git", "git~1")
"""The repository directory, and its short name on NTFS."""


@dataclass(frozen=True, slots=True)
class File:
    """One file: its bytes as they are, and its Git mode."""

    data: bytes
    mode: int = REGULAR


Contents = Mapping[str, File]
"""Path inside the package, with slashes → file."""


class ContentsError(ValueError):
    """A file cannot be part of a package; ``path`` is empty when the package as a whole is at fault."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path!r}: {problem}" if path else problem)
        self.path = path
        self.problem = problem


def check_contents(contents: Contents) -> None:
    """Refuse paths that would leave the package or hurt a checkout, and packages over the limits.

    Raises:
        ContentsError: with the first offending path.

    Source: ``porch-api.md`` 5.3, ``users.md`` 7.3.
    """
    if len(contents) > MAX_FILES:
        raise ContentsError("", f"the package has {len(contents)} files, more than {MAX_FILES}")
    if sum(len(file.data) for file in contents.values()) > MAX_TOTAL_BYTES:
        raise ContentsError("", f"the package is larger than {MAX_TOTAL_BYTES >> 20} MiB")
    for path in contents:
        if problem := path_problem(path):
            raise ContentsError(path, problem)
    _refuse_clashes(contents)


def path_problem(path: str) -> str:
    """Say what is wrong with a package-relative path; empty when nothing is."""
    if not path:
        return "the path is empty"
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return "the path is not valid Unicode"
    if size > MAX_PATH_BYTES:
        return f"the path is longer than {MAX_PATH_BYTES} bytes"
    if path.startswith("/"):
        return "the path must be relative to the package"
    if "\\" in path:
        return "the path contains a backslash"
    if not path.isprintable() and any(unicodedata.category(char) == "Cc" for char in path):
        return "the path contains a control character"
    if path.count("/") >= MAX_SEGMENTS:
        return f"the path has more than {MAX_SEGMENTS} segments"
    return next(filter(None, map(_segment_problem, path.split("/"))), "")


def texts(contents: Contents) -> dict[str, str]:
    """Return the files that are text (UTF-8 without NUL), as text."""
    found = {}
    for path, file in contents.items():
        text = _text(file)
        if text is not None:
            found[path] = text
    return found


def binary_paths(contents: Contents) -> list[str]:
    """Return the sorted paths of all that is not text, symbolic links and submodules included."""
    return sorted(path for path, file in contents.items() if _text(file) is None)


def replace_texts(old: Contents, resources: Mapping[str, str], keep_binary: Collection[str]) -> dict[str, File]:
    """Return the package that ``resources`` describes, whole, plus the binary files that stay.

    A text file that is not in ``resources`` is gone; a binary file of ``old`` stays when ``keep_binary``
    names it. Files keep their modes.

    Raises:
        ContentsError: a text is not valid Unicode or contains NUL.

    Source: ``porch-api.md`` 5.2 step 4, ``decisions.md`` 10.
    """
    new = {path: file for path, file in old.items() if path in keep_binary and _text(file) is None}
    for path, text in resources.items():
        if "\0" in text:
            raise ContentsError(path, "the text contains a NUL character")
        try:
            data = text.encode()
        except UnicodeEncodeError:
            raise ContentsError(path, "the text is not valid Unicode") from None
        before = old.get(path)
        new[path] = File(data, before.mode if before and before.mode in (REGULAR, EXECUTABLE) else REGULAR)
    return new


def _text(file: File) -> str | None:
    if file.mode in (SYMLINK, SUBMODULE) or b"\0" in file.data:
        return None
    try:
        return file.data.decode()
    except UnicodeDecodeError:
        return None


def _segment_problem(name: str) -> str:
    if not name:
        return "the path contains an empty segment"
    if name in (".", ".."):
        return f"the path contains the segment {name!r}"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"a segment of the path is longer than {MAX_NAME_BYTES} bytes"
    # NTFS ignores trailing dots and spaces, and reads what follows a colon as a stream's name.
    folded = name.translate(_IGNORED_BY_HFS).casefold().split(":")[0].rstrip(" .")
    if folded in _GIT_NAMES:
        return f"the segment {name!r} names Git's own directory on some file system"
    if not folded:
        return f"the segment {name!r} names no file on some file system"
    return ""


def _refuse_clashes(contents: Contents) -> None:
    seen: dict[str, str] = {}
    for path in contents:
        normal = path if path.isascii() else unicodedata.normalize("NFC", path)
        if normal in seen:
            raise ContentsError(path, f"the same path as {seen[normal]!r} once normalised")
        seen[normal] = path
    for normal, path in seen.items():
        end = normal.rfind("/")
        while end > 0:
            if normal[:end] in seen:
                raise ContentsError(path, f"{normal[:end]!r} is a file and a directory at once")
            end = normal.rfind("/", 0, end)
