"""Talk to a remote: list its refs, receive a pack, push a pack. Nothing here knows the clone.

The protocol is dulwich's; this module replaces how its client carries bytes and reads advertisements (see
``carriers.py`` and ``advertisement.py``) and turns every failure into one of our types.
"""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import Any, NoReturn, cast
from urllib.parse import urljoin

from dulwich.client import AbstractHttpGitClient
from dulwich.errors import GitProtocolError, HangupException, SendPackError
from dulwich.objects import ZERO_SHA
from dulwich.pack import UnpackedObject
from dulwich.protocol import capability_agent

from storage.git.advertisement import (
    MAX_BODY,
    Advertisement,
    all_refs,
    ls_refs_request,
    read_advertisement,
    refs_in,
    some_refs,
)
from storage.git.carriers import Answer, Carrier, ProcessCarrier, Request, shared_http
from storage.git.deadline import Deadline
from storage.git.errors import GitError, LimitExceeded, NotARepository, PushRejected, RefMoved, RemoteUnavailable
from storage.git.objects import GitObject
from storage.git.packwriter import records
from storage.git.remote import PATIENCE, Remote
from storage.git.sending import MaySend, always

MAX_REPORT = 1 << 20
"""Bytes of the answer to a push."""

MAX_TOLD = 4096
"""Bytes kept of what a remote says to people while it takes a push."""

MAX_HAVES = 200
"""Commits of ours named to the remote when fetching; it stops listening at 256."""


@dataclass(frozen=True, slots=True)
class RefUpdate:
    """One ref to change: what it must be now and what it becomes; None means absent."""

    ref: str
    old: str | None
    new: str | None


class Transport:
    """Conversations with remotes. Connections and capabilities are kept between calls; safe from many threads."""

    def __init__(self, git: str | None) -> None:
        self._http = shared_http()
        self._local = ProcessCarrier(git) if git else None
        self._greetings: dict[Remote, tuple[str, Advertisement]] = {}
        self._pushed: dict[Remote, tuple[str, frozenset[bytes]]] = {}
        """Address and capabilities of the last push that went through; the next one need not ask for them."""
        self._lock = threading.Lock()

    def serves(self, remote: Remote) -> bool:
        """Whether this transport reaches the remote; a local one needs a git binary."""
        return not remote.is_local or self._local is not None

    def list_refs(self, remote: Remote) -> dict[str, str]:
        """Return every branch and tag of the remote.

        Raises:
            GitError: of the type that says why not.
        """
        client = self._client(remote)
        with _conversation(remote, remote.timeout * 2):
            base, greeting = self._greeting(remote, client)
            if greeting.version == 0:
                return all_refs(greeting)
            body = ls_refs_request(greeting.capabilities, capability_agent())
            try:
                answer, read = client.post("git-upload-pack", base, body)
            except GitError:
                self._forget(remote)
                raise
            return refs_in(_whole(answer, read, MAX_BODY))

    def fetch(self, remote: Remote, wants: Sequence[str], haves: Sequence[str], sink: Callable[[bytes], None]) -> None:
        """Write one pack with everything the wanted objects need beyond ``haves`` to ``sink``.

        Raises:
            GitError: of the type that says why not; whatever ``sink`` raises passes through.
        """
        client = self._client(remote)

        def keep(data: bytes) -> int:
            sink(data)
            return len(data)

        def wanted(_refs: Any, depth: int | None = None) -> list[bytes]:  # noqa: ARG001 -- dulwich's form
            return [want.encode() for want in wants]

        with _conversation(remote, remote.timeout * PATIENCE * 3):
            client.greeting = self._greeting(remote, client)
            try:
                # Casts: dulwich types ids as NewTypes of bytes and wants a whole graph walker, of which it uses two
                # methods here.
                client.fetch_pack("", cast(Any, wanted), cast(Any, _Haves(haves)), keep)
            except BaseException:
                self._forget(remote)
                raise

    def push(
        self,
        remote: Remote,
        updates: Sequence[RefUpdate],
        objects: Sequence[GitObject],
        may_send: MaySend = always,
    ) -> tuple[dict[str, str], str]:
        """Send exactly these objects and change all refs or none, if ``may_send`` says so when all is ready to leave.

        Returns what each refused ref was told, and what the remote told people besides.

        Listing ten thousand refs before every push would cost the remote more than the push. The commands carry the
        expected values and the remote compares them, so after a push that went through the next one is sent at once;
        after a refusal the refs are asked for again.

        Raises:
            RefMoved: the remote's refs are not what ``updates`` expects; nothing was sent.
            PushRejected: the remote could not take the pack, or has no atomic pushes.
            PushWithdrawn: ``may_send`` said no; nothing was changed.
            GitError: of the type that says why not.
        """
        client = self._client(remote)
        client.may_send = may_send
        client.updates = {update.ref.encode(): update for update in updates}
        with self._lock:
            client.pushed = self._pushed.pop(remote, None)

        def pack(_have: Any, _want: Any, **_options: Any) -> tuple[int, Iterator[UnpackedObject]]:
            return len(objects), records(objects)

        told = bytearray()

        def listen(words: bytes) -> None:
            told.extend(words[: MAX_TOLD - len(told)])

        with _conversation(remote, remote.timeout * 2):
            try:
                result = client.send_pack("", lambda _refs: _commands(updates), cast(Any, pack), listen, atomic=True)
            except SendPackError as error:
                why = _shown(remote, error.args[0] if error.args else b"unpacking failed")
                raise PushRejected({"*": why}, _shown(remote, bytes(told))) from error
        statuses: Mapping[bytes, str | None] = result.ref_status or {}
        if not any(statuses.values()) and client.pushed is not None:
            with self._lock:
                self._pushed = {remote: client.pushed}
        refused = {_shown(remote, ref): _shown(remote, why) for ref, why in statuses.items() if why is not None}
        return refused, _shown(remote, bytes(told))

    def _client(self, remote: Remote) -> "_Client":
        if remote.ssh is not None:
            return _Client(remote, self._over_ssh())
        if not remote.is_local:
            return _Client(remote, self._http)
        if self._local is None:
            raise NotARepository(f"{remote.address}: a local remote needs a git binary here")
        return _Client(remote, self._local)

    def _over_ssh(self) -> Carrier:
        # asyncssh takes a quarter of a second to import, and most servers have no such remote.
        from storage.git.ssh import SshCarrier

        return SshCarrier()

    def _greeting(self, remote: Remote, client: "_Client") -> tuple[str, Advertisement]:
        """Return base address and capabilities for reading; kept when they hold no refs (version 2)."""
        with self._lock:
            known = self._greetings.get(remote)
        if known is None:
            known = client.greet("git-upload-pack", version=2)
            if known[1].version == 2:  # noqa: PLR2004 -- the protocol's version
                with self._lock:
                    self._greetings = {remote: known}
        return known

    def _forget(self, remote: Remote) -> None:
        with self._lock:
            self._greetings.pop(remote, None)


