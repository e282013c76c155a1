"""The client of the controller, spoken to in memory: the same calls as ``krm.client.client.KubeClient``, and faults on demand.

Before each request a :class:`Faults` is asked what becomes of it, and what else happens in that moment.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from krm.client.errors import Unanswered, Unreachable, error_of_status
from krm.client.resources import Resource
from krm.meta.errors import Conflict, InternalError, ServiceUnavailable, StatusError, TooManyRequests
from variant_model.porch import PorchModel

Json = dict[str, Any]
CONTROLLER: Final = "controller"


class Crash(BaseException):
    """The controller's process ends here; nothing of it may catch this."""


class Fault(StrEnum):
    """What may become of one request."""

    CONFLICT = "409: another request is already in progress"
    INTERNAL = "500"
    UNAVAILABLE = "503"
    BUSY = "429"
    NOT_SENT = "no connection"
    LOST_BEFORE = "timed out, never done"
    LOST_AFTER = "timed out, was done"
    LOST_LATE = "timed out, done after the next two requests"
    CRASH_BEFORE = "the controller dies before it"
    CRASH_AFTER = "the controller dies after it"


@dataclass
class Faults:
    """What goes wrong, by the number of the request since the plan was made, and what happens just before a request."""

    plan: dict[int, Fault] = field(default_factory=dict)
    meanwhile: dict[int, Callable[[], None]] = field(default_factory=dict)
    asked: int = 0
    late: deque[tuple[int, Callable[[], object]]] = field(default_factory=deque)
    """Requests that the server is still busy with: when each is done, and what it does."""
    finished: int = 0
    """How many of them it has done."""

    def next(self) -> Fault | None:
        """Let happen what happens before the next request; return what becomes of it."""
        number = self.asked
        self.asked += 1
        while self.late and self.late[0][0] <= number:
            self.finish_one()
        if number in self.meanwhile:
            self.meanwhile.pop(number)()
        return self.plan.pop(number, None)

    def finish_one(self) -> None:
        """Do what the server was busy with; its author does not hear of a refusal."""
        _, work = self.late.popleft()
        self.finished += 1
        with suppress(StatusError):
            work()

    def finish(self) -> None:
        """Do everything that the server was busy with."""
        while self.late:
            self.finish_one()


class ModelClient:
    """The controller's requests."""

    def __init__(self, porch: PorchModel, faults: Faults, after: Callable[[], None]) -> None:
        self._porch = porch
        self._after = after
        self._faults = faults
        self.requests: list[str] = []
        self._is_dead = False

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Json:
        return self._do(
            "get", resource, name, lambda: self._porch.get(resource.plural, namespace or "", name), reads=True
        )

    async def create(
        self, resource: Resource, namespace: str | None, body: Json, *, subresource: str = "", name: str = ""
    ) -> Json:
        assert not subresource
        name = name or body["metadata"].get("name", "")
        return self._do(
            "create", resource, name, lambda: self._porch.create(resource.plural, namespace or "", body, CONTROLLER)
        )

    async def update(self, resource: Resource, body: Json, *, subresource: str = "") -> Json:
        name = body["metadata"]["name"]
        return self._do(
            "update", resource, name, lambda: self._porch.update(resource.plural, body, subresource, CONTROLLER)
        )

    async def update_status(self, resource: Resource, body: Json) -> Json:
        return await self.update(resource, body, subresource="status")

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        patch: Json,
        *,
        content_type: str = "",
        subresource: str = "",
    ) -> Json:
        assert content_type in ("", "application/merge-patch+json")
        return self._do(
            "patch",
            resource,
            name,
            lambda: self._porch.patch(resource.plural, namespace or "", name, patch, CONTROLLER, subresource),
        )

    async def delete(
        self, resource: Resource, namespace: str | None, name: str, *, uid: str = "", resource_version: str = ""
    ) -> None:
        def work() -> Json:
            self._porch.delete(resource.plural, namespace or "", name, uid=uid, version=resource_version, by=CONTROLLER)
            return {}

        self._do("delete", resource, name, work)

    def _do(self, verb: str, resource: Resource, name: str, work: Callable[[], Json], *, reads: bool = False) -> Json:
        if self._is_dead:
            raise Crash
        fault = self._fault(verb)
        self.requests.append(f"{verb} {resource.plural} {name}" + (f" ({fault})" if fault else ""))
        if fault is not None and reads:
            fault = _OF_READS.get(fault, fault)
        self._fail_before(fault, work)
        try:
            done = work()
            self._after()
        except StatusError as error:
            if fault is Fault.CRASH_AFTER:
                raise Crash from None
            if fault is Fault.LOST_AFTER:
                raise Unanswered("timed out") from None
            raise _answered(error) from None
        if fault is Fault.CRASH_AFTER:
            raise Crash
        if fault is Fault.LOST_AFTER:
            raise Unanswered("timed out")
        return done

    def _fault(self, verb: str) -> Fault | None:
        return self._faults.next()

    def _fail_before(self, fault: Fault | None, work: Callable[[], Json]) -> None:
        """Raise what keeps a request from being done, or its author from knowing."""
        self._is_dead = fault in _CRASHES
        if fault is Fault.CRASH_BEFORE:
            raise Crash
        if fault in _REFUSALS:
            raise _answered(_REFUSALS[fault]())
        if fault is Fault.NOT_SENT:
            raise Unreachable("connection refused")
        if fault is Fault.LOST_LATE:
            self._faults.late.append((self._faults.asked + 2, work))
        if fault in (Fault.LOST_BEFORE, Fault.LOST_LATE):
            raise Unanswered("timed out")


_CRASHES = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)
_OF_READS: dict[Fault, Fault] = {
    Fault.CONFLICT: Fault.BUSY,
    Fault.LOST_BEFORE: Fault.NOT_SENT,
    Fault.LOST_LATE: Fault.NOT_SENT,
    Fault.LOST_AFTER: Fault.NOT_SENT,
    Fault.CRASH_AFTER: Fault.CRASH_BEFORE,
}
"""What comes of a read where a write would meet a fault that reads do not know."""
_REFUSALS: dict[Fault | None, Callable[[], StatusError]] = {
    Fault.CONFLICT: lambda: Conflict("another request is already in progress on package revision"),
    Fault.INTERNAL: lambda: InternalError.because("disk on fire"),
    Fault.UNAVAILABLE: lambda: ServiceUnavailable("the repository is not synced yet"),
    Fault.BUSY: lambda: TooManyRequests("too many requests", retry_after=1),
}


def _answered(error: StatusError) -> StatusError:
    """Return an error as a client makes it from the answer."""
    return error_of_status(error.to_status(), error.code)
