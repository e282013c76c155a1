"""That people proposed and approved what a variant made is told at most once in two seconds, and in the end always.

The whole controller in virtual time, over a server in memory that never fails. Source: ``variants.md`` 6.9.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from variant_model.live import Live, Luck, in_virtual_time
from variant_model.people import NAMESPACE, Step
from variant_model.porch import VARIANTS

from controllers.packagevariant.controller import TELL_SECONDS

RESTED = 60.0
"""Virtual seconds in which everything that was caused has happened."""


class Prompt(Luck):
    """Nothing fails, and everything takes the same short time."""

    async def wait(self) -> None:
        await asyncio.sleep(0.01)


class Story(Live):
    """A variant with a draft; notes when its status was written since then."""

    def __init__(self) -> None:
        super().__init__(seed=0, points=False)
        self.luck = Prompt(self.porch, random.Random(0), calm=True)  # noqa: S311 - chooses nothing
        self.told: list[float] = []
        self._seen = 0

    def holds_always(self) -> None:
        super().holds_always()
        news, self._seen = self.porch.writes[self._seen :], len(self.porch.writes)
        if any(one.plural == VARIANTS and one.subresource == "status" for one in news):
            self.told.append(asyncio.get_running_loop().time())

    async def begin(self) -> None:
        self.start()
        self.does(Step("create_variant"))
        await self.rest()

    async def rest(self) -> None:
        await asyncio.sleep(RESTED)
        self.told.clear()

    async def until_told(self, times: int) -> None:
        async with asyncio.timeout(RESTED):
            while len(self.told) < times:
                await asyncio.sleep(0.01)

    @property
    def lifecycles(self) -> list[str]:
        """What the variant's status says of its targets."""
        found = self.porch.get(VARIANTS, NAMESPACE, "one")
        return [target["lifecycle"] for target in found["status"]["downstreamTargets"]]


async def a_proposal_and_an_approval_soon_after_it(live: Story) -> None:
    live.does(Step("propose"))
    await live.until_told(1)
    proposed = live.lifecycles
    live.does(Step("approve"))
    await asyncio.sleep(RESTED)
    first, second = live.told

    assert proposed == ["Proposed"]
    assert live.lifecycles == ["Published"]
    assert second - first >= TELL_SECONDS


async def a_draft_that_is_approved_as_soon_as_it_is_there(live: Story) -> None:
    live.does(Step("publish"))
    await live.rest()
    live.does(Step("mutate"))
    await live.until_told(1)
    drafted = live.lifecycles
    live.does(Step("publish"))
    await asyncio.sleep(RESTED)
    made, approved = live.told  # and the proposal is told with the approval

    assert drafted == ["Draft"]
    assert live.lifecycles == ["Published"]
    assert approved - made >= TELL_SECONDS


async def an_edit_of_the_variant_meanwhile(live: Story) -> None:
    live.does(Step("propose"))
    await live.until_told(1)
    live.does(Step("approve"))
    live.does(Step("keep", number=1))
    await live.until_told(2)
    first, second = live.told

    assert second - first < TELL_SECONDS / 2
    assert live.lifecycles == ["Published"]


async def a_new_process_before_the_time_is_over(live: Story) -> None:
    live.does(Step("propose"))
    await live.until_told(1)
    live.does(Step("approve"))
    await asyncio.sleep(TELL_SECONDS / 4)
    await live.stop()
    untold = live.lifecycles
    live.start()
    await asyncio.sleep(RESTED)

    assert untold == ["Proposed"]
    assert live.lifecycles == ["Published"]


@pytest.mark.parametrize(
    "story",
    [
        a_proposal_and_an_approval_soon_after_it,
        a_draft_that_is_approved_as_soon_as_it_is_there,
        an_edit_of_the_variant_meanwhile,
        a_new_process_before_the_time_is_over,
    ],
)
def test_the_status_tells_of_steps_of_targets_at_a_pace(story: Callable[[Story], Coroutine[Any, Any, None]]) -> None:
    async def told() -> None:
        live = Story()
        await live.begin()
        await story(live)
        await live.stop()
        assert not live.failures

    in_virtual_time(told)
