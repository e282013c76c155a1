"""Drift of a living variant: seen without being asked for, told in the status, counted, and over when it is (``variants.md`` 6.4).

The controller as it runs, with a real server and real Git remotes.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from eventually import eventually
from git_server import GitServer
from live_controller import LiveController, live_controller
from porch_process import PorchProcess
from variant_place import (
    CONFIG_MAP,
    SET_LABELS,
    Json,
    Place,
    blueprint,
    new_place,
    upstream,
    variant,
    with_blueprint,
)

DRAFT = "deployments.bar.packagevariant-1"
CORE = "/api/v1"
POINT = CONFIG_MAP.replace("name: settings", "name: settings\n  annotations:\n    kpt.dev/config-injection: required")


@pytest.fixture
def place(porch_server: PorchProcess, git_http: GitServer, namespace: str) -> Iterator[Place]:
    made = with_blueprint(new_place(porch_server, git_http, namespace), blueprint(settings_yaml=POINT))
    yield made
    made.porch.close()


@pytest.fixture
def controller(place: Place) -> Iterator[LiveController]:
    with live_controller(place.server.kubeconfig, place.namespace) as made:
        yield made


def add(place: Place, **spec: Any) -> None:
    place.create(
        CORE,
        "configmaps",
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "east"}, "data": {"db": "one"}},
    )
    place.add_variant(variant(injectors=[{"name": "east"}], **spec))
    eventually(lambda: is_drifted(place, "", ready=True))


def is_drifted(place: Place, reason: str, *, ready: bool = False) -> Json:
    """Check that the variant has drifted for this reason; an empty one: not at all."""
    status, told, _ = place.condition("Drifted")
    assert (told if status == "True" else "") == reason
    assert not ready or place.condition("Ready")[0] == "True"
    drift: Json = (place.variant().get("status") or {}).get("drift") or {}
    assert bool(drift) == bool(reason)
    return drift


def test_a_pinned_source_falls_behind_and_catches_up(place: Place, controller: LiveController) -> None:
    add(place)
    place.new_upstream(2)
    one = eventually(lambda: is_drifted(place, "UpstreamBehind"))
    place.new_upstream(3)
    eventually(lambda: _behind(place, 2))
    two = is_drifted(place, "UpstreamBehind")
    place.change_variant(upstream=upstream(revision=3))
    eventually(lambda: is_drifted(place, ""))

    assert one["upstreamBehind"] == 1
    assert two == {"since": one["since"], "upstreamBehind": 2, "newestUpstream": "blueprints.foo.v3"}
    assert controller.sample("porch_variant_drifts_total", reason="UpstreamBehind") == 1.0


def _behind(place: Place, number: int) -> None:
    assert is_drifted(place, "UpstreamBehind").get("upstreamBehind") == number


def test_a_pipeline_that_a_user_took_out_is_reported_and_left_alone(place: Place, controller: LiveController) -> None:
    add(place, pipeline={"mutators": [SET_LABELS]})
    whole = place.files(DRAFT)["Kptfile"]
    place.save(DRAFT, Kptfile=whole.replace("app: foo", "app: bar"))
    drift = eventually(lambda: is_drifted(place, "ContentDrift"))
    left = place.files(DRAFT)["Kptfile"]
    place.save(DRAFT, Kptfile=whole)
    eventually(lambda: is_drifted(place, ""))

    assert drift["files"] == ["Kptfile"]
    assert "app: bar" in left
    assert controller.sample("porch_variant_drifts_total", reason="ContentDrift") == 1.0


def test_a_point_that_gets_nothing_is_reported(place: Place, controller: LiveController) -> None:
    add(place)
    place.delete(CORE, "configmaps", "east")
    eventually(lambda: is_drifted(place, "InjectionUnfulfilled", ready=True))
    controller.settle()
    controller.begin()
    controller.resync()
    controller.settle()

    assert controller.count("writes") == 0


def test_what_a_point_is_told_when_others_come_is_no_drift(place: Place, controller: LiveController) -> None:
    """The note says that there is nothing of the kind; when there is, the note is old and nothing is wrong."""
    place.add_variant(variant(injectors=[{"name": "east"}]))
    eventually(lambda: is_drifted(place, "InjectionUnfulfilled", ready=True))
    controller.settle()
    place.create(
        CORE, "configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "west"}, "data": {}}
    )
    controller.settle()

    is_drifted(place, "InjectionUnfulfilled", ready=True)
