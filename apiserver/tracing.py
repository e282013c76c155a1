"""Where traces go: to an OpenTelemetry collector over OTLP/HTTP, when one is configured; otherwise nowhere.

The rest of the code knows OpenTelemetry's API only; the SDK is an extra (``pyporch[telemetry]``) and is imported here.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import unquote

import structlog
from opentelemetry import trace

from apiserver.machinery.request_span import SCOPE
from apiserver.settings import Settings
from storage.spans import record_with

FLUSH_SECONDS = 1.0
"""How long a stopping server may take to send its last spans."""
EXPORT_SECONDS = 5
"""How long the collector may take to answer."""
_PATH = "/v1/traces"

log = structlog.get_logger(__name__)


@asynccontextmanager
async def traces_exported(settings: Settings) -> AsyncIterator[None]:
    """Send the spans of the block to the configured collector; what it does not take is dropped, never waited for.

    To be entered once in a process. Without the SDK a warning is logged and the server runs without traces.
    """
    if not settings.traces:
        yield
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
    except ImportError:
        log.warning("no traces: OpenTelemetry's SDK is not installed; install pyporch[telemetry]")
        yield
        return
    exporter = OTLPSpanExporter(
        endpoint=settings.otel_exporter_otlp_endpoint.rstrip("/") + _PATH,
        headers=read_headers(settings.otel_exporter_otlp_headers.get_secret_value()),
        timeout=EXPORT_SECONDS,
    )
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(settings.otel_traces_sampler_arg)),
        resource=Resource.create({"service.name": settings.otel_service_name}),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    record_with(trace.get_tracer(SCOPE))
    try:
        yield
    finally:
        record_with(None)
        # A collector that does not answer must not hold up the stop: the thread is left to end by itself.
        await asyncio.wait({asyncio.ensure_future(asyncio.to_thread(provider.shutdown))}, timeout=FLUSH_SECONDS)


def read_headers(text: str) -> dict[str, str]:
    """Read ``name=value,name=value``, values percent-encoded, as OpenTelemetry writes headers; the rest is left out."""
    pairs = (pair.split("=", 1) for pair in text.split(",") if "=" in pair)
    return {name.strip().lower(): unquote(value.strip()) for name, value in pairs if name.strip()}
