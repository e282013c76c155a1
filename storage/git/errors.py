"""What can go wrong with a clone or its remote, as types the engine can translate.

Messages never hold user information of an address, credentials or server text that was not cut to a bounded length.
"""

from collections.abc import Mapping

from storage.git.ref_status import RefStatus, ref_status


class GitError(Exception):
    """Anything this package raises on purpose."""


class RemoteUnavailable(GitError):
    """The remote cannot be reached now: name, connection, certificate, time or a 5xx answer."""

    def __init__(self, address: str, problem: str, *, outcome_unknown: bool = False) -> None:
        super().__init__(f"{address}: {problem}")
        self.address = address
        self.problem = problem
        self.outcome_unknown = outcome_unknown
        """True when a push may have happened although its answer never came; list the remote to learn."""


class AuthenticationFailed(GitError):
    """The remote refuses the credentials, or wants some."""


class HostKeyUnknown(GitError):
    """An SSH server showed a key that nobody vouched for; nothing was sent to it."""


class NotARepository(GitError):
    """The address answers, but not as a Git repository."""


class RefMoved(GitError):
    """A compare-and-swap lost; ``moved`` holds the actual value of each ref that differs (None: absent)."""

    def __init__(self, moved: Mapping[str, str | None]) -> None:
        shown = ", ".join(f"{ref} is at {oid or 'nothing'}" for ref, oid in sorted(moved.items())[:3])
        super().__init__(f"the remote moved: {shown}")
        self.moved = dict(moved)


class PushRejected(GitError):
    """The remote refuses the update for a reason of its own: hook, protected branch, quota.

    ``reasons`` is what was said about each ref (``*``: about all), ``said`` what the remote told people besides.
    """

    def __init__(self, reasons: Mapping[str, str], said: str = "") -> None:
        shown = "; ".join(f"{ref}: {why}" for ref, why in sorted(reasons.items())[:3])
        super().__init__(f"the remote refuses the push: {shown}")
        self.reasons = dict(reasons)
        self.said = said

    @property
    def blamed(self) -> dict[str, str]:
        """The refs that are at fault, without those that share a push with them."""
        at_fault = {ref: why for ref, why in self.reasons.items() if ref_status(why) is not RefStatus.COLLATERAL}
        return at_fault or self.reasons

    @property
    def transient(self) -> bool:
        """Whether the same push may well go through in a moment."""
        return not any(ref_status(why) is RefStatus.DECLINED for why in self.reasons.values())


class PushWithdrawn(GitError):
    """A push was not sent, or not to its end, because whoever asked for it may push no longer; the remote changed nothing."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"{address}: the push was withdrawn before it had left, because this server may have lost its turn"
        )
        self.address = address


class ObjectMissing(GitError):
    """An object is not in the clone."""

    def __init__(self, oid: str) -> None:
        super().__init__(f"Git object {oid} is not in the clone")
        self.oid = oid


class BranchMissing(GitError):
    """The registered branch does not exist in the remote."""

    def __init__(self, branch: str) -> None:
        super().__init__(f'branch "{branch}" doesn\'t exist')
        self.branch = branch


class DiskFull(GitError):
    """The disk that holds the clone is full; nothing was half-written."""


class UnsafeAddress(GitError):
    """An address is refused before, or instead of, talking to it."""


class UnsafePath(GitError):
    """A file or ref name is refused because some file system or Git itself would treat it specially."""


class LimitExceeded(GitError):
    """Data from outside is larger, deeper or slower than the bound set for it."""


class CorruptObject(GitError):
    """An object or pack does not have the form its type demands."""
