"""What is served now: who is told of what, and when."""

from typing import Any

import pytest
from custom_kinds import definition, version

from apiserver.machinery.rest import Served
from apiserver.resources.custom.kinds import served_definitions
from apiserver.resources.served_kinds import ServedKinds
from krm.meta.errors import ResourceName

Json = dict[str, Any]
WIDGETS = ResourceName("widgets", "example.com")


class Kind:
    def __init__(self, kind: Any) -> None:
        self.definition = kind


def served(*versions: Json, plural: str = "widgets") -> list[Served]:
    crd = definition(*versions, plural=plural, singular="w", listKind="WL")
    return [Served(Kind(one)) for one in served_definitions(crd)]


def test_who_observes_sees_what_is_there_and_then_every_change() -> None:
    kinds = ServedKinds(served())
    seen: list[tuple[str, int]] = []

    kinds.observe(lambda resource, versions: seen.append((str(resource), len(versions))))
    kinds.add(served(plural="gadgets"))
    kinds.add(served(version("v1"), version("v2", storage=False)))
    kinds.remove(WIDGETS)
    kinds.remove(WIDGETS)

    assert seen == [
        ("widgets.example.com", 1),
        ("gadgets.example.com", 1),
        ("widgets.example.com", 2),
        ("widgets.example.com", 0),
    ]


def test_everything_is_published_after_each_change_before_observers_are_told() -> None:
    kinds = ServedKinds()
    published: list[int] = []
    kinds.publish_to(lambda every: published.append(len(every)))
    at_notice: list[int] = []
    kinds.observe(lambda _resource, _versions: at_notice.append(published[-1]))

    kinds.add(served(version("v1"), version("v2", storage=False)))
    kinds.remove(WIDGETS)

    assert published == [0, 2, 0]
    assert at_notice == [2, 0]


def test_the_preferred_version_comes_first() -> None:
    kinds = ServedKinds()
    kinds.add(served(version("v1beta1", storage=False), version("v1"), version("v2alpha1", storage=False)))

    assert [one.resource.definition.version for one in kinds.find(WIDGETS)] == ["v1", "v1beta1", "v2alpha1"]


@pytest.mark.parametrize("several", [[], [*served(), *served(plural="gadgets")]], ids=["none", "two"])
def test_one_resource_is_added_at_a_time(several: list[Served]) -> None:
    with pytest.raises(ValueError, match="exactly one resource"):
        ServedKinds().add(several)
