"""A TCP proxy in front of a server that loses answers: the request arrives and is worked on, the client hears nothing.

It knows nothing of TLS: bytes are passed on as they come. Used as ``with cutting_proxy(port) as proxy: ...``. In front of several
servers it takes them in turn, and leaves out those that do not listen.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

CHUNK = 1 << 16


@dataclass
class CuttingProxy:
    """A running proxy."""

    port: int
    cuts: int = 0
    """Answers lost so far."""
    _targets: Sequence[int] = ()
    _turn: int = 0
    _armed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def lose_next_answer(self) -> None:
        """Pass on what clients send from now on, but break the connection on which the next answer arrives."""
        with self._lock:
            self._armed = True

    def _connect(self) -> socket.socket:
        """Connect to the next server that listens. Raises OSError: none does."""
        problem = OSError("nobody listens")
        for _ in self._targets:
            with self._lock:
                self._turn += 1
                target = self._targets[self._turn % len(self._targets)]
            try:
                return socket.create_connection(("127.0.0.1", target), timeout=10)
            except OSError as error:
                problem = error
        raise problem

    def _cut(self) -> bool:
        with self._lock:
            armed, self._armed = self._armed, False
            self.cuts += armed
            return armed


@contextmanager
def cutting_proxy(*targets: int) -> Iterator[CuttingProxy]:
    """Listen on a free port of the loopback and pass everything on to the ports ``targets``, until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0))
    proxy = CuttingProxy(listener.getsockname()[1], _targets=targets)
    open_sockets: list[socket.socket] = [listener]
    threading.Thread(target=_accept, args=(listener, proxy, open_sockets), daemon=True).start()
    try:
        yield proxy
    finally:
        for one in open_sockets:
            _close(one)


def _accept(listener: socket.socket, proxy: CuttingProxy, open_sockets: list[socket.socket]) -> None:
    with contextlib.suppress(OSError):
        while True:
            client, _ = listener.accept()
            try:
                server = proxy._connect()
            except OSError:
                _close(client)
                continue
            server.settimeout(None)
            for one in (client, server):  # what is passed on piece by piece must not wait for acknowledgements
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            open_sockets += [client, server]
            threading.Thread(target=_pass, args=(client, server, None), daemon=True).start()
            threading.Thread(target=_pass, args=(server, client, proxy), daemon=True).start()


def _pass(source: socket.socket, sink: socket.socket, proxy: CuttingProxy | None) -> None:
    """Copy one direction; ``proxy`` is given for that of the answers."""
    with contextlib.suppress(OSError):
        while data := source.recv(CHUNK):
            if proxy and proxy._cut():
                break
            sink.sendall(data)
    _close(source)
    _close(sink)


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
