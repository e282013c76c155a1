"""What is told to those whose push did not come to a clear end, and what that means for their request."""

from krm.meta.errors import ServiceUnavailable, StatusError
from storage.git.errors import GitError, PushWithdrawn, RemoteUnavailable
from storage.interfaces import StoreUnavailable


def unavailable(repository: str, error: GitError) -> ServiceUnavailable:
    """Say that the remote could not be worked with, and what that means for the request."""
    if isinstance(error, PushWithdrawn):
        return ServiceUnavailable(f"{error}. Nothing was changed; try again", retry_after=1)
    outcome = "Nothing was changed"
    if isinstance(error, RemoteUnavailable) and error.outcome_unknown:
        outcome = "The connection broke during the push; the next sync shows whether it arrived"
    return ServiceUnavailable(
        f'the Git remote of repository "{repository}" cannot be used: {error}. {outcome}; '
        "try again when the repository's Ready condition is True"
    )


def unrecorded(job: str, error: StatusError | StoreUnavailable) -> ServiceUnavailable:
    """Say that the log could not be written, and that nobody can tell from that what the remote has."""
    why = f"{job} may be in its Git remote already, but the database cannot be used now: {error}"
    return ServiceUnavailable(f"{why}. The next sync shows what arrived; read it again, then try again", retry_after=1)


def not_begun(job: str, error: StoreUnavailable) -> ServiceUnavailable:
    """Say that nothing of a job was sent anywhere."""
    return ServiceUnavailable(f"{job}: {error}. Nothing was changed; try again", retry_after=1)
