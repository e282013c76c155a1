"""Nobody may give away rights that they do not have, by a role or by a binding to one.

Source: ``kube-api.md`` 3.6 (escalation check); rules and wording are those of ``rbac.authorization.k8s.io``.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from apiserver.auth.authorizer import Authorizer, parsed
from apiserver.auth.identity import MASTERS
from apiserver.auth.rbac import GROUP
from apiserver.auth.rules import ALL, TooManyRights, describe, missing_rights, quoted
from apiserver.machinery.request import RequestInfo
from apiserver.machinery.rest import User
from krm.meta.errors import Forbidden, NotFound, ResourceName

Json = dict[str, Any]
PLURALS = {"Role": "roles", "ClusterRole": "clusterroles"}

_EVERYTHING: Sequence[Json] = (
    {"verbs": [ALL], "apiGroups": [ALL], "resources": [ALL]},
    {"verbs": [ALL], "nonResourceURLs": [ALL]},
)


class RoleRules(Protocol):
    """Knows what each role gives."""

    def role_rules(self, kind: str, namespace: str, name: str) -> Sequence[Json] | None:
        """Return the rules of a Role, or of a ClusterRole with ``namespace`` ""; None when there is none."""
        ...


class EscalationCheck:
    """Compares what a write would give with what its author has."""

    def __init__(self, authorizer: Authorizer, roles: RoleRules) -> None:
        self._authorizer = authorizer
        self._roles = roles

    def check_role(self, user: User, role: Json, namespace: str) -> None:
        """Refuse a role that gives more than its author has; ``namespace`` is "" for a ClusterRole.

        The verb ``escalate`` on the role exempts; a ClusterRole that gathers others' rules needs every right.

        Raises:
            Forbidden: rights are missing; the message names them.
        """
        plural, name = PLURALS[role["kind"]], role["metadata"].get("name") or ""
        if self._may(user, "escalate", plural, namespace, name):
            return
        resource = ResourceName(plural, GROUP)
        if role.get("aggregationRule") and self._missing(user, "", _EVERYTHING):
            raise Forbidden.of(resource, name, "must have cluster-admin privileges to use an aggregationRule")
        if missing := self._missing(user, namespace, role.get("rules") or ()):
            raise Forbidden.of(resource, name, missing)

    def check_binding(self, user: User, binding: Json, namespace: str) -> None:
        """Refuse a binding to a role that gives more than its author has; ``namespace`` is "" for a ClusterRoleBinding.

        The verb ``bind`` on the role exempts.

        Raises:
            Forbidden: rights are missing; the message names them.
            NotFound: there is no such role, so nobody can tell what it will give.
        """
        reference = binding.get("roleRef") or {}
        kind, role = reference.get("kind"), reference.get("name")
        if kind not in PLURALS or not role:
            # Validation refuses it, with what is wrong.
            return
        within = namespace if kind == "Role" else ""
        if self._may(user, "bind", PLURALS[kind], namespace, role):
            return
        rules = self._roles.role_rules(kind, within, role)
        if rules is None:
            raise NotFound.of(ResourceName(kind.lower(), GROUP), role)
        if missing := self._missing(user, namespace, rules):
            plural = "rolebindings" if namespace else "clusterrolebindings"
            raise Forbidden.of(ResourceName(plural, GROUP), binding["metadata"].get("name") or "", missing)

    def _may(self, user: User, verb: str, plural: str, namespace: str, name: str) -> bool:
        if MASTERS in user.groups:
            return True
        info = RequestInfo(verb, "", group=GROUP, version="v1", resource=plural, namespace=namespace or None, name=name)
        return self._authorizer.decide(user, info).allowed

    def _missing(self, user: User, namespace: str, wanted: Sequence[Json]) -> str:
        """Say which of the wanted rights the user does not have; "" when all are there."""
        held = self._authorizer.rules_for(user, namespace)
        try:
            missing = missing_rights(parsed(held.rules), wanted)
        except TooManyRights:
            return "the rules give too many rights to compare with the author's; write fewer rules, or use wildcards"
        if not missing:
            return ""
        rights = "\n".join(describe(missing))
        errors = f"; resolution errors: [{', '.join(held.errors)}]" if held.errors else ""
        return (
            f'user "{user.name}" (groups={quoted(user.groups)}) is attempting to grant RBAC permissions not currently '
            f"held:\n{rights}{errors}"
        )
