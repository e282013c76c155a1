"""What a paused variant says it would do (6.7), and the files of upstreams that are kept for the check before a draft."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from cluster_bodies import revision
from spec_scene import DRAFT, Scene

from controllers.packagevariant.evaluation import UpstreamFiles
from controllers.packagevariant.passes import Pass
from krm.variants.revisions import Revision
from krm.variants.variant import Variant

Json = dict[str, Any]
KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n"
EDIT = {"packageContext": {"data": {"a": "b"}}}


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


def pending(scene: Scene) -> Json:
    found: Json = scene.status.get("pendingChange") or {}
    return found


def test_a_new_variant_would_make_its_first_draft(scene: Scene) -> None:
    scene.create(suspend=True)

    assert pending(scene) == {"trigger": "Initial", "triggerDetail": "blueprints.base.w1"}


def test_another_context_would_change_these_files(scene: Scene) -> None:
    scene.create()
    scene.publish()

    scene.edit(suspend=True, **EDIT)

    told = pending(scene)
    assert (told["base"], told["trigger"]) == (DRAFT, "SpecChanged")
    assert "package-context.yaml" in told["files"]["modified"]
    assert "draft" not in told
    assert scene.names() == ["packagevariant-1"]


def test_a_new_upstream_would_be_brought_in(scene: Scene) -> None:
    scene.create({"revision": "latest"})
    scene.publish()
    scene.edit(suspend=True)

    scene.release()

    told = pending(scene)
    assert (told["base"], told["trigger"]) == (DRAFT, "UpstreamChanged")
    assert "blueprints.base.w2" in told["triggerDetail"]
    assert scene.again() == []


def test_a_draft_that_is_there_stays_told(scene: Scene) -> None:
    scene.create()
    before = pending(scene)

    scene.edit(suspend=True)

    assert before["draft"] == DRAFT
    assert pending(scene) == before


def test_what_was_pending_is_not_when_the_variant_is_resumed_and_done(scene: Scene) -> None:
    scene.create()
    scene.publish()
    scene.edit(suspend=True, **EDIT)

    scene.edit(suspend=None)

    assert pending(scene)["draft"] == "deployments.app.packagevariant-2"
    scene.publish("deployments.app.packagevariant-2")
    assert pending(scene) == {}


def test_drift_is_told_of_a_paused_variant(scene: Scene) -> None:
    scene.create({"revision": 1})
    scene.publish()
    scene.edit(suspend=True)

    scene.release()

    assert scene.status["drift"]["upstreamBehind"] == 1
    assert scene.condition("Drifted")[:2] == ("True", "UpstreamBehind")


# --- files of upstreams ------------------------------------------------------------------------------


class Reads:
    """An API that answers reads of files, and counts them."""

    def __init__(self, size: int) -> None:
        self.names: list[str] = []
        self._size = size

    async def get(self, resource: Any, namespace: str, name: str) -> Json:
        self.names.append(name)
        return {"spec": {"resources": {"Kptfile": KPTFILE, "large.txt": "x" * self._size}}}


def at(name: str, commit: str = "c1") -> Revision:
    return Revision.of(revision("foo", name, lifecycle="Published", number=1, commit=commit))


def reading(api: Reads) -> Pass:
    variant = Variant.of({"metadata": {"namespace": "default", "name": "pv"}})
    nothing = cast("Any", None)
    return Pass(("default", "pv"), {}, variant, cast("Any", api), nothing, nothing, nothing, nothing, {})


async def test_the_files_of_an_upstream_are_read_once_per_commit() -> None:
    api, files = Reads(10), UpstreamFiles()

    for upstream in (at("v1"), at("v1"), at("v1", "c2"), at("v1", "c2"), at("v2")):
        await files.check(reading(api), upstream)

    assert api.names == ["blueprints.foo.v1", "blueprints.foo.v1", "blueprints.foo.v2"]


async def test_the_upstream_that_was_used_least_recently_goes_first() -> None:
    api, files = Reads(400), UpstreamFiles(most=1100)

    for name in ("v1", "v2", "v1", "v3", "v1", "v2"):
        await files.check(reading(api), at(name))

    assert [name[-2:] for name in api.names] == ["v1", "v2", "v3", "v2"]


async def test_an_upstream_that_is_too_large_to_keep_is_used_all_the_same() -> None:
    api, files = Reads(5000), UpstreamFiles(most=1000)

    for _ in range(2):
        await files.check(reading(api), at("v1"))

    assert len(api.names) == 2
