"""How the server process ends: signals to a real process that serves a small application."""

import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from eventually import eventually

from apiserver import serving

PROGRAM = """
import asyncio, sys, time
from contextlib import asynccontextmanager
from pathlib import Path
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route
from apiserver import serving
from apiserver.auth.certificates import ensure_certificates
from apiserver.logs import configure_logging
from apiserver.machinery.stopping import Stopping
from apiserver.settings import Settings
from apiserver.tls import ReloadingTls

configure_logging("info")

def asked():
    with Path(sys.argv[1], "asked").open("a") as note:
        note.write(".")

async def slow(request):
    asked()
    await asyncio.sleep(float(request.query_params["s"]))
    print("answered", flush=True)
    return PlainTextResponse("done")

async def thread(request):
    asked()
    await asyncio.to_thread(time.sleep, 60)

async def hang(request):
    asked()
    time.sleep(60)

async def main():
    shutdown = Stopping()

    async def watch(request):
        asked()
        async def lines():
            yield b"first;"
            await shutdown.wait()
            yield b"last"
        return StreamingResponse(lines())

    @asynccontextmanager
    async def lifespan(app):
        if sys.argv[3:4] == ["hangs"]:
            print(0, flush=True)
            await asyncio.sleep(600)
        yield
        print("lifespan ended", flush=True)

    async def readyz(request):
        asked()
        return PlainTextResponse("", 500 if shutdown.is_set() else 200)

    routes = [Route("/slow", slow), Route("/thread", thread), Route("/hang", hang), Route("/watch", watch)]
    app = Starlette(routes=[*routes, Route("/readyz", readyz)], lifespan=lifespan)
    settings = Settings(data=Path(sys.argv[1]), port=0)
    if not sys.argv[2:]:
        await serving.serve(app, settings, shutdown, announce=lambda port, files: print(port, flush=True))
        return

    def secure(port):
        files = ensure_certificates(settings.data, port, settings.host)
        return ReloadingTls(files, lambda: None), lambda: print(port, flush=True)

    await serving.serve_secured(app, settings, shutdown, secure, pace=serving.Pace(*map(float, [sys.argv[2], *sys.argv[-2:]])))

serving.run(main)
"""


SOON = 30.0
"""Seconds: half of what would be waited for if requests were. That each step has its time is in the exit code."""


