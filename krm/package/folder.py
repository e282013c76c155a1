"""A package as a folder on disk: read whole, written back file by file, each replaced in one step.

What is in a package is decided by ``contents``; ``.git`` is never part of one, and symbolic links are
entries of their own that nothing is read or written through. Source: ``kpt.md`` 1.7 and 2.11.
"""

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from krm.package.contents import (
    EXECUTABLE,
    MAX_FILES,
    MAX_PATH_BYTES,
    MAX_TOTAL_BYTES,
    SUBMODULE,
    SYMLINK,
    Contents,
    ContentsError,
    File,
    check_contents,
)

_REPOSITORY = ".git"
_TEMPORARY = ".porch-{}.tmp"
_LEFT_BEHIND = re.compile(r"\.porch-[0-9a-f]{16}\.tmp\Z")
"""What a write that was killed leaves; no part of the package."""
_EXECUTE_BITS = 0o111
_READ_BITS = 0o444
_ALL_BITS = 0o777


def read_folder(path: Path) -> dict[str, File]:
    """Read a package, in lexical order; ``path`` itself may be a symbolic link to its directory.

    Links below are kept as entries and not followed; ``.git`` is left out at every level.

    Raises:
        OSError: the directory or a file cannot be read.
        ContentsError: something in it cannot be part of a package, or it is over a limit.

    Source: ``kpt.md`` 1.7.
    """
    root = path.resolve(strict=True)
    contents: dict[str, File] = {}
    left = MAX_TOTAL_BYTES
    for name, mode in _entries(root):
        if len(contents) == MAX_FILES:
            raise ContentsError("", f"the package has more than {MAX_FILES} files")
        file = _read(root, name, mode, left)
        contents[name] = file
        left -= len(file.data)
    check_contents(contents)
    return contents


def write_folder(path: Path, old: Contents, new: Contents) -> None:
    """Change the folder from ``old`` to ``new``: only files that differ are touched, deletions come last.

    Every file is written beside its place and renamed into it, so an interruption leaves each file old or
    new and whole; running again completes the change. Directories that become empty are left
    (``kpt.md`` 2.11). A file that is replaced keeps its permissions, apart from the execute bits.

    Raises:
        ContentsError: ``new`` is no package, holds a submodule, or a directory on a path to be changed is
            a symbolic link or a file that is not part of the change. Nothing has been written then.
        OSError: the disk refused; files already written stay.
    """
    check_contents(new)
    changed = {name: file for name, file in new.items() if old.get(name) != file}
    gone = [name for name in old if name not in new]
    submodule = next((name for name, file in changed.items() if file.mode == SUBMODULE), None)
    if submodule is not None:
        raise ContentsError(submodule, "a submodule cannot be written to a folder")
    path.mkdir(parents=True, exist_ok=True)
    root = path.resolve(strict=True)
    removed = frozenset(gone)
    for directory in {parent for name in (*changed, *gone) for parent in _parents(name)}:
        _require_directory(root, directory, removed)
    in_the_way = _in_the_way(changed, gone)
    for name in in_the_way:
        _remove(root, name)
    for name in changed:
        _clear_directory(root, name)
    for name, file in changed.items():
        _write(root, name, file)
    for name in gone:
        if name not in in_the_way:
            _remove(root, name)


def _entries(root: Path) -> Iterator[tuple[str, int]]:
    """Yield path and mode of all that is not a directory, depth first in lexical order."""
    todo = [""]
    while todo:
        directory = todo.pop()
        if not directory or directory.endswith("/"):
            if len(os.fsencode(directory)) > MAX_PATH_BYTES:
                raise ContentsError(directory, f"the path is longer than {MAX_PATH_BYTES} bytes")
            with os.scandir(root / directory) as found:
                names = [
                    directory + entry.name + ("/" if entry.is_dir(follow_symlinks=False) else "")
                    for entry in found
                    if entry.name != _REPOSITORY and not _LEFT_BEHIND.match(entry.name)
                ]
            todo.extend(sorted(names, reverse=True))
        else:
            yield directory, (root / directory).lstat().st_mode


def _read(root: Path, name: str, mode: int, most: int) -> File:
    """Read one entry of at most ``most`` bytes."""
    if stat.S_ISLNK(mode):
        return File(os.fsencode((root / name).readlink()), SYMLINK)
    if not stat.S_ISREG(mode):
        raise ContentsError(name, "neither a file, a directory nor a symbolic link")
    with open(os.open(root / name, os.O_RDONLY | os.O_NOFOLLOW), "rb") as stream:  # noqa: PTH123 - Path.open follows links
        data = stream.read(most + 1)
    if len(data) > most:
        raise ContentsError("", f"the package is larger than {MAX_TOTAL_BYTES >> 20} MiB")
    return File(data, EXECUTABLE) if mode & stat.S_IXUSR else File(data)


def _parents(name: str) -> Iterator[str]:
    end = name.rfind("/")
    while end > 0:
        yield name[:end]
        end = name.rfind("/", 0, end)


def _require_directory(root: Path, directory: str, removed: frozenset[str]) -> None:
    try:
        mode = (root / directory).lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISDIR(mode) or directory in removed:
        return
    what = "a symbolic link" if stat.S_ISLNK(mode) else "a file"
    raise ContentsError(directory, f"is {what} where the package has a directory; remove it first")


def _in_the_way(changed: Contents, gone: list[str]) -> frozenset[str]:
    """Return what must go before anything is written: files for new directories, and the reverse."""
    needed = {parent for name in changed for parent in _parents(name)}
    return frozenset(name for name in gone if name in needed or any(parent in changed for parent in _parents(name)))


def _clear_directory(root: Path, name: str) -> None:
    """Remove the empty directories at the place of a file; one that still holds something refuses."""
    place = root / name
    if place.is_dir() and not place.is_symlink():
        for directory, _, _ in os.walk(place, topdown=False):
            Path(directory).rmdir()


def _remove(root: Path, name: str) -> None:
    with suppress(FileNotFoundError):
        (root / name).unlink()


def _write(root: Path, name: str, file: File) -> None:
    place = root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = place.with_name(_TEMPORARY.format(secrets.token_hex(8)))
    try:
        if file.mode == SYMLINK:
            temporary.symlink_to(os.fsdecode(file.data))
        else:
            _write_file(temporary, place, file)
        temporary.replace(place)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _write_file(temporary: Path, place: Path, file: File) -> None:
    # Created with all permissions that the umask grants, as any program's new file is.
    wanted = _ALL_BITS if file.mode == EXECUTABLE else _ALL_BITS & ~_EXECUTE_BITS
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, wanted), "wb") as stream:  # noqa: PTH123 - Path.open takes no mode
        stream.write(file.data)
    with suppress(FileNotFoundError):
        before = place.lstat().st_mode
        if stat.S_ISREG(before):
            permissions = stat.S_IMODE(before) & _ALL_BITS & ~_EXECUTE_BITS
            if file.mode == EXECUTABLE:
                permissions |= (permissions & _READ_BITS) >> 2
            temporary.chmod(permissions)
