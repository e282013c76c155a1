"""Objects of one clone on disk: packs that were received, loose files that we wrote, and their consolidation.

Readers never take the lock: they see one tuple of packs, which writers replace as a whole.
"""

import errno
import os
import re
import subprocess
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import structlog
from dulwich.pack import write_pack_index_v2

from storage.git.carriers import git_environment
from storage.git.errors import CorruptObject, DiskFull, LimitExceeded, ObjectMissing
from storage.git.objects import GitObject, Kind, git_object
from storage.git.packfile import KIND_NUMBERS, PackFile, PackLimits, index_pack
from storage.git.packwriter import write_pack

log = structlog.get_logger(__name__)

GIT_INDEXES_ABOVE = 32 << 20
"""Bytes of a pack above which a git process indexes it. At 11 MB and 41,000 objects Python takes 1.2 s and git 1.4–2.0;
above, what counts is that git works outside this process: its memory, and its lock on the interpreter."""

OID_LENGTH = 40
"""Digits of an id."""

EMPTY_PACK = 32
"""Bytes of a pack without objects."""

INDEX_SECONDS = 900
"""Longest time a git process may take over one pack."""

WORTH_A_PACK = 8
"""Objects from which one pack costs less than as many files."""

LOOSE_LIMIT = 2000
"""Loose objects after which consolidation packs them."""

PACK_LIMIT = 24
"""Packs after which consolidation merges the small ones; every miss asks every pack."""

SMALL_PACK = 32 << 20
"""Bytes up to which a pack is merged with others."""

_ORDER: dict[Kind, int] = {"blob": 0, "tree": 1, "commit": 2, "tag": 3}
_OID = re.compile(r"[0-9a-f]{40}")
_LEVEL = 1


