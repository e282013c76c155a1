"""The refs of the remote as last seen: a dictionary in memory, ``packed-refs`` and a journal on disk.

A push changes two or three of 10,000 refs; it appends to the journal instead of rewriting the file. The journal is
named after the checksum of the file it continues, so one that outlived its file is never applied. A crash may lose
journal lines: the next listing of the remote repairs that.
"""

import re
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

MAX_JOURNAL = 1 << 20
"""Bytes; then the journal is folded into the file."""

_HEAD = b"# pack-refs with: sorted \n"
_LINE = re.compile(rb"([0-9a-f]{40}) (refs/[^\n ]+)\n")


class RefStore:
    """Remembers refs in the bare repository at ``path``. Callers serialise writes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path / "packed-refs"
        self._journal = path
        self._refs = self._load()

    @property
    def refs(self) -> Mapping[str, str]:
        """Full name → hex id; a view that never changes afterwards."""
        return MappingProxyType(self._refs)

    def replace(self, refs: Mapping[str, str]) -> None:
        """Remember exactly these refs."""
        self._refs = dict(refs)
        rows = sorted((name.encode(), oid.encode()) for name, oid in refs.items())
        data = _HEAD + b"".join(b"%s %s\n" % (oid, name) for name, oid in rows)
        temporary = self._file.with_suffix(".new")
        temporary.write_bytes(data)
        temporary.replace(self._file)
        old, self._journal = self._journal, self._journal_of(data)
        if old != self._journal:
            with suppress(OSError):
                old.unlink()

    def change(self, updates: Mapping[str, str | None]) -> None:
        """Remember some changed refs; None removes one."""
        changed = dict(self._refs)
        for name, oid in updates.items():
            if oid is None:
                changed.pop(name, None)
            else:
                changed[name] = oid
        self._refs = changed
        lines = b"".join(b"%s %s\n" % ((oid or "0" * 40).encode(), name.encode()) for name, oid in updates.items())
        with self._journal.open("ab") as journal:
            journal.write(lines)
            full = journal.tell() > MAX_JOURNAL
        if full:
            self.replace(changed)

    def _load(self) -> dict[str, str]:
        try:
            data = self._file.read_bytes()
        except FileNotFoundError:
            data = b""
        self._journal = self._journal_of(data)
        refs = {name.decode(errors="replace"): oid.decode() for oid, name in _LINE.findall(data)}
        for stale in self._path.glob("porch-journal-*"):
            if stale != self._journal:
                with suppress(OSError):
                    stale.unlink()
        with suppress(FileNotFoundError):
            for oid, name in _LINE.findall(self._journal.read_bytes()):
                refs.pop(name.decode(errors="replace"), None)
                if oid != b"0" * 40:
                    refs[name.decode(errors="replace")] = oid.decode()
        return refs

    def _journal_of(self, data: bytes) -> Path:
        return self._path / f"porch-journal-{zlib.crc32(data):08x}-{len(data)}"


def create_bare(path: Path) -> None:
    """Make the few files that make a directory a bare repository, for us and for git itself."""
    for folder in ("objects/pack", "objects/info", "refs/heads", "refs/tags"):
        (path / folder).mkdir(parents=True, exist_ok=True)
    config = b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n\thooksPath = /dev/null\n[gc]\n\tauto = 0\n"
    for name, data in (("HEAD", b"ref: refs/heads/main\n"), ("config", config)):
        if not (path / name).exists():
            temporary = path / f"{name}.new"
            temporary.write_bytes(data)
            temporary.replace(path / name)


def is_bare(path: Path) -> bool:
    """Tell whether the directory looks like a bare repository."""
    return all((path / name).exists() for name in ("HEAD", "config", "objects/pack", "refs"))
