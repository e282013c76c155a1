"""What a namespace that is being deleted says about what is left in it."""

from collections import Counter
from typing import Any

from apiserver.resources.namespace_conditions import Remaining, with_conditions

Json = dict[str, Any]
NAMESPACE: Json = {"metadata": {"name": "team"}, "status": {"phase": "Terminating"}}


def told(namespace: Json) -> dict[str, tuple[str, str, str]]:
    conditions = namespace["status"]["conditions"]
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in conditions}


def test_an_empty_namespace_has_no_problem() -> None:
    namespace = with_conditions(NAMESPACE, Remaining())

    assert namespace["status"]["phase"] == "Terminating"
    assert {status for status, _, _ in told(namespace).values()} == {"False"}
    assert len(told(namespace)) == 5


def test_what_is_left_is_counted_by_resource_and_by_finalizer() -> None:
    left = Remaining(
        Counter({"widgets.example.com": 2, "configmaps": 1}), Counter({"b/x": 1, "a/y": 2}), ["no", "never"]
    )
    conditions = told(with_conditions(NAMESPACE, left))

    assert conditions["NamespaceContentRemaining"] == (
        "True",
        "SomeResourcesRemain",
        "Some resources are remaining: configmaps. has 1 resource instances, widgets.example.com has 2 resource instances",
    )
    assert conditions["NamespaceFinalizersRemaining"] == (
        "True",
        "SomeFinalizersRemain",
        "Some content in the namespace has finalizers remaining: a/y in 2 resource instances, b/x in 1 resource instances",
    )
    assert conditions["NamespaceDeletionContentFailure"] == (
        "True",
        "ContentDeletionFailed",
        "Failed to delete all resource types, 2 remaining: never, no",
    )
    assert conditions["NamespaceDeletionDiscoveryFailure"][0] == "False"


def test_the_same_told_again_changes_nothing() -> None:
    left = Remaining(Counter({"configmaps": 1}))
    namespace = with_conditions(NAMESPACE, left)

    assert with_conditions(namespace, left) is namespace
    assert with_conditions(namespace, Remaining()) is not namespace


def test_what_is_left_of_several_kinds_is_added_up() -> None:
    left = Remaining(Counter({"configmaps": 1}), Counter({"a/y": 1}))
    left.add(Remaining(Counter({"secrets": 2}), Counter({"a/y": 2}), ["no"]))

    assert left.resources == {"configmaps": 1, "secrets": 2}
    assert left.finalizers == {"a/y": 3}
    assert left.failures == ["no"]
    assert not Remaining()
