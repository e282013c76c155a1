"""What a program that still runs has logged so far."""

from pathlib import Path


def logged_lines(log: Path, since: int = 0) -> list[str]:
    """Return the lines after ``since`` bytes that were written to their end: the last one may be on its way."""
    if not log.exists():
        return []
    return log.read_bytes()[since:].rpartition(b"\n")[0].decode().splitlines()
