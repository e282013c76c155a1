"""Roles and bindings on a real store: those that are always there, those that gather rules, who may write which."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
import pytest_asyncio

from apiserver.auth.escalation import EscalationCheck
from apiserver.auth.rbac import RbacAuthorizer
from apiserver.machinery.request import RequestInfo
from apiserver.machinery.rest import DeleteOptions, GetOptions, Scope, User, WriteOptions
from apiserver.resources.namespaces import Namespaces, create_protected_namespaces
from apiserver.resources.objects import stored_namespaces
from apiserver.resources.rbac.aggregation import RoleAggregation
from apiserver.resources.rbac.guarded import GuardedObjects, guarded_kinds
from apiserver.resources.rbac.reconciliation import SYSTEM, reconcile_defaults
from krm.meta.errors import Forbidden, Invalid
from storage.interfaces import ObjectKey
from storage.sealing import Sealer
from storage.sql.migrate import upgrade
from storage.sql.sqlite import sqlite_database
from storage.watchcache.store import WatchedStore

Json = dict[str, Any]
GROUP = "rbac.authorization.k8s.io"
BOB = Scope("default", User("bob", ("system:authenticated",)))
READ_WIDGETS = {"verbs": ["get"], "apiGroups": ["example.com"], "resources": ["widgets"]}


@dataclass
class Rbac:
    """The four kinds, the authorizer that follows them, and the controller of gathered rules."""

    store: WatchedStore
    authorizer: RbacAuthorizer
    cluster_roles: GuardedObjects
    roles: GuardedObjects
    cluster_role_bindings: GuardedObjects
    role_bindings: GuardedObjects
    aggregation: RoleAggregation

    async def start(self) -> None:
        """Do what a start of the server does."""
        await reconcile_defaults(self.cluster_roles, self.cluster_role_bindings)
        await self.aggregation.settle()

    def stored(self, kind: GuardedObjects, name: str, namespace: str = "") -> Json:
        entry = self.store.get(ObjectKey(str(kind.definition.resource), namespace, name))
        assert entry is not None, name
        obj: Json = orjson.loads(entry.body)
        return obj

    def may(self, role: str, verb: str, resource: str, group: str = "porch.kpt.dev") -> bool:
        """Tell whether a ClusterRole allows something."""
        plural, _, subresource = resource.partition("/")
        info = RequestInfo(verb, "", group=group, resource=plural, subresource=subresource)
        return any(rule.allows(info) for rule in self.authorizer._roles["ClusterRole", "", role].rules)

    async def change(self, kind: GuardedObjects, name: str, scope: Scope = SYSTEM, **fields: Any) -> None:
        await kind.update(scope, name, lambda present: {**present, **fields}, WriteOptions(field_manager="test"))

    async def create(self, kind: GuardedObjects, name: str, scope: Scope = SYSTEM, **fields: Any) -> None:
        metadata = {"name": name, **fields.pop("metadata", {})}
        head = {"apiVersion": f"{GROUP}/v1", "kind": kind.definition.kind, "metadata": metadata}
        await kind.create(scope, {**head, **fields}, WriteOptions(field_manager="test"))


@pytest_asyncio.fixture
async def rbac(tmp_path: Path) -> AsyncIterator[Rbac]:
    upgrade(tmp_path / "log.db")
    store = WatchedStore(sqlite_database(tmp_path / "log.db"), Sealer(b"k" * 32))
    authorizer = RbacAuthorizer()
    kinds = guarded_kinds(store, EscalationCheck(authorizer, authorizer), stored_namespaces(store))
    aggregation = RoleAggregation(store, kinds[0])
    Namespaces(store).register()
    for kind in kinds:
        kind.register()
    authorizer.follow(store)
    aggregation.follow()
    await store.start()
    await create_protected_namespaces(store)
    wired = Rbac(store, authorizer, kinds[0], kinds[1], kinds[2], kinds[3], aggregation)
    await wired.start()
    yield wired
    await store.stop()


async def test_a_second_start_writes_nothing(rbac: Rbac) -> None:
    revision = rbac.store.rv

    await rbac.start()

    assert rbac.store.rv == revision


async def test_the_default_roles_separate_writing_from_approving(rbac: Rbac) -> None:
    for role, may_write, may_approve in (
        ("view", False, False),
        ("porch-author", True, False),
        ("porch-approver", False, True),
        ("edit", True, False),
        ("admin", True, True),
        ("cluster-admin", True, True),
    ):
        assert rbac.may(role, "update", "packagerevisions") is may_write, role
        assert rbac.may(role, "update", "packagerevisions/approval") is may_approve, role
        assert rbac.may(role, "get", "packagerevisions"), role
    assert not rbac.may("view", "get", "secrets", "")
    assert rbac.may("edit", "get", "secrets", "")
    assert not rbac.may("admin", "bypass-gates", "packagerevisions")
    assert not rbac.may("admin", "create", "clusterroles", GROUP)
    assert rbac.may("admin", "create", "rolebindings", GROUP)


async def test_a_start_completes_what_lacks_something_and_keeps_what_was_added(rbac: Rbac) -> None:
    await rbac.change(rbac.cluster_roles, "system:basic-user", rules=[READ_WIDGETS])
    mine = {"kind": "User", "apiGroup": GROUP, "name": "me"}
    await rbac.change(rbac.cluster_role_bindings, "cluster-admin", subjects=[mine])
    await rbac.cluster_roles.delete(SYSTEM, "system:discovery", DeleteOptions())

    await rbac.start()

    rules = rbac.stored(rbac.cluster_roles, "system:basic-user")["rules"]
    assert rules[0] == READ_WIDGETS
    assert len(rules) == 3
    subjects = rbac.stored(rbac.cluster_role_bindings, "cluster-admin")["subjects"]
    assert [subject["name"] for subject in subjects] == ["me", "system:masters"]
    assert rbac.stored(rbac.cluster_roles, "system:discovery")["rules"]


async def test_who_does_not_want_updates_gets_none(rbac: Rbac) -> None:
    metadata = rbac.stored(rbac.cluster_roles, "porch-author")["metadata"]
    metadata["annotations"] = {"rbac.authorization.kubernetes.io/autoupdate": "false"}
    await rbac.change(rbac.cluster_roles, "porch-author", metadata=metadata, rules=[READ_WIDGETS])

    await rbac.start()

    assert rbac.stored(rbac.cluster_roles, "porch-author")["rules"] == [READ_WIDGETS]


async def test_a_default_binding_to_another_role_is_made_anew(rbac: Rbac) -> None:
    wanted = rbac.stored(rbac.cluster_role_bindings, "system:discovery")
    await rbac.cluster_role_bindings.delete(SYSTEM, "system:discovery", DeleteOptions())
    other = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "cluster-admin"}
    kept = {key: wanted["metadata"][key] for key in ("labels", "annotations")}
    await rbac.create(rbac.cluster_role_bindings, "system:discovery", metadata=kept, roleRef=other)

    await rbac.start()

    assert rbac.stored(rbac.cluster_role_bindings, "system:discovery")["roleRef"]["name"] == "system:discovery"


async def test_rules_are_gathered_as_roles_come_and_go(rbac: Rbac) -> None:
    following = asyncio.create_task(rbac.aggregation.run())
    labels = {"labels": {f"{GROUP}/aggregate-to-view": "true"}}
    try:
        await rbac.create(rbac.cluster_roles, "widgets-view", metadata=labels, rules=[READ_WIDGETS])
        for role in ("view", "edit", "admin"):
            await _eventually(rbac, role, READ_WIDGETS, there=True)
        await rbac.cluster_roles.delete(SYSTEM, "widgets-view", DeleteOptions())
        for role in ("view", "edit", "admin"):
            await _eventually(rbac, role, READ_WIDGETS, there=False)
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following


async def test_roles_that_gather_from_each_other_come_to_rest(rbac: Rbac) -> None:
    def gathering(label: str) -> Json:
        return {"clusterRoleSelectors": [{"matchExpressions": [{"key": label, "operator": "Exists"}]}]}

    await rbac.create(rbac.cluster_roles, "a", metadata={"labels": {"a": "1"}}, aggregationRule=gathering("b"))
    await rbac.create(rbac.cluster_roles, "b", metadata={"labels": {"b": "1"}}, aggregationRule=gathering("a"))
    await rbac.create(rbac.cluster_roles, "c", metadata={"labels": {"a": "1"}}, rules=[READ_WIDGETS])

    async with asyncio.timeout(60):
        await rbac.aggregation.settle()

    assert rbac.stored(rbac.cluster_roles, "a")["rules"] == [READ_WIDGETS]
    assert rbac.stored(rbac.cluster_roles, "b")["rules"] == [READ_WIDGETS]


async def test_no_door_leads_around_the_escalation_check(rbac: Rbac) -> None:
    """Create, replace, a change in place and a create by update: each is refused, and changes nothing."""
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    await rbac.create(rbac.roles, "mine", Scope("default", SYSTEM.user), rules=[])

    def in_place(present: Json) -> Json:
        present["rules"] = [everything]
        return present

    def anew(_present: Json) -> Json:
        head = {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": {"name": "new"}}
        return {**head, "rules": [everything]}

    options = WriteOptions(field_manager="test")
    for attempt in (
        rbac.create(rbac.roles, "new", BOB, rules=[everything]),
        rbac.change(rbac.roles, "mine", BOB, rules=[everything]),
        rbac.roles.update(BOB, "mine", in_place, options),
        rbac.roles.update(BOB, "new", anew, options),
        rbac.roles.update(BOB, "mine", in_place, WriteOptions(dry_run=True)),
    ):
        with pytest.raises(Forbidden, match="attempting to grant RBAC permissions not currently held"):
            await attempt

    assert not rbac.stored(rbac.roles, "mine", "default")["rules"]
    assert rbac.store.get(ObjectKey(f"roles.{GROUP}", "default", "new")) is None


async def test_the_collector_may_take_its_finalizer_off_any_role(rbac: Rbac) -> None:
    await rbac.create(
        rbac.cluster_roles,
        "held",
        metadata={"finalizers": ["example.com/held"]},
        rules=[{**READ_WIDGETS, "verbs": ["*"]}],
    )
    metadata = {**rbac.stored(rbac.cluster_roles, "held")["metadata"], "finalizers": []}

    await rbac.change(rbac.cluster_roles, "held", Scope(None, BOB.user), metadata=metadata)

    assert "finalizers" not in rbac.stored(rbac.cluster_roles, "held")["metadata"]


async def test_the_role_of_a_binding_cannot_be_changed(rbac: Rbac) -> None:
    reference = {"apiGroup": GROUP, "kind": "ClusterRole", "name": "cluster-admin"}

    with pytest.raises(Invalid, match="cannot change roleRef"):
        await rbac.change(rbac.cluster_role_bindings, "system:discovery", roleRef=reference)


async def test_defaults_are_answered_from_the_store(rbac: Rbac) -> None:
    item = await rbac.cluster_roles.get(SYSTEM, "system:discovery", GetOptions())

    assert orjson.loads(item.body)["metadata"]["labels"] == {"kubernetes.io/bootstrapping": "rbac-defaults"}


async def _eventually(rbac: Rbac, role: str, rule: Json, *, there: bool) -> None:
    for _ in range(100):
        if (rule in (rbac.stored(rbac.cluster_roles, role)["rules"] or [])) is there:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"the rule is {'not ' if there else ''}in {role} after 5 s")
