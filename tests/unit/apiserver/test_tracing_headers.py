"""Headers for a collector, as OpenTelemetry's variable writes them."""

import pytest

from apiserver.tracing import read_headers


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("", {}),
        ("a=b", {"a": "b"}),
        ("Authorization=Bearer%20x=y, X-Tenant = our%20team ", {"authorization": "Bearer x=y", "x-tenant": "our team"}),
        ("novalue,=x,,a=", {"a": ""}),
    ],
)
def test_headers_are_read_as_opentelemetry_writes_them(text: str, headers: dict[str, str]) -> None:
    assert read_headers(text) == headers
