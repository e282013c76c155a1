"""Why a draft exists, as the status and the draft itself tell it (6.8)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from spec_scene import DRAFT, SECOND, Scene
from variant_model.client import Fault
from variant_model.people import NAMESPACE, Step
from variant_model.porch import CONFIG_MAPS

from krm.variants.vocabulary import CHANGE_SUMMARY

Json = dict[str, Any]
EDIT = {"packageContext": {"data": {"a": "b"}}}


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


def told(scene: Scene) -> tuple[str, str, str]:
    """Return draft, base and trigger of the pending change."""
    change = scene.status["pendingChange"]
    return change["draft"], change.get("base", ""), change["trigger"]


def noted(scene: Scene, name: str) -> Json:
    """Return what the draft says of itself."""
    found: Json = json.loads(scene.revision(name)["metadata"]["annotations"][CHANGE_SUMMARY])
    return found


def test_the_first_draft_is_compared_with_nothing(scene: Scene) -> None:
    scene.create()

    assert told(scene) == (DRAFT, "", "Initial")
    assert "Kptfile" in scene.status["pendingChange"]["files"]["added"]
    assert noted(scene, DRAFT) == scene.status["pendingChange"]


def test_an_edit_is_compared_with_what_is_published(scene: Scene) -> None:
    scene.create()
    scene.publish()
    scene.edit(**EDIT)

    assert told(scene) == (SECOND, DRAFT, "SpecChanged")
    assert "package-context.yaml" in scene.status["pendingChange"]["files"]["modified"]


def test_an_upgrade_names_both_upstreams(scene: Scene) -> None:
    scene.create()
    scene.publish()
    scene.release()

    assert told(scene) == (SECOND, DRAFT, "UpstreamChanged")
    assert scene.status["pendingChange"]["triggerDetail"] == "from base/v1 to blueprints.base.w2"


def test_an_upgrade_in_place_is_compared_with_what_is_published(scene: Scene) -> None:
    scene.create()
    scene.publish()
    scene.edit(**EDIT)
    scene.release()

    assert told(scene) == (SECOND, DRAFT, "UpstreamChanged")


def test_an_injected_object_is_named(scene: Scene) -> None:
    name = next(one["metadata"]["name"] for one in scene.porch.all(CONFIG_MAPS))
    scene.create(injectors=[{"name": name}])
    scene.publish()
    body = scene.porch.get(CONFIG_MAPS, NAMESPACE, name)
    scene.porch.update(CONFIG_MAPS, {**body, "data": {"db": "another"}})
    scene.settle()

    assert told(scene) == (SECOND, DRAFT, "InjectionChanged")
    assert scene.status["pendingChange"]["triggerDetail"] == f'injected now: ConfigMap "{name}"'


@pytest.mark.parametrize(
    ("crash", "expected"), [("clone", "Initial"), ("upgrade", "UpstreamChanged")], ids=["clone", "upgrade"]
)
def test_a_draft_that_another_process_finishes_tells_why_it_was_made(scene: Scene, crash: str, expected: str) -> None:
    if crash == "clone":
        scene.create(suspend=True)
        scene.edit_only(suspend=None)
        scene.fault(n2=Fault.CRASH_AFTER)
    else:
        scene.create()
        scene.publish()
        scene.world.user(Step("publish_upstream"))
        scene.fault(n2=Fault.CRASH_AFTER)
    made = SECOND if crash == "upgrade" else DRAFT
    assert scene.gate(made)[0] == "False"

    scene.settle()

    assert told(scene)[0::2] == (made, expected)
