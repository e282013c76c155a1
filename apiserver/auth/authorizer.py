"""The question that every request, review and impersonation asks, and how a refusal is worded.

Source: ``kube-api.md`` 2.17 and 3.6.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from apiserver.auth.rules import ALL, Rule
from apiserver.machinery.access import AccessDenied, Authorize
from apiserver.machinery.request import RequestInfo
from apiserver.machinery.rest import User
from krm.meta.errors import ResourceName


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a user may do something, and why; a refusal has a reason only if something besides is wrong."""

    allowed: bool
    reason: str = ""


@dataclass(frozen=True, slots=True)
class UserRules:
    """Every rule that applies to a user in one namespace; ``errors`` tell what could not be resolved."""

    rules: Sequence[dict[str, Any]]
    errors: Sequence[str] = ()


class Authorizer(Protocol):
    """Decides from memory: neither method waits."""

    def decide(self, user: User, info: RequestInfo) -> Decision:
        """Tell whether ``user`` may do what ``info`` describes."""
        ...

    def rules_for(self, user: User, namespace: str) -> UserRules:
        """Return the rules that apply to a user in a namespace; "" for the cluster scope alone."""
        ...


class AlwaysAllow:
    """Lets every known user do everything."""

    def decide(self, _user: User, _info: RequestInfo) -> Decision:
        """Allow it."""
        return Decision(True)

    def rules_for(self, _user: User, _namespace: str) -> UserRules:
        """Return two rules that give every right there is."""
        return UserRules(
            [
                {"verbs": [ALL], "apiGroups": [ALL], "resources": [ALL]},
                {"verbs": [ALL], "nonResourceURLs": [ALL]},
            ]
        )


def enforced(authorizer: Authorizer) -> Authorize:
    """Return the authorizer as the request pipeline asks it."""

    async def authorize(user: User, info: RequestInfo) -> str:
        decision = authorizer.decide(user, info)
        if not decision.allowed:
            raise denied(user, info, decision.reason)
        return decision.reason

    return authorize


def denied(user: User, info: RequestInfo, reason: str = "") -> AccessDenied:
    """Build the refusal; what came from the client is made safe for those who show it as HTML."""
    why = _escaped(_cannot(user.name, info))
    if reason:
        why = f"{why}: {reason}"
    if not info.resource:
        return AccessDenied(f"forbidden: {why}", info=info, reason=reason)
    what = str(ResourceName(info.resource, info.group))
    named = f'{what} "{info.name}"' if info.name else what
    return AccessDenied(f"{named} is forbidden: {why}", info=info, reason=reason)


def parsed(rules: Sequence[dict[str, Any]]) -> list[Rule]:
    """Return rules as values that can be asked."""
    return [Rule.of(rule) for rule in rules]


def _cannot(user: str, info: RequestInfo) -> str:
    if not info.resource:
        return f'User "{user}" cannot {info.verb} path "{info.path}"'
    resource = f"{info.resource}/{info.subresource}" if info.subresource else info.resource
    where = f'in the namespace "{info.namespace}"' if info.namespace else "at the cluster scope"
    return f'User "{user}" cannot {info.verb} resource "{resource}" in API group "{info.group}" {where}'


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