class _Client(AbstractHttpGitClient):
    """dulwich's stateless client over our carriers; one conversation each."""

    def __init__(self, remote: Remote, carrier: Carrier) -> None:
        # dulwich joins paths to it; the SSH carrier looks at the last part only, and joining works for some schemes only.
        super().__init__("https://remote/" if remote.ssh else remote.url, thin_packs=False, quiet=True)
        self._remote = remote
        self._carrier = carrier
        self.greeting: tuple[str, Advertisement] | None = None
        self.updates: Mapping[bytes, RefUpdate] = {}
        self.pushed: tuple[str, frozenset[bytes]] | None = None
        self.may_send: MaySend | None = None

    def greet(self, service: str, *, version: int = 0) -> tuple[str, Advertisement]:
        """Ask for ``info/refs``; returns the address to go on with and what the remote said."""
        base = self._get_url("")
        tail = f"info/refs?service={service}"
        headers = {"Accept": "*/*"} | ({"Git-Protocol": f"version={version}"} if version else {})
        answer = self._carrier.ask(self._remote, Request(urljoin(base, tail), headers))
        if answer.content_type.partition(";")[0] != f"application/x-{service}-advertisement":
            answer.close()
            raise NotARepository(f"{self._remote.address}: the address answers, but not as a Git repository")
        body = _whole(answer, answer.read, MAX_BODY)
        where = answer.url.removesuffix(tail) if answer.url.endswith(tail) else base
        return where, read_advertisement(body, service.encode())

    def post(self, service: str, base: str, body: bytes) -> tuple[Answer, Callable[[int], bytes]]:
        """Send a version 2 command."""
        self.protocol_version = 2
        answer, read = self._smart_request(service, base, body)
        return answer, read  # type: ignore[return-value] # what _http_request returned

    def _discover_references(  # type: ignore[override] # dulwich's names for ids are NewTypes of bytes
        self,
        service: bytes,
        base_url: str,  # noqa: ARG002 -- ours may come from a redirect seen before
        protocol_version: int | None = None,  # noqa: ARG002 -- always the newest
        ref_prefix: Any = None,  # noqa: ARG002 -- no refs are listed
    ) -> tuple[dict[bytes, bytes], set[bytes], str, dict[bytes, bytes], dict[bytes, bytes]]:
        """Give dulwich only the refs it needs: none to fetch by id, those of our updates to push."""
        if service == b"git-upload-pack":
            base, said = self.greeting or self.greet("git-upload-pack", version=2)
            self.protocol_version = said.version
            return {}, set(said.capabilities), base, {}, {}
        self.protocol_version = 0
        if self.pushed is not None:
            base, capabilities = self.pushed
            expected = {name: update.old.encode() for name, update in self.updates.items() if update.old}
            return expected, set(capabilities), base, {}, {}
        base, said = self.greet("git-receive-pack")
        refs = some_refs(said, self.updates)
        _check_expectations(self.updates, refs)
        if b"atomic" not in said.capabilities:
            raise PushRejected({"*": "the remote has no atomic pushes, without which a branch and its tag could part"})
        self.pushed = base, frozenset(said.capabilities)
        return refs, set(said.capabilities), base, {}, {}

    def _http_request(  # type: ignore[override] # dulwich types urllib3's response, we bring the four things it uses
        self,
        url: str,
        headers: dict[str, str] | None = None,
        data: bytes | Iterator[bytes] | None = None,
        raise_for_status: bool = True,  # noqa: ARG002 -- carriers always raise
    ) -> tuple[Answer, Callable[[int], bytes]]:
        body = data if isinstance(data, bytes | None) else b"".join(data)
        sent = {key: value for key, value in (headers or {}).items() if key != "Content-Length"}
        answer = self._carrier.ask(self._remote, Request(url, sent, body or b"", self.may_send))
        if "receive-pack" in answer.content_type:
            return answer, BytesIO(_whole(answer, answer.read, MAX_REPORT)).read
        return answer, _exactly(answer.read)


