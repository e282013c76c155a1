"""Role-based access from the stored roles and bindings, kept in memory and asked in microseconds.

The index follows the store's events. A question looks only at bindings that name the user or one of the user's groups,
so its cost does not depend on how many others there are. Source: ``kube-api.md`` 3.6.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from apiserver.auth.authorizer import Decision, UserRules
from apiserver.auth.identity import MASTERS, service_account_user
from apiserver.auth.rules import Rule
from apiserver.machinery.request import RequestInfo
from apiserver.machinery.rest import User
from storage.bodies import decode
from storage.interfaces import Entry, Event, EventType, ObjectStore

GROUP = "rbac.authorization.k8s.io"
ROLES, CLUSTER_ROLES = f"roles.{GROUP}", f"clusterroles.{GROUP}"
ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS = f"rolebindings.{GROUP}", f"clusterrolebindings.{GROUP}"
MAX_REASONS = 10
"""Missing roles that one refusal names."""

Json = dict[str, Any]
_Subject = tuple[str, str]
"""(User or Group, name)."""


@dataclass(frozen=True, slots=True)
class _Role:
    rules: tuple[Rule, ...]
    stored: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class _Binding:
    """``namespace`` is empty for a ClusterRoleBinding; ``role`` is where its role is found."""

    namespace: str
    name: str
    role: tuple[str, str, str]
    """(kind, namespace, name)."""
    subjects: Mapping[_Subject, str]
    """Subject → how it is said in a reason."""


class RbacAuthorizer:
    """Allows what the stored roles allow, and everything to ``system:masters``."""

    def __init__(self) -> None:
        self._roles: dict[tuple[str, str, str], _Role] = {}
        self._bindings: dict[tuple[str, str], _Binding] = {}
        self._by_subject: dict[tuple[str, _Subject], dict[str, _Binding]] = defaultdict(dict)
        """(namespace, subject) → bindings by name, in the order of their creation."""

    def follow(self, store: ObjectStore) -> None:
        """Keep up with the roles and bindings of a store; called before the store starts."""
        for resource in (ROLES, CLUSTER_ROLES):
            store.observe(resource, self.observe_role)
        for resource in (ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS):
            store.observe(resource, self.observe_binding)

    def observe_role(self, event: Event) -> None:
        """Take in a changed Role or ClusterRole."""
        entry = event.entry
        key = ("ClusterRole" if entry.key.resource == CLUSTER_ROLES else "Role", entry.namespace, entry.name)
        if event.type is EventType.DELETED:
            self._roles.pop(key, None)
            return
        stored = tuple(decode(entry).get("rules") or ())
        self._roles[key] = _Role(tuple(Rule.of(rule) for rule in stored), stored)

    def observe_binding(self, event: Event) -> None:
        """Take in a changed RoleBinding or ClusterRoleBinding."""
        key = (event.entry.namespace, event.entry.name)
        previous = self._bindings.pop(key, None)
        if previous is not None:
            for subject in previous.subjects:
                bound = self._by_subject[key[0], subject]
                del bound[key[1]]
                if not bound:
                    del self._by_subject[key[0], subject]
        if event.type is EventType.DELETED:
            return
        binding = self._bindings[key] = _binding(event.entry)
        for subject in binding.subjects:
            self._by_subject[key[0], subject][key[1]] = binding

    def decide(self, user: User, info: RequestInfo) -> Decision:
        """Tell whether ``user`` may do what ``info`` describes."""
        if MASTERS in user.groups:
            return Decision(True)
        missing: dict[str, None] = {}
        for binding, subject in self._bound(user, info.namespace or ""):
            role = self._roles.get(binding.role)
            if role is None:
                missing[_not_found(binding)] = None
                continue
            for rule in role.rules:
                if rule.allows(info):
                    return Decision(True, _reason(binding, subject))
        return Decision(False, _aggregate(list(missing)))

    def rules_for(self, user: User, namespace: str) -> UserRules:
        """Return the rules that apply to a user in a namespace; "" for the cluster scope alone."""
        rules: list[Json] = []
        errors: dict[str, None] = {}
        for binding, _ in self._bound(user, namespace):
            role = self._roles.get(binding.role)
            if role is None:
                errors[_not_found(binding)] = None
            else:
                rules += role.stored
        return UserRules(rules, tuple(errors))

    def role_rules(self, kind: str, namespace: str, name: str) -> tuple[Json, ...] | None:
        """Return the rules of a Role or ClusterRole (``namespace`` "" then); None when there is no such role."""
        role = self._roles.get((kind, namespace, name))
        return None if role is None else role.stored

    def _bound(self, user: User, namespace: str) -> Iterator[tuple[_Binding, str]]:
        """Yield every binding that holds for a user, with the subject it names; those of the cluster come first."""
        subjects = [("User", user.name), *(("Group", group) for group in user.groups)]
        for where in ("", namespace) if namespace else ("",):
            for subject in subjects:
                for binding in self._by_subject.get((where, subject), {}).values():
                    yield binding, binding.subjects[subject]


def _binding(entry: Entry) -> _Binding:
    obj = decode(entry)
    reference = obj["roleRef"]
    namespace = entry.namespace if reference["kind"] == "Role" else ""
    subjects = {}
    for subject in obj.get("subjects") or ():
        kind, name = subject.get("kind", ""), subject.get("name", "")
        if kind == "ServiceAccount":
            where = subject.get("namespace") or entry.namespace
            subjects["User", service_account_user(where, name)] = f'ServiceAccount "{name}/{where}"'
        else:
            subjects[kind, name] = f'{kind} "{name}"'
    return _Binding(entry.namespace, entry.name, (reference["kind"], namespace, reference["name"]), subjects)


def _reason(binding: _Binding, subject: str) -> str:
    kind, _, name = binding.role
    where = (
        f'RoleBinding "{binding.name}/{binding.namespace}"'
        if binding.namespace
        else (f'ClusterRoleBinding "{binding.name}"')
    )
    return f'RBAC: allowed by {where} of {kind} "{name}" to {subject}'


def _not_found(binding: _Binding) -> str:
    kind, _, name = binding.role
    return f'{kind.lower()}.{GROUP} "{name}" not found'


def _aggregate(errors: list[str]) -> str:
    if not errors:
        return ""
    shown = errors[:MAX_REASONS]
    return f"RBAC: {shown[0]}" if len(shown) == 1 else f"RBAC: [{', '.join(shown)}]"
