"""A small file whose content is kept parsed and read again when it changes."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import structlog

MAX_BYTES = 256 * 1024
"""Bytes of such a file, which is read in the event loop: 2,500 tokens, 5 ms."""
LOOK_SECONDS = 1.0
"""Seconds between two looks at the file: how long a change may go unnoticed."""

T = TypeVar("T")
log = structlog.get_logger()


class UnusableFile(Exception):
    """The file cannot be read or understood; the message names it and never shows its content."""


class WatchedFile(Generic[T]):
    """The parsed content of ``path``; ``parse`` raises ValueError, with a message without secrets."""

    def __init__(self, path: Path, parse: Callable[[str], T], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._parse = parse
        self._clock = clock
        self._looked = float("-inf")
        self._seen: tuple[int, int, int] | None = None
        self._content: T | None = None

    def load(self) -> T:
        """Read the file now.

        Raises:
            UnusableFile: it is missing, too large, or not what it should be.
        """
        try:
            stat = self._path.stat()
            if stat.st_size > MAX_BYTES:
                raise UnusableFile(f"{self._path} is larger than {MAX_BYTES} bytes")
            content = self._parse(self._path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UnusableFile(f"{self._path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            why = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
            raise UnusableFile(f"{self._path} cannot be used: {why}") from error
        self._seen, self._content = (stat.st_mtime_ns, stat.st_size, stat.st_ino), content
        return content

    def current(self) -> T | None:
        """Return the content as of a second ago; a file that became unusable leaves what was read last in force.

        None while nothing could be read yet.
        """
        if self._clock() - self._looked >= LOOK_SECONDS:
            self._looked = self._clock()
            self._look()
        return self._content

    def _look(self) -> None:
        try:
            stat = self._path.stat()
        except OSError:
            return
        seen = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        if seen == self._seen:
            return
        try:
            self.load()
        except UnusableFile as error:
            log.warning("file not reloaded; what was read before stays in force", error=str(error))
            self._seen = seen