class _Haves:
    """The part of a graph walker that dulwich's client uses: our tips, a bounded number of them."""

    shallow = None

    def __init__(self, haves: Sequence[str]) -> None:
        self._rest = iter(haves[:MAX_HAVES])

    def __next__(self) -> bytes | None:
        following = next(self._rest, None)
        return following.encode() if following else None

    def ack(self, sha: bytes) -> None:
        """Nothing follows from it: all haves go out in one request."""

    def nak(self) -> None:
        """Nothing follows from it."""


@contextmanager
def _conversation(remote: Remote, seconds: float) -> Iterator[None]:
    """Bound the whole conversation and translate what dulwich and the carriers raise on the way."""
    deadline = Deadline(seconds)
    try:
        with deadline:
            yield
        if deadline.expired:
            # Whatever was broken off may have looked like an end.
            _late(remote, seconds, None)
    except (GitError, SendPackError) as error:
        if deadline.expired:
            _late(remote, seconds, error)
        raise
    except OSError as error:
        if deadline.expired:
            _late(remote, seconds, error)
        if isinstance(error, HangupException | TimeoutError | ConnectionError):
            raise RemoteUnavailable(remote.address, "the connection broke", outcome_unknown=True) from error
        raise
    except (GitProtocolError, AssertionError, ValueError, IndexError, KeyError) as error:
        # dulwich meets malformed answers with any of these.
        if deadline.expired:
            _late(remote, seconds, error)
        if isinstance(error, HangupException):
            raise RemoteUnavailable(remote.address, "the connection broke", outcome_unknown=True) from error
        said = _shown(remote, str(error)) if isinstance(error, GitProtocolError) else "a malformed answer"
        raise NotARepository(f"{remote.address}: the remote says: {said}") from error
    except Exception as error:
        if deadline.expired or _is_transport(error):
            _late(remote, seconds, error, broken=not deadline.expired)
        raise


def _is_transport(error: Exception) -> bool:
    from urllib3.exceptions import HTTPError  # urllib3's errors are no OSErrors

    return isinstance(error, HTTPError)


def _late(remote: Remote, seconds: float, error: BaseException | None, *, broken: bool = False) -> NoReturn:
    problem = "the connection broke" if broken else f"not done within {seconds:g} s"
    raise RemoteUnavailable(remote.address, problem, outcome_unknown=True) from error


def _check_expectations(updates: Mapping[bytes, RefUpdate], refs: Mapping[bytes, bytes]) -> None:
    actual = {update.ref: refs[name].decode() if name in refs else None for name, update in updates.items()}
    moved = {update.ref: actual[update.ref] for update in updates.values() if actual[update.ref] != update.old}
    if moved:
        raise RefMoved(moved)


def _commands(updates: Sequence[RefUpdate]) -> dict[Any, Any]:
    return {update.ref.encode(): update.new.encode() if update.new else ZERO_SHA for update in updates}


def _whole(answer: Answer, read: Callable[[int], bytes], limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        while data := read(limit):
            size += len(data)
            if size > limit:
                raise LimitExceeded(f"the remote's answer is over {limit} bytes")
            parts.append(data)
    finally:
        answer.close()
    return b"".join(parts)


def _exactly(read: Callable[[int], bytes]) -> Callable[[int], bytes]:
    """Give dulwich the reads it expects, full ones, out of reads that return what is there."""
    pending = bytearray()

    def exactly(size: int) -> bytes:
        while len(pending) < size:
            data = read(1 << 16)
            if not data:
                break
            pending.extend(data)
        taken = bytes(pending[:size])
        del pending[:size]
        return taken

    return exactly


def _shown(remote: Remote, text: object) -> str:
    """Clean and cut what a remote said, for a message."""
    decoded = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    printable = "".join(c if c.isprintable() else " " for c in remote.without_secrets(decoded))
    return " ".join(printable.split())[:300]
