"""Roles and bindings as events, questions as requests: who may, why, and at what cost."""

import itertools
from typing import Any

import orjson
import pytest
from cost import processor_seconds

from apiserver.auth.authorizer import AlwaysAllow, enforced
from apiserver.auth.rbac import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES, RbacAuthorizer
from apiserver.machinery.access import AccessDenied
from apiserver.machinery.request import RequestInfo
from apiserver.machinery.rest import User
from storage.interfaces import Entry, Event, EventType, ObjectKey

BOB = User("bob", ("team-a", "system:authenticated"))
READ = [{"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"]}]
_revisions = itertools.count(1)


def event(resource: str, namespace: str, name: str, content: dict[str, Any], type_: str = "ADDED") -> Event:
    obj = {"metadata": {"name": name, "namespace": namespace}, **content}
    key, rv = ObjectKey(resource, namespace, name), next(_revisions)
    return Event(rv, EventType(type_), Entry(key, rv, rv, "", orjson.dumps(obj), {}, ()), None)


class Roles(RbacAuthorizer):
    """An authorizer with short ways to fill it."""

    def role(self, name: str, rules: object = READ, namespace: str = "", type_: str = "ADDED") -> None:
        self.observe_role(event(ROLES if namespace else CLUSTER_ROLES, namespace, name, {"rules": rules}, type_))

    def bind(
        self,
        name: str,
        role: str,
        *subjects: dict[str, str],
        namespace: str = "",
        kind: str = "ClusterRole",
        type_: str = "ADDED",
    ) -> None:
        content = {"roleRef": {"kind": kind, "name": role}, "subjects": list(subjects)}
        self.observe_binding(
            event(ROLE_BINDINGS if namespace else CLUSTER_ROLE_BINDINGS, namespace, name, content, type_)
        )

    def may(self, user: User, namespace: str | None = "shop", verb: str = "get") -> bool:
        return self.decide(user, request(namespace, verb)).allowed


def request(namespace: str | None = "shop", verb: str = "get") -> RequestInfo:
    return RequestInfo(verb, "", version="v1", resource="configmaps", namespace=namespace, name="a")


def user(name: str) -> dict[str, str]:
    return {"kind": "User", "name": name}


def group(name: str) -> dict[str, str]:
    return {"kind": "Group", "name": name}


@pytest.fixture
def roles() -> Roles:
    return Roles()


def test_nobody_may_anything_without_a_binding(roles: Roles) -> None:
    roles.role("reader")

    assert not roles.may(BOB)


def test_a_cluster_role_binding_holds_everywhere(roles: Roles) -> None:
    roles.role("reader")
    roles.bind("b", "reader", user("bob"))

    assert roles.may(BOB)
    assert roles.may(BOB, None)
    assert not roles.may(User("alice"))
    assert not roles.may(BOB, verb="list")


def test_a_role_binding_holds_in_its_namespace(roles: Roles) -> None:
    roles.role("reader")
    roles.role("local", namespace="shop")
    roles.bind("b", "reader", group("team-a"), namespace="shop")
    roles.bind("c", "local", user("carol"), namespace="shop", kind="Role")

    assert roles.may(BOB)
    assert roles.may(User("carol"))
    for who in (BOB, User("carol")):
        assert not roles.may(who, "other")
        assert not roles.may(who, None)


def test_a_role_of_another_namespace_is_not_found(roles: Roles) -> None:
    roles.role("local", namespace="other")
    roles.bind("b", "local", user("bob"), namespace="shop", kind="Role")

    decision = roles.decide(BOB, request())

    assert not decision.allowed
    assert decision.reason == 'RBAC: role.rbac.authorization.k8s.io "local" not found'


def test_a_service_account_is_bound_by_its_own_name(roles: Roles) -> None:
    roles.role("reader")
    roles.bind("b", "reader", {"kind": "ServiceAccount", "name": "robot", "namespace": "tools"})
    roles.bind("c", "reader", {"kind": "ServiceAccount", "name": "robot"}, namespace="shop")

    assert roles.may(User("system:serviceaccount:tools:robot"), "anywhere")
    assert roles.may(User("system:serviceaccount:shop:robot"))
    assert not roles.may(User("system:serviceaccount:other:robot"))
    assert not roles.may(User("robot"))


