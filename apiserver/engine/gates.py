"""Where readiness gates are asked: before a revision is proposed or published, whoever wants it and through whatever door.

The rules are ``apiserver.rules.readiness`` and ``gate_bypass``; here a bypass is checked and reported. Source:
``decisions.md`` 14.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from apiserver.engine.recording import REVISIONS
from apiserver.engine.revision_events import GATES_BYPASSED, RevisionEvents
from apiserver.rules.gate_bypass import BYPASS, VERB, check_reason
from apiserver.rules.lifecycle import GROUP, KIND, Lifecycle
from apiserver.rules.readiness import gates_holding, unready
from krm.meta.errors import Forbidden, Invalid
from storage.bodies import decode
from storage.interfaces import Entry

Json = dict[str, Any]
MayBypass = Callable[[], Awaitable[bool]]
"""Tells whether the author of the request holds the verb."""


async def nobody() -> bool:
    """Let nobody past: for callers that act for no user."""
    return False


@dataclass(frozen=True, slots=True)
class GateRequest:
    """Who wants a revision past its gates, and where."""

    user: str
    deployment: bool
    bypass: str | None
    """The reason why gates are to be bypassed; None when the request does not ask for it."""
    may_bypass: MayBypass


@dataclass(frozen=True, slots=True)
class Bypass:
    """Unmet gates that a request may leave behind."""

    user: str
    reason: str
    gates: tuple[str, ...]


class Gates:
    """Lets changes pass, or not."""

    def __init__(self, events: RevisionEvents) -> None:
        self._events = events

    async def passage(
        self, name: str, body: Json, current: Lifecycle, desired: Lifecycle, request: GateRequest
    ) -> Bypass | None:
        """Return None when no gate holds the change, else by what right it may be done all the same.

        ``body`` is the object with the gates and conditions that it will have.

        Raises:
            Invalid: gates are unmet and the request does not ask to bypass them, or gives no reason.
            Forbidden: it asks, and its author does not hold the verb.
        """
        gates, conditions = body["spec"].get("readinessGates") or (), body["status"].get("conditions") or ()
        unmet = gates_holding(current, desired, gates, conditions, deployment=request.deployment)
        if not unmet:
            return None
        if request.bypass is None:
            raise unready(name, current, unmet, conditions)
        if causes := check_reason(request.bypass):
            raise Invalid.of(KIND, GROUP, name, causes)
        if not await request.may_bypass():
            why = (
                f'annotation {BYPASS} needs the verb "{VERB}" on {REVISIONS}, which user "{request.user}" does not hold'
            )
            raise Forbidden.of(REVISIONS, name, why, unready(name, current, unmet, conditions).causes)
        return Bypass(request.user, request.bypass.strip(), tuple(gate for gate, _ in unmet))

    def passed(self, bypass: Bypass | None, entry: Entry, *, dry_run: bool) -> Entry:
        """Report a bypass once the change is written; returns ``entry``."""
        if bypass is not None and not dry_run:
            gates = ", ".join(bypass.gates)
            message = f"{bypass.user} bypassed unmet readiness gates ({gates}): {bypass.reason}"
            self._events.report(decode(entry), GATES_BYPASSED, message, warning=True)
        return entry
