"""The file of the audit log: lines are collected in memory and written by a thread, in order, into a file that rotates.

Nothing that was accepted is dropped: when the file cannot be written, lines wait; when too many wait, ``room`` says
so, and whoever asks must not do what could not be recorded. Source: ``kube-api.md`` 3.5.
"""

import asyncio
import os
import threading
import time
from io import FileIO
from pathlib import Path

import structlog

MAX_WAITING = 16 * 1024 * 1024
"""Bytes of lines that may wait to be written."""
ROOM_SECONDS = 5.0
"""Seconds to wait for room."""
RETRY_SECONDS = 1.0
"""Pause after a write that failed."""
CLOSE_SECONDS = 2.0
"""Seconds that a stop waits for a file that cannot be written."""
_MODE = 0o600

log = structlog.get_logger()


class AuditLogUnusable(Exception):
    """The file cannot be opened for writing."""


class AuditLogFile:
    """Lines appended to ``path``; at ``max_bytes`` it becomes ``path.1``, and so on up to ``backups`` old files."""

    def __init__(self, path: Path, *, max_bytes: int, backups: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._backups = backups
        self._changed = threading.Condition()
        self._waiting: list[bytes] = []
        self._size = 0
        self._closing = False
        self._room = asyncio.Event()
        self._room.set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._write_all, name="audit log", daemon=True)

    def start(self) -> None:
        """Open the file and begin to write; called in the event loop.

        Raises:
            AuditLogUnusable: the file cannot be opened.
        """
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._open().close()
        except OSError as error:
            raise AuditLogUnusable(f"the audit log {self._path} cannot be written: {error.strerror}") from error
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    def append(self, line: bytes) -> None:
        """Accept one line; it is written within moments."""
        with self._changed:
            self._waiting.append(line)
            self._size += len(line)
            if self._size > MAX_WAITING:
                self._room.clear()
            self._changed.notify()

    async def room(self) -> bool:
        """Wait until lines can be accepted; False when that takes too long."""
        if self._room.is_set():
            return True
        try:
            async with asyncio.timeout(ROOM_SECONDS):
                await self._room.wait()
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """Write what was accepted, bring it to the disk, and end; a second call does nothing."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, CLOSE_SECONDS)
            if self._thread.is_alive():
                self._complain("audit log not finished; lines are lost", f"{self._size} bytes wait")

    def _write_all(self) -> None:
        """Write until closed; the thread's whole life."""
        file: FileIO | None = None
        while True:
            lines = self._take()
            if not lines:
                break
            try:
                file = self._write(file or self._open(), lines)
            except OSError as error:
                self._complain("audit log not written; lines are kept", error.strerror)
                file = None
                with self._changed:
                    self._waiting = [*lines, *self._waiting]
                time.sleep(RETRY_SECONDS)
            else:
                self._written(lines)
        if file is not None:
            file.close()

    def _complain(self, message: str, why: str | None) -> None:
        log.error(message, path=str(self._path), error=why)

    def _take(self) -> list[bytes]:
        """Wait for lines and take them; none means that the log is closed."""
        with self._changed:
            while not self._waiting and not self._closing:
                self._changed.wait()
            lines, self._waiting = self._waiting, []
        return lines

    def _written(self, lines: list[bytes]) -> None:
        with self._changed:
            self._size -= sum(map(len, lines))
            has_room = self._size <= MAX_WAITING
        if has_room and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._room.set)

    def _write(self, file: FileIO, lines: list[bytes]) -> FileIO:
        position = file.seek(0, os.SEEK_END)
        if position >= self._max_bytes:
            file.close()
            self._rotate()
            file, position = self._open(), 0
        try:
            rest = memoryview(b"".join(lines))
            while rest:
                rest = rest[file.write(rest) :]
            if self._closing:
                os.fsync(file.fileno())
        except OSError:
            # Half a line must not stay: all of it will be written again.
            file.truncate(position)
            file.close()
            raise
        return file

    def _rotate(self) -> None:
        for number in range(self._backups, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            newer = self._path.with_name(f"{self._path.name}.{number - 1}") if number > 1 else self._path
            if newer.exists():
                newer.replace(older)
        if not self._backups:
            self._path.unlink()

    def _open(self) -> FileIO:
        # Unbuffered: what write accepted is with the operating system, and a failure is known at once.
        return FileIO(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _MODE), "a")
