"""A client of the Kubernetes API that writes down what is written, and on which writes can be made to fail.

It sits on the real connection: what it records was sent, or would have been if the test had not broken it. Leases and
Events are no writes in the sense of the golden cases; Events are recorded apart.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import orjson

from krm.client.client import KubeClient
from krm.client.connection import Connection, open_connection

Json = dict[str, Any]
GATE = "PVOperationsComplete"
SHORT = {"packagerevisions": "PR", "packagerevisionresources": "PRR", "packagevariants": "PV"}
NOT_COUNTED = {"leases", "events"}
DEPLOYMENTS = "deployments."


class Killed(BaseException):
    """The controller is dead: nothing of it may run on. No ``except Exception`` takes it for an error."""


@dataclass(frozen=True)
class Write:
    """One write as it was sent."""

    verb: str
    plural: str
    name: str
    subresource: str
    body: Json

    @property
    def line(self) -> str:
        """Verb, kind and name; for a package revision its lifecycle, or for a draft the status of its gate.

        The repository ``deployments`` is left out of names.
        """
        parts = [self.verb, SHORT.get(self.plural, self.plural), self.name.removeprefix(DEPLOYMENTS), self.subresource]
        if self.plural == "packagerevisions" and self.verb in {"POST", "PUT"}:
            parts.append(_matters(self.body))
        return " ".join(part for part in parts if part)

    @property
    def of_packages(self) -> bool:
        """Whether it is about a package revision or its files."""
        return self.plural.startswith("packagerevision")


@dataclass
class Fault:
    """What goes wrong with the next ``times`` writes that ``when`` chooses, and whether they are done all the same."""

    when: Callable[[Write], bool]
    error: Callable[[], BaseException]
    done: bool = False
    times: int = 1


Hook = Callable[[int, Write], None]


@dataclass
class Recording:
    """Everything that was sent, in order."""

    writes: list[Write] = field(default_factory=list)
    accepted: list[Write] = field(default_factory=list)
    """Those that the server did."""
    events: list[Json] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    """Paths of GETs of package revisions and their files."""
    faults: list[Fault] = field(default_factory=list)
    before_each: Hook = field(default=lambda *_: None)
    """Called with the number of the write, from 1, before it is sent; may raise."""
    after_each: Hook = field(default=lambda *_: None)
    """Called when the server has answered."""

    def clear(self) -> None:
        """Forget what was sent; faults and hooks stay."""
        for kept in (self.writes, self.accepted, self.events, self.reads):
            kept.clear()

    def fault_of(self, write: Write) -> Fault | None:
        """Take the fault that this write meets."""
        found = next((fault for fault in self.faults if fault.times > 0 and fault.when(write)), None)
        if found:
            found.times -= 1
        return found


class RecordingConnection(Connection):
    """A connection that records."""

    def __init__(self, inner: Connection, recording: Recording) -> None:
        super().__init__(inner._access, inner._session, inner._observe)
        self.recording = recording

    async def request(self, method: str, path: str, *, body: bytes | None = None, **more: Any) -> bytes:
        """Send one request, if no fault keeps it, and record it."""

        async def send() -> bytes:
            return await super(RecordingConnection, self).request(method, path, body=body, **more)

        if method == "GET":
            if "/packagerevision" in path and path.split("/")[-2].startswith("packagerevision"):
                self.recording.reads.append(path)
            return await send()
        write = _write(method, path, orjson.loads(body) if body else {})
        if write.plural in NOT_COUNTED:
            if write.plural == "events":
                self.recording.events.append(write.body)
            return await send()
        return await self._recorded(write, send)

    async def _recorded(self, write: Write, send: Callable[[], Any]) -> bytes:
        recording = self.recording
        recording.writes.append(write)
        number = len(recording.writes)
        recording.before_each(number, write)
        fault = recording.fault_of(write)
        if fault and not fault.done:
            raise fault.error()
        answer: bytes = await send()
        recording.accepted.append(write)
        recording.after_each(number, write)
        if fault:
            raise fault.error()
        return answer


class RecordingClient(KubeClient):
    """The client under the reconciler; ``recording`` has what it sent."""

    def __init__(self, connection: RecordingConnection) -> None:
        super().__init__(connection)
        self.recording = connection.recording


@asynccontextmanager
async def recording_client(kubeconfig: Path, recording: Recording | None = None) -> AsyncIterator[RecordingClient]:
    """Make a recording client of a server; closed at the end."""
    async with open_connection(kubeconfig, agent="porch-controllers") as connection:
        yield RecordingClient(RecordingConnection(connection, recording or Recording()))


def _write(method: str, path: str, body: Json) -> Write:
    parts = [unquote(part) for part in path.split("/") if part]
    rest = (
        parts[parts.index("namespaces") + 2 :] if "namespaces" in parts[:-2] else parts[2 if parts[0] == "api" else 3 :]
    )
    plural, name, subresource = [*rest, "", ""][:3]
    return Write(method, plural, name or _name(plural, body), subresource, body)


def _name(plural: str, body: Json) -> str:
    """Return the name that an object will have that is created without one."""
    spec = body.get("spec") or {}
    if plural == "packagerevisions":
        package = str(spec.get("packageName", "")).replace("/", ".")
        return f"{spec.get('repository', '')}.{package}.{spec.get('workspaceName', '')}"
    return str((body.get("metadata") or {}).get("name", ""))


def _matters(body: Json) -> str:
    lifecycle = str((body.get("spec") or {}).get("lifecycle") or "Draft")
    if lifecycle != "Draft":
        return lifecycle
    conditions = (body.get("status") or {}).get("conditions") or []
    return next((str(one["status"]) for one in conditions if one["type"] == GATE), "")
