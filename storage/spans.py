"""Spans: what the server did for one request, and how long each part took, for whoever collects OpenTelemetry traces.

Without a collector nothing is done, within a microsecond or two; the library's own no-ops take thirty. None is on the way of a read. Attributes are
names and counts, never contents or credentials. Nothing of an exception is recorded but its type, for messages of
libraries may quote what was sent.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from opentelemetry import trace
from opentelemetry.trace import INVALID_SPAN, Link, Span, SpanContext, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

_CONTEXT = TraceContextTextMapPropagator()
_NOTHING: AbstractContextManager[Span] = nullcontext(INVALID_SPAN)
_tracers: list[Tracer] = []
"""Who records spans: nobody, or the one that the process was given."""


def record_with(tracer: Tracer | None) -> None:
    """Record spans from now on, or with None no longer. For the composition root."""
    _tracers[:] = [] if tracer is None else [tracer]


def span(name: str, causes: Sequence[SpanContext] = (), **attributes: str | int) -> AbstractContextManager[Span]:
    """Measure a block as a part of what is being done; keys of ``attributes`` get the prefix ``porch.``.

    ``causes`` are spans of other traces that the work is done for, several at once.
    """
    return _recorded(_tracers[0], name, causes, attributes) if _tracers else _NOTHING


@contextmanager
def _recorded(
    tracer: Tracer, name: str, causes: Sequence[SpanContext], attributes: dict[str, str | int]
) -> Iterator[Span]:
    with tracer.start_as_current_span(
        name,
        attributes={f"porch.{key}": value for key, value in attributes.items()},
        links=[Link(cause) for cause in causes if cause.is_valid],
        record_exception=False,
        set_status_on_exception=False,
    ) as current:
        try:
            yield current
        except BaseException as error:
            current.set_status(Status(StatusCode.ERROR, type(error).__name__))
            raise


def here() -> SpanContext:
    """Return the span that is being measured, to name it as a cause later."""
    return trace.get_current_span().get_span_context()


def trace_headers() -> dict[str, str]:
    """Return the W3C headers that tell another server which trace a request belongs to; none without a trace."""
    headers: dict[str, str] = {}
    if _tracers:
        _CONTEXT.inject(headers)
    return headers
