"""Files that need not be read: what was published with a variant's inputs applied stays so; and what is drift of files."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from cluster_bodies import published, variant
from spec_scene import DRAFT, Scene

from controllers.packagevariant.evaluation import Evaluation, is_known_applied
from controllers.packagevariant.passes import Pass
from krm.variants.change import fingerprint
from krm.variants.mutation import Mutation
from krm.variants.revisions import Revision
from krm.variants.variant import Variant
from krm.variants.vocabulary import APPLIED_INPUTS

Json = dict[str, Any]

KPTFILE = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n"
NOTE = "status:\n  conditions:\n  - type: config.injection.Team.team\n    status: 'False'\n    message: {}\n"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\ndata:\n  a: b\n"


@pytest.fixture
def scene() -> Iterator[Scene]:
    made = Scene()
    yield made
    made.close()


def reads(scene: Scene, work: Callable[[], object]) -> int:
    """Count the reads of the target's files meanwhile."""
    before = len(scene.world.client.requests)
    work()
    requests = scene.world.client.requests[before:]
    return sum("packagerevisionresources" in one and DRAFT in one for one in requests)


def restarted(scene: Scene) -> int:
    scene.world.start()
    return reads(scene, scene.world.settle)


@pytest.fixture
def without_points(scene: Scene) -> Scene:
    """The blueprint's latest revision has no injection points."""
    scene.broken_upstream({"point.yaml": ""})
    return scene


def test_a_restart_does_not_read_what_is_published_and_applied(without_points: Scene) -> None:
    scene = without_points
    scene.create(packageContext={"data": {"a": "b"}})
    scene.publish()

    assert restarted(scene) == 0
    assert scene.ready == ("True", "NoErrors")


def test_what_somebody_publishes_is_read_once(without_points: Scene) -> None:
    scene = without_points
    scene.create(packageContext={"data": {"a": "b"}})

    assert reads(scene, scene.publish) >= 1
    assert reads(scene, scene.again) == 0


def test_a_restart_reads_where_something_can_be_injected(scene: Scene) -> None:
    scene.create(packageContext={"data": {"a": "b"}})
    scene.publish()

    assert restarted(scene) == 1


def test_a_restart_reads_drafts_which_anybody_may_have_changed(scene: Scene) -> None:
    scene.create(packageContext={"data": {"a": "b"}})

    assert restarted(scene) == 1


def test_other_inputs_are_applied_after_a_restart(without_points: Scene) -> None:
    scene = without_points
    scene.create(packageContext={"data": {"a": "b"}})
    scene.publish()
    scene.edit_only(packageContext={"data": {"a": "c"}})

    assert restarted(scene) >= 1
    assert scene.names() == ["packagevariant-1", "packagevariant-2"]


VARIANT = Variant.of(variant())
PUBLISHED = Revision.of(published("bar", 1, repository="deployments", owner="bar"))
APPLIED = replace(PUBLISHED, annotations={APPLIED_INPUTS: fingerprint(VARIANT, None, ())})


def known(revision: Revision, *, last: Revision | None = None, drift: Json | None = None) -> bool:
    evaluated = {("default", "bar"): (last.name, last.self_lock)} if last else {}
    status = {"drift": drift} if drift else {}
    current = SimpleNamespace(variant=VARIANT, key=("default", "bar"), status=status, evaluated=evaluated)
    return is_known_applied(cast("Pass", current), revision)  # the parts that it reads


def test_contents_that_were_looked_at_or_never_were_are_known() -> None:
    assert known(APPLIED)
    assert known(APPLIED, last=APPLIED)


@pytest.mark.parametrize(
    ("revision", "others"),
    [
        pytest.param(PUBLISHED, {}, id="never applied"),
        pytest.param(replace(APPLIED, annotations={APPLIED_INPUTS: "sha256:0"}), {}, id="other inputs applied"),
        pytest.param(replace(APPLIED, upstream_lock=PUBLISHED.self_lock), {}, id="made of another upstream"),
        pytest.param(replace(APPLIED, lifecycle="Draft"), {}, id="draft"),
        pytest.param(replace(APPLIED, lifecycle="Proposed"), {}, id="proposed"),
        pytest.param(replace(APPLIED, injections=("config.injection.Team.team",)), {}, id="injection point"),
        pytest.param(APPLIED, {"last": replace(APPLIED, self_lock=None)}, id="tag moved"),
        pytest.param(APPLIED, {"last": replace(APPLIED, name="other")}, id="another revision"),
        pytest.param(APPLIED, {"drift": {"since": "2026-01-01T00:00:00Z", "files": ["a"]}}, id="drifted"),
    ],
)
def test_what_is_not_known_is_read(revision: Revision, others: Json) -> None:
    assert not known(revision, **others)


def evaluation(before: dict[str, str], after: dict[str, str], **parts: Any) -> Evaluation:
    files = {"spec": {"resources": before}}
    return Evaluation(files, Mutation(after, (), ()), "sha256:0", **{"applied": True, "differs": True, **parts})


@pytest.mark.parametrize(
    ("before", "after", "drifted"),
    [
        pytest.param({"a.yaml": CONFIG}, {"a.yaml": CONFIG.replace("b", "c")}, ("a.yaml",), id="changed"),
        pytest.param({"a.yaml": CONFIG}, {"a.yaml": CONFIG.replace("a: b", "a:   b")}, (), id="layout"),
        pytest.param({"Kptfile": KPTFILE + NOTE.format("x")}, {"Kptfile": KPTFILE + NOTE.format("y")}, (), id="notes"),
        pytest.param({"Kptfile": KPTFILE}, {"Kptfile": KPTFILE + "pipeline: {}\n"}, ("Kptfile",), id="pipeline"),
        pytest.param({}, {"a.yaml": CONFIG}, ("a.yaml",), id="removed"),
    ],
)
def test_drift_is_what_files_say(before: dict[str, str], after: dict[str, str], drifted: tuple[str, ...]) -> None:
    assert evaluation(before, after).drifted == drifted
    assert evaluation(before, after, applied=False).drifted == ()
    assert evaluation(before, after, differs=False).drifted == ()
