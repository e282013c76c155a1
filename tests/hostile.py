"""What tests of hostile requests share: raw connections, and the proof that a server came to no harm."""

import re
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path
from typing import Any

from porch_client import Answer, PorchClient
from porch_process import PorchProcess

MAPS = "/api/v1/namespaces/default/configmaps"
SECRETS = "/api/v1/namespaces/default/secrets"
SOON = 20.0
"""Seconds within which any hostile request is answered, on a busy machine too; work without a bound takes minutes."""
QUIET_SECONDS = 0.15
OTHERS = 3
"""Requests of another client that are answered while a connection is silent: it has nothing more to say."""
GROWTH_MEGABYTES = 150
"""What a module of hostile requests may add to the server's resident memory."""
CANARY = "c4n4ry-d0-n0t-l0g"
"""Part of every secret that these tests send; it must be in no log."""


@contextmanager
def unharmed(server: PorchProcess) -> Iterator[None]:
    """Fail afterwards unless no bug was met, nothing secret was logged, the server answers, and its memory is bounded."""
    before = resident_megabytes(server.pid)
    yield
    log = server.log.read_text(errors="replace")
    assert "unexpected error" not in log, server.log_tail(20_000)
    assert "Traceback" not in log, server.log_tail(20_000)
    assert CANARY not in log
    client = server.client()
    assert client.request("GET", "/readyz").code == 200
    client.close()
    assert resident_megabytes(server.pid) - before < GROWTH_MEGABYTES


def resident_megabytes(pid: int) -> float:
    """Return the resident memory of a process."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


class Raw:
    """A TLS connection to which anything can be written."""

    def __init__(self, server: PorchProcess) -> None:
        self._server = server
        context = ssl.create_default_context(cafile=str(server.data / "ca.crt"))
        context.load_cert_chain(server.data / "admin.crt", server.data / "admin.key")
        plain = socket.create_connection(("127.0.0.1", server.port), timeout=SOON)
        self.socket = context.wrap_socket(plain, server_hostname="localhost")

    def exchange(self, *pieces: bytes) -> bytes:
        """Send; return everything that comes until the server closes or has no more to say.

        On a busy machine a silence alone proves nothing: it has no more to say when it is still silent after others, who came
        later, were answered.
        """
        received, silences = b"", 0
        with self.socket, suppress(ConnectionResetError, BrokenPipeError, ssl.SSLEOFError):
            for piece in pieces:
                self.socket.sendall(piece)
            self.socket.settimeout(QUIET_SECONDS)
            while silences < 2:
                try:
                    piece = self.socket.recv(65536)
                except TimeoutError:
                    silences += 1
                    self._answer_others()
                    continue
                if not piece:
                    break
                received, silences = received + piece, 0
        return received

    def _answer_others(self) -> None:
        """Return when the server has answered somebody else."""
        with closing(self._server.client()) as other:
            for _ in range(OTHERS):
                assert other.request("GET", MAPS).code == HTTPStatus.OK


def statuses(answer: bytes) -> list[int]:
    """Return the status of every answer in what was received."""
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]


def timed(porch: PorchClient, *arguments: Any, **named: Any) -> Answer:
    """Send a request that must be answered soon."""
    begun = time.monotonic()
    answer = porch.request(*arguments, **named)
    assert time.monotonic() - begun < SOON
    return answer


def refused(answer: Answer, *codes: int) -> None:
    """Check that an answer is a refusal with one of the codes, properly worded."""
    assert answer.code in codes, (answer.code, answer.body[:500])
    if answer.headers["content-type"] == "application/json":
        assert answer.object["kind"] == "Status"
        assert answer.object["code"] == answer.code
