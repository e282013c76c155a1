"""What background work says of itself: the repository, and nothing of the request that happened to begin it."""

import structlog
from opentelemetry import context as trace_context


def enter_background(repository: str) -> None:
    """Leave the request that this task was started by; from now on its log lines name the ``namespace/name`` of a repository.

    To be called first thing in a task of its own. A task inherits the context of whoever created it, and one that serves a
    repository for days would carry the id, the user and the trace of the request that registered it.
    """
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(repository=repository)
    trace_context.attach(trace_context.Context())
