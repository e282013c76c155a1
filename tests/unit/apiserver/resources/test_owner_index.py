"""Who depends on whom, followed through events."""

from typing import Any

from apiserver.resources.owner_index import OwnerIndex
from storage.bodies import encode_body, with_revision
from storage.interfaces import Entry, Event, EventType, ObjectKey

Json = dict[str, Any]


def owner(uid: str, *, block: bool = False) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": f"of-{uid}", "uid": uid, "blockOwnerDeletion": block}


def entry(name: str, *owners: Json, namespace: str = "default") -> Entry:
    metadata = {"name": name, "namespace": namespace, "uid": name, "ownerReferences": list(owners)}
    body = encode_body({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    key = ObjectKey("configmaps", namespace, name)
    return Entry(key, 1, 1, name, with_revision(body, 1), {}, ())


def seen(index: OwnerIndex, name: str, *owners: Json, namespace: str = "default") -> ObjectKey:
    found = entry(name, *owners, namespace=namespace)
    index.apply(Event(1, EventType.ADDED, found, None))
    return found.key


def gone(index: OwnerIndex, name: str, namespace: str = "default") -> None:
    index.apply(Event(2, EventType.DELETED, entry(name, namespace=namespace), None))


def test_dependents_are_found_by_the_uid_of_their_owner_in_the_order_they_came() -> None:
    index = OwnerIndex()
    first, second = seen(index, "b", owner("o")), seen(index, "a", owner("o"), owner("p"))
    seen(index, "free")

    assert index.dependents("o") == (first, second)
    assert index.dependents("p") == (second,)
    assert not index.has_dependents("free")
    assert index.keys() == (first, second)


def test_a_change_of_owners_replaces_what_was_known() -> None:
    index = OwnerIndex()
    seen(index, "a", owner("o", block=True))
    key = seen(index, "a", owner("p"))

    assert index.dependents("o") == ()
    assert index.dependents("p") == (key,)
    assert not index.is_blocked("o")


def test_an_owner_is_blocked_until_the_last_dependent_that_blocks_it_goes() -> None:
    index = OwnerIndex()
    for name in ("a", "b"):
        seen(index, name, owner("o", block=True))
    seen(index, "c", owner("o"))

    gone(index, "a")
    before = index.is_blocked("o")
    gone(index, "b")

    assert before
    assert not index.is_blocked("o")
    assert index.has_dependents("o")


def test_an_owner_that_is_named_twice_counts_once_less_when_its_dependent_goes() -> None:
    index = OwnerIndex()
    seen(index, "a", owner("o", block=True), owner("o"))
    gone(index, "a")

    assert not index.has_dependents("o")
    assert not index.is_blocked("o")


def test_departed_owners_are_remembered_for_those_they_could_own_as_long_as_somebody_depends_on_them() -> None:
    index = OwnerIndex()
    key = seen(index, "a", owner("o"))
    elsewhere = ObjectKey("configmaps", "team", "x")
    gone(index, "o")
    departed = index.departed("o", key), index.departed("o", elsewhere)
    gone(index, "a")

    assert departed == (True, False)
    assert not index.departed("o", key)


def test_what_belongs_to_the_cluster_can_have_owned_anything() -> None:
    index = OwnerIndex()
    key = seen(index, "a", owner("o"))
    gone(index, "o", namespace="")

    assert index.departed("o", key)


def test_a_kind_that_is_no_longer_served_leaves_nothing_behind() -> None:
    index = OwnerIndex()
    seen(index, "a", owner("o", block=True))
    index.drop("configmaps")

    assert index.keys() == ()
    assert not index.is_blocked("o")


def test_malformed_references_are_no_owners() -> None:
    index = OwnerIndex()
    key = seen(index, "a", {"name": "no uid"}, owner("o"))

    assert [one.uid for one in index.owners(key)] == ["o"]