def test_reasons_name_binding_role_and_subject(roles: Roles) -> None:
    roles.role("reader")
    roles.bind("b", "reader", group("team-a"), namespace="shop")

    assert roles.decide(BOB, request()).reason == (
        'RBAC: allowed by RoleBinding "b/shop" of ClusterRole "reader" to Group "team-a"'
    )


def test_changes_and_deletions_count_at_once(roles: Roles) -> None:
    roles.role("reader")
    roles.bind("b", "reader", user("bob"))
    roles.role("reader", [], type_="MODIFIED")
    assert not roles.may(BOB)

    roles.role("reader", READ, type_="MODIFIED")
    roles.bind("b", "reader", user("carol"), type_="MODIFIED")
    assert not roles.may(BOB)
    assert roles.may(User("carol"))

    roles.bind("b", "reader", user("carol"), type_="DELETED")
    assert not roles.may(User("carol"))
    roles.bind("b", "reader", user("carol"))
    roles.role("reader", type_="DELETED")
    assert not roles.may(User("carol"))


def test_several_missing_roles_are_told_once_each(roles: Roles) -> None:
    roles.bind("a", "x", user("bob"))
    roles.bind("b", "y", group("team-a"))
    roles.bind("c", "x", group("team-a"))

    assert roles.decide(BOB, request()).reason == (
        'RBAC: [clusterrole.rbac.authorization.k8s.io "x" not found, clusterrole.rbac.authorization.k8s.io "y" not found]'
    )


def test_masters_may_everything_without_any_role(roles: Roles) -> None:
    assert roles.may(User("root", ("system:masters",)), verb="bypass-gates")


def test_the_rules_of_a_user_are_those_of_every_binding(roles: Roles) -> None:
    roles.role("reader")
    roles.role("local", [{"verbs": ["list"]}], namespace="shop")
    roles.bind("b", "reader", user("bob"))
    roles.bind("c", "local", group("team-a"), namespace="shop", kind="Role")
    roles.bind("d", "none", user("bob"))

    found = roles.rules_for(BOB, "shop")

    assert found.rules == [*READ, {"verbs": ["list"]}]
    assert found.errors == ('clusterrole.rbac.authorization.k8s.io "none" not found',)
    assert roles.rules_for(BOB, "").rules == READ


def test_the_cost_of_a_question_does_not_grow_with_bindings_of_others(roles: Roles) -> None:
    def microseconds() -> float:
        return processor_seconds(lambda: [roles.may(BOB) for _ in range(200)], times=20) / 200 * 1e6

    roles.role("reader")
    roles.bind("b", "reader", user("bob"), namespace="shop")
    alone = microseconds()
    for number in range(5000):
        roles.role(f"r{number}")
        roles.bind(f"b{number}", f"r{number}", user(f"u{number}"), namespace="shop")

    assert microseconds() < 5 * alone + 20


@pytest.mark.parametrize(
    ("info", "message"),
    [
        pytest.param(
            request(),
            'configmaps "a" is forbidden: User "bob" cannot get resource "configmaps" in API group "" in the namespace "shop"',
            id="object",
        ),
        pytest.param(
            RequestInfo("list", "", group="porch.kpt.dev", resource="packagerevisions", subresource="approval"),
            'packagerevisions.porch.kpt.dev is forbidden: User "bob" cannot list resource "packagerevisions/approval" in '
            'API group "porch.kpt.dev" at the cluster scope',
            id="subresource-at-the-cluster-scope",
        ),
        pytest.param(
            RequestInfo("get", "/metrics?<&>"),
            'forbidden: User "bob" cannot get path "/metrics?&lt;&amp;&gt;"',
            id="path",
        ),
    ],
)
async def test_refusals_are_worded_as_clients_know_them(roles: Roles, info: RequestInfo, message: str) -> None:
    with pytest.raises(AccessDenied) as refused:
        await enforced(roles)(BOB, info)

    assert refused.value.message == message
    assert refused.value.to_status()["code"] == 403


async def test_a_refusal_tells_what_is_wrong_besides(roles: Roles) -> None:
    roles.bind("b", "gone", user("bob"))

    with pytest.raises(AccessDenied) as refused:
        await enforced(roles)(BOB, request())

    assert refused.value.message.endswith('"shop": RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found')


async def test_always_allow_is_what_it_says() -> None:
    assert AlwaysAllow().decide(BOB, request()).allowed
    assert await enforced(AlwaysAllow())(BOB, request()) == ""