class Process:
    """The program above, running; ``pace`` is that of a server in a cluster."""

    def __init__(self, data: Path, *pace: float | str) -> None:
        self.data = data
        command = [sys.executable, "-c", PROGRAM, str(data), *map(str, pace)]
        self.popen = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.popen.stdout is not None
        self.port = int(self.popen.stdout.readline())
        self.readers = ThreadPoolExecutor()

    def request(self, target: str) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=str(self.data / "ca.crt"))
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        connection = context.wrap_socket(plain, server_hostname="localhost")
        before = self.asked()
        connection.sendall(f"GET {target} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        eventually(lambda: self.expect_asked(before + 1))
        return connection

    def asked(self) -> int:
        """How many requests have reached the application."""
        note = self.data / "asked"
        return len(note.read_text()) if note.exists() else 0

    def expect_asked(self, times: int) -> None:
        assert self.asked() >= times

    def read(self, target: str) -> "Future[bytes]":
        """Send a request and read its answer meanwhile, as a client does."""
        connection = self.request(target)
        return self.readers.submit(everything, connection)

    def signal_and_wait(self, number: signal.Signals) -> tuple[int, float, str]:
        """Return the exit code, the seconds it took, and stdout after the port."""
        begun = time.monotonic()
        self.popen.send_signal(number)
        output, _ = self.popen.communicate(timeout=60)
        return self.popen.returncode, time.monotonic() - begun, output


@pytest.fixture
def process(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Process]:
    process = Process(tmp_path / "data", *getattr(request, "param", ()))
    yield process
    if process.popen.poll() is None:
        process.popen.kill()
    process.popen.communicate()
    process.readers.shutdown()


def everything(connection: ssl.SSLSocket) -> bytes:
    received = b""
    with connection:
        while piece := connection.recv(65536):
            received += piece
    return received


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_stops_at_once_and_cleanly(process: Process, number: signal.Signals) -> None:
    code, seconds, output = process.signal_and_wait(number)

    assert code == 0
    assert seconds < SOON
    assert "lifespan ended" in output


def test_a_watch_ends_by_itself_and_does_not_delay_the_stop(process: Process) -> None:
    watch = process.read("/watch")

    code, seconds, _ = process.signal_and_wait(signal.SIGINT)

    assert code == 0
    assert seconds < SOON
    assert watch.result().endswith(b"4\r\nlast\r\n0\r\n\r\n")


def test_a_request_under_way_is_answered(process: Process) -> None:
    request = process.read("/slow?s=0.5")

    code, seconds, output = process.signal_and_wait(signal.SIGTERM)

    assert code == 0
    assert seconds < SOON
    assert request.result().endswith(b"done")
    assert "lifespan ended" in output


def test_a_request_that_takes_too_long_is_given_up(process: Process) -> None:
    with process.request("/slow?s=60"):
        code, seconds, output = process.signal_and_wait(signal.SIGTERM)

    assert code == 0
    assert seconds < SOON
    assert "lifespan ended" in output


@pytest.mark.parametrize("target", ["/thread", "/hang"])
def test_nothing_that_hangs_keeps_the_process_alive(process: Process, target: str) -> None:
    """A thread cannot be cancelled, and a blocked event loop cannot even be told."""
    with process.request(target):
        code, seconds, _ = process.signal_and_wait(signal.SIGTERM)

    assert code == 1
    assert seconds < SOON


def test_a_second_signal_ends_it_on_the_spot(process: Process) -> None:
    with process.request("/slow?s=60"):
        process.popen.send_signal(signal.SIGINT)
        assert process.popen.stderr is not None
        while '"stopping"' not in process.popen.stderr.readline():
            assert process.popen.poll() is None

        code, seconds, _ = process.signal_and_wait(signal.SIGINT)

    assert code == 130
    assert seconds < SOON


def test_a_restart_uses_the_same_port_at_once(process: Process) -> None:
    """Connections of the stopped server linger in the kernel; they must not hold the address."""
    watch = process.read("/watch")
    process.signal_and_wait(signal.SIGTERM)

    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", process.port))

    assert watch.result()


SERVES_ON = (600.0, 2.0, 60.0)
"""Seconds that a stop may take: served on, watches ended, requests finished."""
FINISHES = (0.5, 2.0, 60.0)


@pytest.mark.parametrize("process", [SERVES_ON], indirect=True)
def test_in_a_cluster_a_server_serves_on_but_is_unready_and_sends_its_clients_elsewhere(process: Process) -> None:
    watch = process.read("/watch")
    process.popen.send_signal(signal.SIGTERM)
    eventually(lambda: unready(process), timeout=60)
    eventually(lambda: sent_elsewhere(process), timeout=60)

    answer = process.read("/slow?s=0").result(timeout=60)

    assert answer.endswith(b"done")
    assert not watch.done()
    assert process.signal_and_wait(signal.SIGTERM)[0] == 128 + signal.SIGTERM, "the second signal means it"


@pytest.mark.parametrize("process", [FINISHES], indirect=True)
def test_in_a_cluster_watches_end_and_requests_are_finished_before_the_rest_stops(process: Process) -> None:
    watch, request = process.read("/watch"), process.read(f"/slow?s={serving.QUICK.whole + 1}")

    code, _, output = process.signal_and_wait(signal.SIGTERM)

    assert (code, output.split("\n")) == (0, ["answered", "lifespan ended", ""])
    assert request.result(timeout=60).endswith(b"done")
    assert watch.result(timeout=60).endswith(b"4\r\nlast\r\n0\r\n\r\n")


@pytest.mark.parametrize("process", [SERVES_ON], indirect=True)
def test_ctrl_c_is_quick_in_a_cluster_too(process: Process) -> None:
    with process.request("/slow?s=60"):
        code, seconds, _ = process.signal_and_wait(signal.SIGINT)

    assert code == 0
    assert seconds < SERVES_ON[0]


@pytest.mark.parametrize("process", [(600.0, "hangs", 2.0, 600.0)], indirect=True)
def test_a_server_that_is_not_there_yet_stops_quickly_in_a_cluster_too(process: Process) -> None:
    code, seconds, _ = process.signal_and_wait(signal.SIGTERM)

    assert code == 1
    assert seconds < SOON


def test_what_the_steps_may_take_is_what_the_whole_may_take() -> None:
    cluster = serving.Pace(delay=10, watches=10, requests=60)

    assert (serving.QUICK.drain, serving.QUICK.whole) == (3, 5)
    assert (cluster.drain, cluster.whole) == (60, 72)
    assert serving.Pace(watches=10, requests=1).drain == 10


def unready(process: Process) -> None:
    with process.request("/readyz") as connection:
        assert b" 500 " in connection.recv(65536)


def sent_elsewhere(process: Process) -> None:
    with process.request("/readyz") as connection:
        assert b"\r\nconnection: close\r\n" in connection.recv(65536)
