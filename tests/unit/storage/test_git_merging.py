"""Which packs consolidation puts together."""

from dataclasses import dataclass
from typing import Any

import pytest

from storage.git.objectstore import worth_merging


@dataclass
class Pack:
    count: int


@pytest.mark.parametrize(
    ("counts", "merged"),
    [
        ([], []),
        ([10], []),
        ([10] * 5, [10] * 5),
        ([10] * 5 + [1000], [10] * 5),
        ([10] * 5 + [90], [10] * 5 + [90]),
        ([10, 1000, 5000], []),
    ],
)
def test_a_pack_is_rewritten_only_with_others_that_are_about_as_large(counts: list[int], merged: list[int]) -> None:
    packs: Any = [Pack(count) for count in counts]

    assert [pack.count for pack in worth_merging(packs)] == merged


def test_each_object_is_rewritten_a_logarithmic_number_of_times() -> None:
    packs: Any = []
    rewritten = 0
    for _ in range(4096):
        packs.append(Pack(10))
        if len(packs) > 24:
            chosen = worth_merging(packs)
            rewritten += sum(pack.count for pack in chosen)
            packs = [pack for pack in packs if not any(pack is one for one in chosen)]
            packs.append(Pack(sum(pack.count for pack in chosen)))

    assert len(packs) <= 40
    assert rewritten / 40960 < 14