class ObjectStore:
    """The ``objects`` directory at ``path``; safe from many threads of one process."""

    def __init__(self, path: Path, *, git: str | None, limits: PackLimits) -> None:
        self._path = path
        self._packs_path = path / "pack"
        self._git = git
        self._limits = limits
        self._lock = threading.RLock()
        self._consolidating = threading.Lock()
        self._packs: tuple[PackFile, ...] = ()
        self._loose = 0
        self._load()

    @property
    def pack_count(self) -> int:
        """How many packs there are."""
        return len(self._packs)

    @property
    def scattered(self) -> bool:
        """Whether consolidation has something to do."""
        return self._loose > LOOSE_LIMIT or len(self._packs) > PACK_LIMIT

    def read(self, oid: str) -> GitObject:
        """Return an object.

        Raises:
            ObjectMissing: it is nowhere here, or its file is broken.
            LimitExceeded: it is larger than allowed.
        """
        raw = _raw(oid)
        seen = self._packs
        found = _in_packs(seen, raw) or self._read_loose(oid)
        if found is None and self._packs is not seen:
            # Consolidation moved it between the two looks.
            found = _in_packs(self._packs, raw)
        if found is None:
            raise ObjectMissing(oid)
        return GitObject(found[0], found[1], oid)

    def has(self, oid: str) -> bool:
        """Tell whether an object is here."""
        try:
            raw = _raw(oid)
        except ObjectMissing:
            return False
        return any(pack.offset(raw) is not None for pack in self._packs) or self._loose_path(oid).exists()

    def add(self, objects: Sequence[GitObject]) -> None:
        """Write objects: a few as loose files, contents before what refers to them, more as a pack.

        What is here already may be written again; looking for it would cost more.

        Raises:
            DiskFull: there is no room; what was written is complete objects nobody refers to.
        """
        new = {item.oid: item for item in objects}
        with disk_errors():
            if len(new) >= WORTH_A_PACK:
                self._add_pack(new)
                return
            for item in sorted(new.values(), key=lambda item: _ORDER[item.kind]):
                self._write_loose(item)

    def _add_pack(self, new: Mapping[str, GitObject]) -> None:
        """Write objects as one pack. It is not forced to the disk: what a power cut takes is in the remote."""
        handle, name = tempfile.mkstemp(prefix="tmp_pack_", suffix=".pack", dir=self._packs_path)
        path = Path(name)
        index = path.with_suffix(".idx")
        try:
            with os.fdopen(handle, "wb") as file:
                written = write_pack(file, list(new), new.__getitem__)
            with index.open("wb") as file:
                write_pack_index_v2(file, written.rows, written.checksum)
            final = self._packs_path / f"pack-{written.checksum.hex()}"
            path.rename(final.with_suffix(".pack"))
            index.rename(final.with_suffix(".idx"))
            with self._lock:
                self._packs = (*self._packs, PackFile(final, self._limits))
        finally:
            path.unlink(missing_ok=True)
            index.unlink(missing_ok=True)

    def receive(self, fill: Callable[[Callable[[bytes], None]], None]) -> int:
        """Store one pack that ``fill`` writes to the sink it is given; returns its bytes.

        Raises:
            LimitExceeded: more bytes, objects or depth than allowed; the store is as it was.
            CorruptObject: it is no sound pack; the store is as it was.
            DiskFull: there is no room; the store is as it was.
        """
        handle, name = tempfile.mkstemp(prefix="tmp_pack_", suffix=".pack", dir=self._packs_path)
        path = Path(name)
        try:
            with disk_errors():
                with os.fdopen(handle, "wb") as file:
                    fill(_bounded(file, self._limits.pack))
                    size = file.tell()
                    file.flush()
                    os.fsync(file.fileno())
                if size:
                    self._adopt(path, size)
        finally:
            for leftover in (path, path.with_suffix(".idx")):
                leftover.unlink(missing_ok=True)
        return size

    def consolidate(self, *, force: bool = False) -> None:
        """Pack loose objects when they are many, and merge small packs when those are; ``force`` always."""
        with self._consolidating, disk_errors():
            if self._loose > LOOSE_LIMIT or (force and self._loose):
                self._pack_loose()
            if len(self._packs) > PACK_LIMIT or force:
                small = [pack for pack in self._packs if pack.size < SMALL_PACK]
                self._merge(small if force else worth_merging(small))

    def _adopt(self, path: Path, size: int) -> None:
        """Index a complete pack and give it its final name."""
        if size == EMPTY_PACK and _slice(path, 0, 12) == b"PACK\0\0\0\2\0\0\0\0":
            return
        if not (self._git and size > GIT_INDEXES_ABOVE and self._index_with_git(path)):
            index_pack(path, self._limits)
        final = self._packs_path / f"pack-{_slice(path, -20, 20).hex()}"
        with self._lock:
            path.rename(final.with_suffix(".pack"))
            path.with_suffix(".idx").rename(final.with_suffix(".idx"))
            self._scan()

    def _index_with_git(self, path: Path) -> bool:
        """Let git write the index; False if it does not, and then Python says what is wrong."""
        # Paths are ours and absolute, so none can be taken for an option.
        argv = [str(self._git), "index-pack", "-o", str(path.with_suffix(".idx")), str(path)]
        environment = git_environment() | {"GIT_DIR": str(self._path.parent)}
        try:
            done = subprocess.run(
                argv, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=INDEX_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        for leftover in path.parent.glob(f"{path.stem}*.rev"):
            leftover.unlink()
        return done.returncode == 0 and path.with_suffix(".idx").exists()

    def _load(self) -> None:
        """Open what is there; drop what a crash left half-written."""
        for stale in (*self._packs_path.glob("tmp_*"), *self._path.glob("??/new_*")):
            stale.unlink(missing_ok=True)
        with self._lock:
            self._scan()
            self._loose = sum(1 for _ in self._loose_files())

    def _scan(self) -> None:
        known = {pack.base.name: pack for pack in self._packs}
        packs: list[PackFile] = []
        for index in self._packs_path.glob("pack-*.idx"):
            base = index.with_suffix("")
            try:
                packs.append(known.get(base.name) or PackFile(base, self._limits))
            except (CorruptObject, OSError, AssertionError, ValueError) as error:
                log.warning("broken pack dropped", pack=base.name, problem=type(error).__name__)
                for name in (index, base.with_suffix(".pack")):
                    name.unlink(missing_ok=True)
        packs.sort(key=lambda pack: pack.count, reverse=True)
        self._packs = tuple(packs)

    def _loose_path(self, oid: str) -> Path:
        return self._path / oid[:2] / oid[2:]

    def _loose_files(self) -> Iterator[tuple[str, Path]]:
        for folder in self._path.iterdir():
            if len(folder.name) == 2:  # noqa: PLR2004 -- the first byte of an id
                for file in folder.iterdir():
                    if _OID.fullmatch(folder.name + file.name):
                        yield folder.name + file.name, file

    def _write_loose(self, item: GitObject) -> None:
        # Strings and system calls, not Path: this runs for every object of every approval.
        folder = f"{self._path}/{item.oid[:2]}"
        name = f"{folder}/{item.oid[2:]}"
        if os.access(name, os.F_OK):
            return
        data = zlib.compress(b"%s %d\0" % (item.kind.encode(), len(item.data)) + item.data, _LEVEL)
        temporary = f"{folder}/new_{threading.get_ident():x}_{item.oid[:12]}"
        try:
            try:
                _write(temporary, data)
            except FileNotFoundError:
                os.makedirs(folder, exist_ok=True)  # noqa: PTH103 -- see above
                _write(temporary, data)
            os.rename(temporary, name)  # noqa: PTH104 -- see above
        except OSError:
            with suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108 -- see above
            raise
        self._loose += 1

    def _read_loose(self, oid: str) -> tuple[Kind, bytes] | None:
        path = self._loose_path(oid)
        try:
            packed = path.read_bytes()
        except FileNotFoundError:
            return None
        engine = zlib.decompressobj()
        try:
            plain = engine.decompress(packed, self._limits.object + 64)
        except zlib.error:
            plain = b""
        if engine.unconsumed_tail and not engine.eof:
            raise LimitExceeded(f"an object is over the limit of {self._limits.object} bytes")
        head, _, data = plain.partition(b"\0")
        kind = head.partition(b" ")[0].decode("ascii", "replace")
        if kind in KIND_NUMBERS and git_object(kind, data).oid == oid:
            return kind, data
        # Torn by a crash of the machine: better missing, and fetched again, than wrong.
        log.warning("broken object dropped", oid=oid)
        path.unlink(missing_ok=True)
        return None

    def _pack_loose(self) -> None:
        files = dict(self._loose_files())
        self._write_pack([oid for oid in files if self._read_loose(oid) is not None])
        for path in files.values():
            path.unlink(missing_ok=True)
        self._loose -= len(files)

    def _merge(self, small: Sequence[PackFile]) -> None:
        if len(small) < 2:  # noqa: PLR2004 -- one pack is together already
            return
        ids = {raw.hex() for pack in small for raw, _ in pack.ids()}
        made = self._write_pack(sorted(ids))
        for pack in small:
            if pack.base.name != made:
                pack.base.with_suffix(".idx").unlink(missing_ok=True)
                pack.base.with_suffix(".pack").unlink(missing_ok=True)
        with self._lock:
            self._scan()

    def _write_pack(self, oids: Sequence[str]) -> str:
        """Write one pack of these objects and adopt it; returns its base name."""
        if not oids:
            return ""
        handle, name = tempfile.mkstemp(prefix="tmp_pack_", suffix=".pack", dir=self._packs_path)
        path = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                write_pack(file, oids, self.read)
                size = file.tell()
                file.flush()
                os.fsync(file.fileno())
            made = f"pack-{_slice(path, -20, 20).hex()}"
            self._adopt(path, size)
        finally:
            for leftover in (path, path.with_suffix(".idx")):
                leftover.unlink(missing_ok=True)
        return made


def worth_merging(packs: Sequence[PackFile]) -> list[PackFile]:
    """Choose the packs to put together: all that are not much larger than the smaller ones in sum.

    Every object is then rewritten a logarithmic number of times, however many pushes there are.
    """
    ordered = sorted(packs, key=lambda pack: pack.count)
    chosen = smaller = 0
    for number, pack in enumerate(ordered, start=1):
        if pack.count < 2 * smaller:
            chosen = number
        smaller += pack.count
    return ordered[:chosen]


@contextmanager
def disk_errors() -> Iterator[None]:
    """Turn "no space left" into its type.

    Raises:
        DiskFull: the disk or the quota is used up.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull("the disk that holds the Git clones is full") from error
        raise


def _raw(oid: str) -> bytes:
    """Turn an id into its 20 bytes; what is no id names no object, and no file."""
    try:
        raw = bytes.fromhex(oid)
    except ValueError:
        raw = b""
    if len(raw) * 2 != len(oid) or len(oid) != OID_LENGTH:
        raise ObjectMissing(oid[:OID_LENGTH])
    return raw


def _in_packs(packs: tuple[PackFile, ...], raw: bytes) -> tuple[Kind, bytes] | None:
    for pack in packs:
        offset = pack.offset(raw)
        if offset is not None:
            return pack.read_at(offset)
    return None


def _bounded(file: IO[bytes], limit: int) -> Callable[[bytes], None]:
    def sink(data: bytes) -> None:
        if file.tell() + len(data) > limit:
            raise LimitExceeded(f"the remote's pack is over the limit of {limit} bytes")
        file.write(data)

    return sink


def _write(path: str, data: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        while data:
            data = data[os.write(handle, data) :]
    finally:
        os.close(handle)


def _slice(path: Path, at: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
        return file.read(size)
