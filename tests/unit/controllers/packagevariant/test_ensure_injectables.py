"""What a variant with several drafts is woken by."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from controllers.packagevariant.passes import Pass
from krm.variants.mutation import Listing

Types = set[tuple[str, str]]


class Watched:
    """Views that only note what is watched."""

    def __init__(self) -> None:
        self.asked: list[Types] = []

    async def injectables(self, key: Any, namespace: str, types: Types) -> dict[tuple[str, str], Listing]:
        self.asked.append(types)
        return {one: Listing() for one in types}


@pytest.mark.parametrize("last", [set(), {("v1", "ConfigMap")}], ids=["no points", "other points"])
async def test_a_later_draft_does_not_end_what_is_watched_for_an_earlier_one(last: Types) -> None:
    views, variant = Watched(), SimpleNamespace(namespace="default")
    nothing = cast("Any", None)
    current = Pass(
        ("default", "pv"), {}, cast("Any", variant), nothing, cast("Any", views), nothing, nothing, nothing, {}
    )

    await current.injectables({("hr.example.com/v1alpha1", "Team")})
    await current.injectables(last)

    assert views.asked == [{("hr.example.com/v1alpha1", "Team")}, {("hr.example.com/v1alpha1", "Team"), *last}]
