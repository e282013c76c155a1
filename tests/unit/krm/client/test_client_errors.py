"""Answers become errors by their code and reason, never by their text."""

import orjson
import pytest

from krm.client.errors import error_of, error_of_status
from krm.meta import errors
from krm.meta.errors import Cause, ResourceName, StatusError

WIDGETS = ResourceName("widgets", "example.com")

RAISED = [
    errors.BadRequest("no"),
    errors.Unauthorized(),
    errors.Forbidden.of(WIDGETS, "a", "no"),
    errors.NotFound.of(WIDGETS, "a"),
    errors.MethodNotAllowed.of(WIDGETS, "patch"),
    errors.NotAcceptable("no"),
    errors.AlreadyExists.of(WIDGETS, "a"),
    errors.Conflict.of(WIDGETS, "a"),
    errors.Expired("no", continue_token="abc"),
    errors.RequestEntityTooLarge("limit is 3"),
    errors.UnsupportedMediaType("no"),
    errors.Invalid.of("Widget", "example.com", "a", [Cause("FieldValueRequired", "Required value", "spec.size")]),
    errors.TooManyRequests("no", retry_after=3),
    errors.InternalError.because("no"),
    errors.ServerTimeout.of(WIDGETS, "update"),
    errors.ServiceUnavailable("no"),
    errors.Timeout("no"),
]


@pytest.mark.parametrize("raised", RAISED, ids=lambda error: type(error).__name__)
def test_every_error_of_the_server_is_the_same_error_at_the_client(raised: StatusError) -> None:
    status = raised.to_status()

    received = error_of(raised.code, orjson.dumps(status))

    assert type(received) is type(raised)
    assert received.status == status
    assert (received.code, received.reason, received.message) == (raised.code, raised.reason, raised.message)
    assert received.causes == raised.causes
    assert received.retry_after == raised.retry_after
    assert received.to_status() == status


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        pytest.param(409, "", errors.Conflict, id="409-without-a-reason"),
        pytest.param(410, "Gone", errors.Expired, id="410-with-another-reason"),
        pytest.param(500, "Strange", errors.InternalError, id="unknown-reason"),
        pytest.param(418, "Teapot", StatusError, id="unknown-code"),
    ],
)
def test_what_the_reason_does_not_tell_the_code_tells(code: int, reason: str, kind: type[StatusError]) -> None:
    error = error_of_status({"kind": "Status", "code": code, "reason": reason, "message": "m"})

    assert type(error) is kind
    assert error.code == code
    assert error.reason == (reason or kind.reason)


def test_a_proxys_page_is_an_error_of_its_code_with_a_short_message() -> None:
    error = error_of(503, b"<html>" + b"\xff" * 10_000)

    assert type(error) is errors.ServiceUnavailable
    assert error.message.startswith("<html>")
    assert len(error.message) <= 2048
    assert error.status == {}


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'"x"', b'{"kind": "Pod"}', b"{"])
def test_a_body_that_is_no_status_is_no_reason_to_fail_otherwise(body: bytes) -> None:
    assert type(error_of(404, body)) is errors.NotFound


def test_a_malformed_status_is_read_as_far_as_it_goes() -> None:
    status = {
        "kind": "Status",
        "code": "409",
        "reason": ["x"],
        "message": {"a": 1},
        "details": {"causes": [1, {"field": 3}], "retryAfterSeconds": "soon", "name": None},
    }

    error = error_of(409, orjson.dumps(status))

    assert type(error) is errors.Conflict
    assert error.causes == (Cause("", "", "3"),)
    assert error.retry_after == 0
