"""Spans with a collector in memory, and without one."""

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from storage.spans import here, record_with, span, trace_headers


@pytest.fixture
def exporter() -> Iterator[InMemorySpanExporter]:
    kept, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    record_with(provider.get_tracer("test"))
    yield kept
    record_with(None)
    provider.shutdown()


def test_without_a_collector_nothing_happens() -> None:
    with span("nothing", revision="x") as current:
        assert not current.is_recording()
        assert trace_headers() == {}
        assert not here().is_valid


def test_a_span_inside_another_is_its_part(exporter: InMemorySpanExporter) -> None:
    with span("outer", revision="ns/a"), span("inner", jobs=2):
        headers = trace_headers()

    inner, outer = exporter.get_finished_spans()
    assert (inner.name, outer.name) == ("inner", "outer")
    assert inner.parent is not None
    assert inner.parent.span_id == outer.context.span_id
    assert dict(inner.attributes or {}) == {"porch.jobs": 2}
    assert f"{outer.context.trace_id:032x}-{inner.context.span_id:016x}" in headers["traceparent"]


def test_work_for_several_names_each(exporter: InMemorySpanExporter) -> None:
    causes = []
    for name in ("one", "two"):
        with span(name):
            causes.append(here())
    with span("push", causes):
        pass

    push = exporter.get_finished_spans()[-1]
    assert [link.context for link in push.links] == causes


def test_of_an_error_only_its_type_is_recorded(exporter: InMemorySpanExporter) -> None:
    with pytest.raises(ValueError, match="canary"), span("failing"):
        raise ValueError("canary")

    (failed,) = exporter.get_finished_spans()
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.status.description == "ValueError"
    assert failed.events == ()
    assert "canary" not in failed.to_json()
