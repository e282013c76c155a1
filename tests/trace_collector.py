"""An OpenTelemetry collector for tests: takes OTLP over HTTP on the loopback and keeps the spans."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class SeenSpan:
    """A span as it arrived; ids in hexadecimal, ``parent`` empty for the first of a trace."""

    name: str
    trace: str
    id: str
    parent: str
    failed: bool
    attributes: dict[str, Any]
    links: tuple[str, ...]
    """Traces that it was done for."""


@dataclass
class Collector:
    """What arrived so far."""

    url: str = ""
    spans: list[SeenSpan] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def named(self, name: str) -> list[SeenSpan]:
        """Return the spans of one name."""
        return [span for span in self.spans if span.name == name]


@contextmanager
def collector() -> Iterator[Collector]:
    """Collect until the block ends."""
    kept = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.raw.append(body)
            kept.headers.append(dict(self.headers))
            kept.spans.extend(_read(body))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class's name
            """Say nothing."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept.url = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def _read(body: bytes) -> Iterator[SeenSpan]:
    request = ExportTraceServiceRequest.FromString(body)
    for resource in request.resource_spans:
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield SeenSpan(
                    span.name,
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    span.status.code == 2,
                    {one.key: one.value.string_value or one.value.int_value for one in span.attributes},
                    tuple(link.trace_id.hex() for link in span.links),
                )
