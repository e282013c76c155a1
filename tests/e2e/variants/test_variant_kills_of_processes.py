"""``kill -9`` of the controllers' process at each of its writes, and of the server while they work.

Source: ``variants.md`` I3, G-F13; the issue's crash tests. The process is the real one, ``python -m controllers``.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from controllers_process import ControllersProcess, controllers_process
from eventually import eventually
from git_server import GitServer
from golden import golden
from porch_process import PorchProcess
from variant_place import (
    GATE,
    SET_LABELS,
    Place,
    condition_of,
    downstream,
    new_place,
    upstream,
    variant,
    with_blueprint,
)

DOOMED = str(Path(__file__).parents[2] / "doomed_controller.py")
LABELS = {"mutators": [SET_LABELS]}
READY = ("True", "NoErrors", "successfully ensured downstream package variant")
WRITES = 5
"""Of a new variant with a pipeline: finalizer, draft, files, gate, status."""
MANY = 12


@pytest.fixture
def place(porch_server: PorchProcess, git_http: GitServer, namespace: str) -> Iterator[Place]:
    """A place of the test's own with the two repositories."""
    made = with_blueprint(new_place(porch_server, git_http, namespace))
    yield made
    made.porch.close()


def is_done(place: Place, name: str, package: str) -> None:
    assert place.condition("Ready", name) == READY
    assert place.revisions_of(package) == {"packagevariant-1": "Draft"}
    draft = place.revision(f"deployments.{package}.packagevariant-1")
    assert condition_of(draft, GATE)["status"] == "True"
    assert condition_of(draft, "PackagePipelinePassed")["status"] == "True"


@golden("G-F13", "I3")
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.timeout(600)
def test_the_process_dies_at_each_write_of_a_new_variant_and_the_next_completes_it(
    place: Place, tmp_path: Path, when: str
) -> None:
    for number in range(1, WRITES + 1):
        package = f"bar-{number}"
        place.add_variant(variant(package, downstream=downstream(package), pipeline=LABELS))
        doomed = ControllersProcess(place.server.kubeconfig, place.namespace, tmp_path / f"{number}.log")
        doomed.start([DOOMED, str(number), when])
        assert doomed.wait(30) == -9, doomed.tail()

    with controllers_process(place.server.kubeconfig, place.namespace, tmp_path / "healthy.log") as process:
        for number in range(1, WRITES + 1):
            package = f"bar-{number}"
            eventually(lambda package=package: is_done(place, package, package), timeout=60)  # type: ignore[misc]
        assert process.running, process.tail()


@golden("I2", "I3")
@pytest.mark.timeout(600)
def test_a_server_that_is_killed_while_controllers_work_leaves_one_draft_for_each_variant(
    git_http: GitServer, tmp_path: Path
) -> None:
    server = PorchProcess(tmp_path / "data")
    server.start()
    try:
        place = with_blueprint(new_place(server, git_http, "doomed"))
        with controllers_process(server.kubeconfig, place.namespace, tmp_path / "controllers.log") as process:
            names = [f"v{number}" for number in range(MANY)]
            for name in names:
                place.add_variant(variant(name, downstream=downstream(name), pipeline=LABELS))
            for drafts in (2, MANY // 2):
                eventually(lambda drafts=drafts: at_least(place, drafts), timeout=60)  # type: ignore[misc]
                place.porch.close()
                server.kill()
                server.start()
                place.porch = server.client(place.namespace)
            for name in names:
                eventually(lambda name=name: is_done(place, name, name), timeout=90)  # type: ignore[misc]
            place.new_upstream(2)
            place.change_variant(names[0], upstream=upstream(revision=2))
            eventually(lambda: follows(place, names[0]), timeout=60)
            assert process.running, process.tail()
        place.porch.close()
    finally:
        server.stop()


def at_least(place: Place, drafts: int) -> None:
    assert len(place.porch.revisions("spec.repository=deployments")) >= drafts


def follows(place: Place, package: str) -> None:
    assert "size-2" in place.files(f"deployments.{package}.packagevariant-1")["settings.yaml"]
