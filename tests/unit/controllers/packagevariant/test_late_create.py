"""A create whose answer was lost and that the server does later is the only draft there ever is (I3).

Found by ``test_invariants_live.py``: its event arrived in the middle of the next pass, which had decided on a draft without it
and then counted it as somebody's when it chose the number.
"""

from collections.abc import Iterator

import pytest
from variant_model.client import Fault
from variant_model.invariants import check_always, check_end
from variant_model.people import NAMESPACE, Step
from variant_model.world import World

KEY = (NAMESPACE, "one")


@pytest.fixture
def world() -> Iterator[World]:
    """A variant with a published revision, that would be changed now."""
    world = World()
    world.check = lambda: check_always(world)
    world.user(Step("create_variant"))
    world.settle()
    world.user(Step("publish"))
    world.settle()
    world.user(Step("mutate"))
    world.views.deliver_all()
    yield world
    world.close()


def arrives(world: World) -> None:
    """Have the server do what it was asked for, and the controller hear of it."""
    world.faults.finish()
    world.views.deliver_all()


@pytest.mark.parametrize("moment", range(4))
def test_a_draft_that_turns_up_in_a_pass_is_not_followed_by_another(world: World, moment: int) -> None:
    world.client.requests.clear()
    world.faults.asked, world.faults.plan = 0, {2: Fault.LOST_LATE}
    world.reconcile(KEY)
    assert "create packagerevisions deployments.one.packagevariant-2" in world.client.requests[2]

    world.faults.asked = 0
    world.faults.meanwhile = {moment: lambda: arrives(world)}
    world.reconcile(KEY)
    world.settle()

    check_end(world)
    made = [body["metadata"]["name"] for body in world.porch.revisions_of("deployments", "one")]
    drafts = [name for name in made if name.startswith("deployments.one.packagevariant-")]
    assert sorted(drafts) == ["deployments.one.packagevariant-1", "deployments.one.packagevariant-2"]
