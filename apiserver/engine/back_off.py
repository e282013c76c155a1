"""How long to wait before a remote is tried again: longer each time, and by what is wrong rather than by its text.

Source: ``porch-api.md`` 7.3 (retry intervals).
"""

from typing import Final

from apiserver.engine.remote_access import CredentialsProblem
from storage.git.errors import (
    AuthenticationFailed,
    BranchMissing,
    GitError,
    HostKeyUnknown,
    NotARepository,
    RemoteUnavailable,
    UnsafeAddress,
)


class UnsupportedRepository(GitError):
    """A Repository of a type that the server keeps, but does not read."""


_DELAYS: Final[tuple[tuple[type[Exception], float, float], ...]] = (
    (UnsafeAddress, 3600, 3600),
    (UnsupportedRepository, 3600, 3600),
    (AuthenticationFailed, 10, 600),
    (CredentialsProblem, 10, 600),
    (HostKeyUnknown, 10, 600),
    (NotARepository, 1, 120),
    (BranchMissing, 1, 120),
    (RemoteUnavailable, 1, 60),
)
"""(kind of failure, seconds before the first retry, and at most). What only its object can mend waits for that to change;
refused credentials are not tried often, or an account is locked; a new Secret is tried at once in any case."""
_OTHERS: Final = (1.0, 300.0)


class BackOff:
    """The delays between the attempts at one repository; they double while the same kind of failure goes on."""

    def __init__(self) -> None:
        self._kind: type[Exception] | None = None
        self._delay = 0.0

    def after(self, error: Exception) -> float:
        """Return the seconds to wait after a failure."""
        kind, first, last = next((row for row in _DELAYS if isinstance(error, row[0])), (type(error), *_OTHERS))
        self._delay = min(self._delay * 2, last) if kind is self._kind else first
        self._kind = kind
        return self._delay

    def reset(self) -> None:
        """Begin anew after a success."""
        self._kind, self._delay = None, 0.0
