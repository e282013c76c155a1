"""A push leaves in parts, and before each of them it is asked once more whether it may.

A remote changes nothing before it has the whole of a push: its commands end with a flush, its pack with a checksum. So one that
ends early has changed nothing, and who was stopped while it was sent, for however long, can still let it be.
"""

from collections.abc import Callable, Iterator

from storage.git.errors import PushWithdrawn

PART = 1 << 16
"""Bytes."""

MaySend = Callable[[], bool]
"""Whether a push may still be sent. Asked by the thread that sends it, often and at the last moment, so it must be quick."""


def always() -> bool:
    """Return True: nobody withdraws this push."""
    return True


def parts(address: str, body: bytes, may_send: MaySend) -> Iterator[bytes]:
    """Give out a push part by part, each only if it may still leave.

    Raises:
        PushWithdrawn: it may not.
    """
    for at in range(0, len(body), PART):
        require(address, may_send)
        yield body[at : at + PART]


def require(address: str, may_send: MaySend) -> None:
    """Refuse to send any more of a push that may not leave.

    Raises:
        PushWithdrawn: it may not.
    """
    if not may_send():
        raise PushWithdrawn(address)
