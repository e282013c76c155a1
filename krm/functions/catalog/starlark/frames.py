"""What the server and the child process say to each other: frames of a length and that many bytes."""

import struct
from typing import IO

READY = b"ready"
"""The first frame of a child process, before any request."""
_LENGTH = struct.Struct(">I")


class BrokenFrame(Exception):
    """The other side ended in the middle of a frame, or announced one that is too large."""


def write_frame(stream: IO[bytes], data: bytes) -> None:
    """Write one frame; the caller flushes."""
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)


def read_frame(stream: IO[bytes], limit: int) -> bytes | None:
    """Return the next frame of at most ``limit`` bytes, None at the end of the stream.

    Raises:
        BrokenFrame: see there.
    """
    header = stream.read(_LENGTH.size)
    if not header:
        return None
    if len(header) < _LENGTH.size:
        raise BrokenFrame("ended inside a header")
    (length,) = _LENGTH.unpack(header)
    if length > limit:
        raise BrokenFrame(f"a frame of {length} bytes is over the limit of {limit}")
    data = stream.read(length)
    if len(data) < length:
        raise BrokenFrame("ended inside a frame")
    return data
