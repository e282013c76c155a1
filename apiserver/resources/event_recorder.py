"""Tells users what a controller of the server met with, as Events; the same thing again only counts up.

Source: ``kube-api.md`` 2.16.
"""

import hashlib
from typing import Any, Final

import structlog

from apiserver.machinery.rest import Scope, Updater, User, WriteOptions
from krm.meta.conditions import timestamp
from krm.meta.errors import StatusError

Json = dict[str, Any]
log = structlog.get_logger()

_NAME_LENGTH: Final = 200
"""Characters of the object's name that an Event's name begins with."""
SAID_LENGTH: Final = 1024
"""Characters of a message, as for every Event."""


class EventRecorder:
    """Writes Events of one component; ``events`` is the core resource, where an update creates what is missing."""

    def __init__(self, events: Updater, *, component: str, user: User) -> None:
        self._events = events
        self._component = component
        self._user = user

    async def warn(self, obj: Json, reason: str, message: str) -> None:
        """Report a problem with an object. An Event that cannot be written is logged and let be."""
        await self.record(obj, reason, message, warning=True)

    async def record(self, obj: Json, reason: str, message: str, *, warning: bool, times: int = 1) -> None:
        """Report what happened ``times`` times to an object. An Event that cannot be written is logged and let be."""
        metadata, said = obj["metadata"], message[:SAID_LENGTH]
        namespace = metadata.get("namespace") or "default"
        told = f"{obj['kind']}/{metadata.get('uid')}/{reason}/{said}"
        name = f"{metadata['name'][:_NAME_LENGTH]}.{hashlib.sha256(told.encode()).hexdigest()[:16]}"

        def change(current: Json) -> Json:
            if current:
                return {**current, "count": (current.get("count") or 0) + times, "lastTimestamp": timestamp()}
            event = self._new(obj, name, namespace, reason, said)
            return {**event, "count": times, "type": "Warning" if warning else "Normal"}

        options = WriteOptions(field_manager=self._component)
        try:
            await self._events.update(Scope(namespace, self._user), name, change, options)
        except StatusError as error:
            log.warning("event cannot be written", reason=reason, name=name, error=error.message)

    def _new(self, obj: Json, name: str, namespace: str, reason: str, message: str) -> Json:
        metadata = obj["metadata"]
        involved = {
            "apiVersion": obj["apiVersion"],
            "kind": obj["kind"],
            "name": metadata["name"],
            "namespace": metadata.get("namespace"),
            "uid": metadata.get("uid"),
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": {key: value for key, value in involved.items() if value},
            "reason": reason,
            "message": message,
            "source": {"component": self._component},
            "firstTimestamp": timestamp(),
            "lastTimestamp": timestamp(),
            "reportingComponent": self._component,
        }
