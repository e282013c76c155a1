"""Who may write a role or a binding."""

from collections.abc import Sequence
from typing import Any

import pytest

from apiserver.auth.authorizer import Decision, UserRules
from apiserver.auth.escalation import EscalationCheck
from apiserver.machinery.request import RequestInfo
from apiserver.machinery.rest import User
from krm.meta.errors import Forbidden, NotFound

BOB = User("bob", ("team-a",))
MASTER = User("root", ("system:masters",))
READ = {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}
SECRETS = {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}
ALL = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}]


class Rights:
    """Gives ``rules`` to everybody, and the verbs ``exempt``; knows the roles ``roles``."""

    def __init__(self, rules: Sequence[Any] = (), exempt: str = "", errors: Sequence[str] = ()) -> None:
        self.rules, self.exempt, self.errors = rules, exempt, errors
        self.asked: list[RequestInfo] = []

    def decide(self, _user: User, info: RequestInfo) -> Decision:
        self.asked.append(info)
        return Decision(info.verb == self.exempt)

    def rules_for(self, _user: User, _namespace: str) -> UserRules:
        return UserRules(self.rules, self.errors)

    def role_rules(self, kind: str, namespace: str, name: str) -> Sequence[Any] | None:
        known = {("ClusterRole", "", "secrets"): [SECRETS], ("Role", "shop", "reader"): [READ]}
        return known.get((kind, namespace, name))


def check(rights: Rights) -> EscalationCheck:
    return EscalationCheck(rights, rights)


def role(*rules: Any, kind: str = "Role", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": "r"}, "rules": list(rules), **more}


def binding(kind: str, name: str) -> dict[str, Any]:
    return {"metadata": {"name": "b"}, "roleRef": {"kind": kind, "name": name}}


def test_what_one_has_may_be_given() -> None:
    check(Rights([READ])).check_role(BOB, role(READ), "shop")
    check(Rights([READ])).check_binding(BOB, binding("Role", "reader"), "shop")


def test_what_one_lacks_may_not_be_given_and_is_named() -> None:
    with pytest.raises(Forbidden) as refused:
        check(Rights([READ])).check_role(BOB, role(READ, SECRETS), "shop")

    assert refused.value.message == (
        'roles.rbac.authorization.k8s.io "r" is forbidden: user "bob" (groups=["team-a"]) is attempting to grant RBAC '
        'permissions not currently held:\n{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}'
    )


def test_errors_on_the_way_are_told() -> None:
    with pytest.raises(Forbidden, match=r"resolution errors: \[role x not found\]"):
        check(Rights([], errors=["role x not found"])).check_role(BOB, role(READ), "shop")


def test_a_binding_gives_what_its_role_gives() -> None:
    with pytest.raises(Forbidden) as refused:
        check(Rights([READ])).check_binding(BOB, binding("ClusterRole", "secrets"), "")

    assert refused.value.message.startswith(
        'clusterrolebindings.rbac.authorization.k8s.io "b" is forbidden: user "bob"'
    )


def test_a_binding_to_a_role_that_is_not_there_is_refused_unless_one_may_bind_it() -> None:
    with pytest.raises(NotFound, match='"none" not found'):
        check(Rights(ALL)).check_binding(BOB, binding("ClusterRole", "none"), "shop")
    check(Rights(exempt="bind")).check_binding(BOB, binding("ClusterRole", "none"), "shop")


@pytest.mark.parametrize("user", [pytest.param(MASTER, id="masters"), pytest.param(BOB, id="escalate")])
def test_masters_and_who_may_escalate_may_give_anything(user: User) -> None:
    rights = Rights(exempt="escalate" if user is BOB else "")

    check(rights).check_role(user, role(SECRETS), "shop")

    if user is BOB:
        asked = rights.asked[0]
        assert (asked.verb, asked.resource, asked.namespace, asked.name) == ("escalate", "roles", "shop", "r")


def test_to_gather_rules_of_others_one_needs_every_right() -> None:
    gathering = role(kind="ClusterRole", aggregationRule={"clusterRoleSelectors": [{}]})

    with pytest.raises(Forbidden, match="must have cluster-admin privileges to use an aggregationRule"):
        check(Rights([READ])).check_role(BOB, gathering, "")
    check(Rights(ALL)).check_role(BOB, gathering, "")


def test_a_role_too_large_to_compare_is_refused() -> None:
    many = [str(number) for number in range(100)]

    with pytest.raises(Forbidden, match="too many rights"):
        check(Rights([READ])).check_role(BOB, role({"verbs": many, "apiGroups": many, "resources": many}), "shop")


@pytest.mark.parametrize("reference", [None, {}, {"kind": "Thing", "name": "x"}, {"kind": "Role"}])
def test_a_broken_reference_is_left_to_validation(reference: Any) -> None:
    check(Rights()).check_binding(BOB, {"metadata": {}, "roleRef": reference}, "shop")
