"""The controller as a whole follows every change by its event alone, with exactly the writes that it takes.

The golden cases of 5.8 are proven pass by pass elsewhere; here its own caches and queue decide when there is a pass.
Source: ``variants.md`` 2.11, 2.14, 6.10; the issue's "at most the requests that are needed".
"""

from collections.abc import Callable, Iterator

import pytest
from drafts import accepted
from git_server import GitServer
from golden import golden
from porch_client import CONFIG, PORCH
from porch_process import PorchProcess
from recorded_controller import RecordedController
from variant_place import SET_LABELS, Place, blueprint, new_place, upstream, variant, with_blueprint

POINT = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: point\n  annotations:\n    kpt.dev/config-injection: required\n"
    "data: {}\n"
)
TAG = "tags.porch.kpt.dev/stable"
STATUS = ["PUT PV my-pv status"]
SECOND = "deployments.bar.packagevariant-2"
READY = ("True", "NoErrors", "successfully ensured downstream package variant")


@pytest.fixture
def place(porch_server: PorchProcess, git_http: GitServer, namespace: str) -> Iterator[Place]:
    """A place of the test's own without repositories."""
    made = new_place(porch_server, git_http, namespace)
    yield made
    made.porch.close()


@pytest.fixture
def controller(place: Place) -> Iterator[RecordedController]:
    """The controller of the place."""
    made = RecordedController(place.server, place.namespace)
    made.start()
    yield made
    made.stop()


def after(controller: RecordedController, change: Callable[[], object]) -> list[str]:
    """Make a change; return what the controller wrote until nothing more happened."""
    controller.recording.clear()
    change()
    controller.settle()
    return [write.line for write in controller.recording.writes]


def cycle(number: int, *, first: str, saved: bool = True) -> list[str]:
    """Return the writes of one gate cycle on a draft."""
    name = f"bar.packagevariant-{number}"
    return [f"{first} PR {name} False", *([f"PUT PRR {name}"] if saved else []), f"PUT PR {name} True"]


@golden("G-F01", "2.14")
def test_a_plain_variant_takes_a_create_a_look_and_an_opening(place: Place, controller: RecordedController) -> None:
    with_blueprint(place)

    written = after(controller, lambda: place.add_variant(variant()))

    assert written == ["PUT PV my-pv", *cycle(1, first="POST", saved=False), *STATUS]
    assert len(controller.recording.reads) <= 2, "the upstream's files, and the draft's"
    assert place.condition("Ready") == READY


@golden("G-F02", "G-F04", "G-F05", "G-F07", "G-F10", "G-F11", "G-U08", "2.14")
def test_each_change_is_followed_with_the_writes_that_it_takes(place: Place, controller: RecordedController) -> None:
    with_blueprint(place, blueprint(point_yaml=POINT))
    place.create("/api/v1", "configmaps", {"metadata": {"name": "source"}, "data": {"number": "1"}})
    place.patch(PORCH, "packagerevisions", "blueprints.foo.v1", {"metadata": {"labels": {TAG: "x"}}})
    made = variant(upstream=upstream(tag="stable"), injectors=[{"name": "source"}])

    assert after(controller, lambda: place.add_variant(made)) == ["PUT PV my-pv", *cycle(1, first="POST"), *STATUS]
    assert after(controller, lambda: place.change_variant(pipeline={"mutators": [SET_LABELS]})) == [
        *cycle(1, first="PUT"),
        *STATUS,
    ]
    assert after(controller, lambda: place.change_variant(labels={"a": "b"})) == STATUS
    assert after(controller, lambda: feed(place, "2")) == [*cycle(1, first="PUT"), *STATUS]
    assert after(controller, lambda: place.save("deployments.bar.packagevariant-1", note_txt="mine\n")) == []

    assert after(controller, lambda: place.new_upstream(2)) == STATUS, "the tag is where it was, and behind now"
    assert place.condition("Drifted")[:2] == ("True", "UpstreamBehind")
    written = after(controller, lambda: tag(place, 2))
    assert written[0] == "PUT PR bar.packagevariant-1 False", "upgraded in place"
    assert written[-2:] == ["PUT PR bar.packagevariant-1 True", *STATUS]

    written = after(controller, lambda: place.approve("deployments.bar.packagevariant-1"))
    assert set(written) == set(STATUS), "the status tells the lifecycle, perhaps both of them"
    assert after(controller, lambda: feed(place, "3")) == [*cycle(2, first="POST"), *STATUS]
    files = place.files(SECOND)
    assert (files["note.txt"], "number: '3'" in files["point.yaml"] or 'number: "3"' in files["point.yaml"]) == (
        "mine\n",
        True,
    )
    assert place.condition("Ready") == READY
    assert after(controller, lambda: accepted(place.porch.propose(SECOND))) == STATUS
    assert after(controller, controller.resync) == []
    gone = after(controller, lambda: accepted(place.delete(CONFIG, "packagevariants", "my-pv")))
    assert sorted(gone[:-1]) == ["DELETE PR bar.packagevariant-2", "PUT PR bar.packagevariant-1 DeletionProposed"]
    assert gone[-1] == "PUT PV my-pv"
    assert not place.has_variant()


def feed(place: Place, number: str) -> None:
    place.patch("/api/v1", "configmaps", "source", {"data": {"number": number}})


def tag(place: Place, number: int) -> None:
    place.patch(PORCH, "packagerevisions", f"blueprints.foo.v{number}", {"metadata": {"labels": {TAG: "x"}}})
