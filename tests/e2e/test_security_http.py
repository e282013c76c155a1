"""Hostile HTTP, below the API: row 14 of ``users.md`` 7.3, and request smuggling.

A request of two meanings is refused, and nothing that follows it on the connection is read: whatever stands before the
server may have understood it otherwise.
"""

import socket
import time
from collections.abc import Iterator

import pytest
from hostile import MAPS, SOON, Raw, refused, statuses, timed, unharmed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from porch_client import PorchClient
from porch_process import PorchProcess

pytestmark = pytest.mark.usefixtures("no_harm")


@pytest.fixture(scope="module")
def no_harm(porch_server: PorchProcess) -> Iterator[None]:
    """What must hold after all tests of this module."""
    with unharmed(porch_server):
        yield


@pytest.fixture
def raw(porch_server: PorchProcess) -> Raw:
    return Raw(porch_server)


HIDDEN = b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n"
HEAD = b"POST " + MAPS.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
GET = b"GET /version HTTP/1.1\r\nHost: x\r\n"


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(
            HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", id="length-and-chunks"
        ),
        pytest.param(
            HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", id="chunks-and-length"
        ),
        pytest.param(HEAD + b"Content-Length: 0\r\nContent-Length: 36\r\n\r\n", id="two-lengths"),
        pytest.param(HEAD + b"Content-Length: 0, 36\r\n\r\n", id="list-of-lengths"),
        pytest.param(HEAD + b"Content-Length: +0\r\n\r\n", id="signed-length"),
        pytest.param(HEAD + b"Content-Length: -1\r\n\r\n", id="negative-length"),
        pytest.param(HEAD + b"Content-Length: 0x0\r\n\r\n", id="hexadecimal-length"),
        pytest.param(HEAD + b"Content-Length: 99999999999999999999999\r\n\r\n", id="endless-length"),
        pytest.param(HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", id="unknown-coding"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", id="chunked-is-not-last"),
        pytest.param(HEAD + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", id="space-before-colon"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n", id="negative-chunk"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n", id="overflowing-chunk"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n", id="chunk-longer-than-said"),
        pytest.param(HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\n{}\n0\n\n", id="chunks-with-bare-line-feeds"),
        pytest.param(GET + b"X-A: b\r\n c\r\n\r\n", id="folded-header"),
        pytest.param(b"GET /version HTTP/1.1\nHost: x\n\n", id="bare-line-feeds"),
        pytest.param(GET + b"X-A: b\rX-C: d\r\n\r\n", id="bare-carriage-return"),
        pytest.param(GET + b"X-A: b\0c\r\n\r\n", id="nul-in-header"),
        pytest.param(GET + b"X A: b\r\n\r\n", id="space-in-name"),
        pytest.param(GET + b": b\r\n\r\n", id="empty-name"),
        pytest.param(b"GET /version\r\n\r\n", id="http-0.9"),
        pytest.param(b"GET /ver sion HTTP/1.1\r\nHost: x\r\n\r\n", id="space-in-target"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", id="http-2-preface"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", id="tls-in-tls"),
        pytest.param(b"brew /version HTTP/1.1\r\nHost: x\r\n\r\n", id="unknown-method"),
    ],
)
def test_row_14_a_request_of_two_meanings_is_refused_and_what_follows_is_not_read(request_: bytes, raw: Raw) -> None:
    answer = raw.exchange(request_ + HIDDEN)

    assert statuses(answer) == [400], answer
    assert b"gitVersion" not in answer


@pytest.mark.parametrize(
    ("head", "status"),
    [
        pytest.param(GET + b"X-A: " + b"a" * 100_000 + b"\r\n\r\n", 431, id="long-header"),
        pytest.param(GET + b"".join(b"X-%d: a\r\n" % n for n in range(3000)) + b"\r\n", 431, id="many-headers"),
        pytest.param(b"GET /version?" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 431, id="long-target"),
    ],
)
def test_row_14_heads_without_end_are_refused(head: bytes, status: int, raw: Raw) -> None:
    assert statuses(raw.exchange(head)) == [status]


def test_row_14_chunk_extensions_are_bounded(raw: Raw) -> None:
    extended = HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"a" * 200_000 + b"\r\n{\r\n"

    assert all(status >= 400 for status in statuses(raw.exchange(extended)))


def test_row_14_a_trailer_changes_nothing(raw: Raw) -> None:
    trailer = HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nHost: evil\r\nX-Remote-User: evil\r\n\r\n"

    assert statuses(raw.exchange(trailer + HIDDEN)) == [422, 200], "a ConfigMap without a name, then what follows"


def test_row_14_an_upgrade_is_not_taken(porch_server: PorchProcess) -> None:
    for upgrade in (b"h2c", b"websocket"):
        asked = GET + b"Connection: Upgrade\r\nUpgrade: " + upgrade + b"\r\nHTTP2-Settings: AAMAAABkAAQAoAAA\r\n\r\n"
        assert statuses(Raw(porch_server).exchange(asked)) == [200]


def test_row_14_a_range_is_not_computed(raw: Raw) -> None:
    ranges = b"bytes=" + b",".join(b"%d-%d" % (n, n + 1) for n in range(5000))

    assert statuses(raw.exchange(GET + b"Range: " + ranges + b"\r\nConnection: close\r\n\r\n")) in ([200], [431])


def test_row_14_a_form_with_files_is_no_body(porch: PorchClient) -> None:
    body = b"--x\r\nContent-Disposition: form-data; name=a; filename=b\r\n\r\n" + b"a" * 1000 + b"\r\n--x--\r\n"

    refused(timed(porch, "POST", MAPS, body, content_type="multipart/form-data; boundary=x"), 415)


# --- slow requests (row 14) ----------------------------------------------------------------------


def test_row_14_connections_that_say_nothing_do_not_keep_others_out(porch_server: PorchProcess) -> None:
    idle = [socket.create_connection(("127.0.0.1", porch_server.port)) for _ in range(200)]
    slow = [Raw(porch_server) for _ in range(20)]
    for one in slow:
        one.socket.sendall(HEAD + b"Content-Length: 1000\r\n\r\n{")
    client = porch_server.client(timeout=SOON)

    begun = time.monotonic()
    assert client.request("GET", MAPS).code == 200
    assert time.monotonic() - begun < SOON
    client.close()
    for connection in [*idle, *(one.socket for one in slow)]:
        connection.close()


def test_row_14_a_flood_of_pipelined_requests_is_answered_in_order(raw: Raw) -> None:
    count = 200
    answer = raw.exchange(HIDDEN * count)

    assert statuses(answer) == [200] * count


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_row_14_damaged_requests_get_an_answer_or_the_end_of_the_connection(
    data: st.DataObject, porch_server: PorchProcess
) -> None:
    whole = HEAD + b"Content-Length: 24\r\n\r\n" + b'{"metadata":{"name":"a"}}'[:24] + HIDDEN
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damage = data.draw(st.sampled_from([b"", b"\r", b"\n", b"\r\n", b"\0", b":", b" ", b"\t", b",", b"9", b"\xff"]))
        damaged[at : at + data.draw(st.integers(0, 3))] = damage

    answer = Raw(porch_server).exchange(bytes(damaged))

    assert all(status < 500 for status in statuses(answer)), damaged
    assert len(statuses(answer)) <= 3
