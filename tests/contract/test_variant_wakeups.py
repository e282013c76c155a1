"""Which events make the PackageVariant controller look at a variant, how often, and what a look costs.

The controller as it runs, with a real server and real Git remotes. Source: ``variants.md`` 2.14, 6.10; issue 7, "an event
that concerns one variant: exactly one reconcile" and "a warm resync with nothing to do: 0 writes".
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from drafts import accepted
from eventually import eventually
from git_server import GitServer
from live_controller import LiveController, live_controller
from porch_client import CONFIG, PORCH
from porch_process import PorchProcess
from variant_place import (
    CONFIG_MAP,
    DOWNSTREAM,
    GATE,
    SET_LABELS,
    UPSTREAM,
    Json,
    Place,
    blueprint,
    condition_of,
    downstream,
    new_place,
    upstream,
    variant,
)

from controllers.packagevariant import wakeups

CORE = "/api/v1"
DRAFT = "deployments.bar.packagevariant-1"
POINT = CONFIG_MAP.replace("name: settings", "name: settings\n  annotations:\n    kpt.dev/config-injection: required")


@pytest.fixture
def place(porch_server: PorchProcess, git_http: GitServer, namespace: str) -> Iterator[Place]:
    """A namespace of the test's own with two blueprints of one revision, the first with an injection point."""
    made = new_place(porch_server, git_http, namespace)
    made.register(UPSTREAM, {"foo@v1": blueprint(settings_yaml=POINT), "qux@v1": blueprint("qux")})
    made.register(DOWNSTREAM, deployment=True)
    yield made
    made.porch.close()


@pytest.fixture
def controller(place: Place) -> Iterator[LiveController]:
    """The controller of that namespace."""
    with live_controller(place.server.kubeconfig, place.namespace) as made:
        yield made


def is_ready(place: Place, name: str = "my-pv") -> None:
    assert place.condition("Ready", name)[0] == "True", place.variant(name).get("status")


def add(place: Place, controller: LiveController, name: str = "my-pv", package: str = "bar", **spec: Any) -> None:
    """Make a variant, wait until it is as it should be, and begin to count."""
    place.add_variant(variant(name, downstream=downstream(package), **spec))
    eventually(lambda: is_ready(place, name))
    controller.settle()
    controller.begin()


def caused(controller: LiveController, *what: str) -> list[int]:
    controller.settle()
    return [controller.count(one) for one in what]


def config_map(name: str, data: Json) -> Json:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def has(place: Place, text: str, file: str = "settings.yaml", name: str = DRAFT) -> None:
    assert text in place.files(name).get(file, "")


def told(place: Place, lifecycle: str) -> None:
    assert [one["lifecycle"] for one in place.variant()["status"]["downstreamTargets"]] == [lifecycle]


def test_a_new_variant_takes_one_reconcile_and_no_write_too_many(place: Place, controller: LiveController) -> None:
    controller.begin()
    place.add_variant(variant(upstream=upstream("qux", revision=1)))
    eventually(lambda: is_ready(place))

    # finalizer, draft, gate, status; without mutations no files are written
    assert caused(controller, "reconciles", "writes", "drafts") == [1, 4, 1]


class TestOneEvent:
    """An event that concerns one of two variants: exactly one reconcile, and no other request of the unconcerned one."""

    @pytest.fixture(autouse=True)
    def variants(self, place: Place, controller: LiveController) -> None:
        place.create(CORE, "configmaps", config_map("east", {"db": "one"}))
        add(place, controller, "other", "other", upstream=upstream("qux", revision=1))
        add(place, controller, upstream=upstream(revision="latest"), injectors=[{"name": "east"}])

    def test_of_an_edit_of_the_variant(self, place: Place, controller: LiveController) -> None:
        place.change_variant(pipeline={"mutators": [SET_LABELS]})
        eventually(lambda: has(place, "PackageVariant.my-pv..0", "Kptfile"))
        eventually(lambda: is_ready(place))

        assert caused(controller, "reconciles", "drafts") == [1, 0]

    def test_of_a_new_upstream_revision(self, place: Place, controller: LiveController) -> None:
        place.new_upstream(2, other_yaml=CONFIG_MAP.replace("settings", "others"))
        eventually(lambda: has(place, "others", "other.yaml"))

        assert caused(controller, "reconciles", "drafts") == [1, 0]

    def test_of_an_injected_object(self, place: Place, controller: LiveController) -> None:
        place.patch(CORE, "configmaps", "east", {"data": {"db": "two"}})
        eventually(lambda: has(place, "db: two"))

        assert caused(controller, "reconciles", "drafts") == [1, 0]

    def test_of_an_edit_of_the_draft(self, place: Place, controller: LiveController) -> None:
        place.save(DRAFT, settings_yaml=None)
        eventually(lambda: one_pass(controller))

        assert caused(controller, "reconciles") == [1]

    def test_of_a_proposal_and_of_an_approval(self, place: Place, controller: LiveController) -> None:
        accepted(place.porch.propose(DRAFT))
        eventually(lambda: told(place, "Proposed"))
        proposed = caused(controller, "reconciles")
        accepted(place.porch.approve(DRAFT))
        eventually(lambda: told(place, "Published"))

        assert proposed == [1]
        assert caused(controller, "reconciles", "drafts") == [2, 0]

    def test_of_a_pause(self, place: Place, controller: LiveController) -> None:
        place.patch_variant({"metadata": {"annotations": {"config.porch.kpt.dev/paused": "true"}}})
        eventually(lambda: one_pass(controller))

        assert caused(controller, "reconciles", "writes") == [1, 1]  # the status

    def test_of_the_deletion_of_the_variant(self, place: Place, controller: LiveController) -> None:
        accepted(place.delete(CONFIG, "packagevariants", "my-pv"))
        eventually(lambda: gone(place))

        assert caused(controller, "reconciles", "writes") == [1, 2]  # its draft and its finalizer
        assert controller.remembered == [(place.namespace, "other")]

    @pytest.mark.parametrize(
        "event",
        [
            pytest.param(lambda place: label(place, DRAFT), id="label-of-the-draft"),
            pytest.param(lambda place: label(place, "blueprints.foo.v1"), id="label-of-the-upstream"),
            pytest.param(lambda place: place.draft_of("blueprints.foo.v1", "v9"), id="draft-of-the-upstream"),
            pytest.param(lambda place: place.new_draft("unrelated"), id="draft-of-nobody"),
            pytest.param(
                lambda place: place.patch_variant({"metadata": {"labels": {"a": "b"}}}), id="label-of-the-variant"
            ),
            pytest.param(
                lambda place: place.patch(CORE, "configmaps", "east", {"metadata": {"labels": {"a": "b"}}}),
                id="label-of-the-injected-object",
            ),
            pytest.param(
                lambda place: place.create(CORE, "configmaps", config_map("west", {"db": "two"})), id="object-of-nobody"
            ),
            pytest.param(lambda place: place.sync(UPSTREAM), id="sync-of-a-repository"),
        ],
    )
    def test_that_concerns_nobody_wakes_nobody(
        self, place: Place, controller: LiveController, event: Callable[[Place], object]
    ) -> None:
        event(place)

        assert caused(controller, "reconciles", "writes") == [0, 0]


def one_pass(controller: LiveController) -> None:
    assert controller.count("passes") == 1


def gone(place: Place) -> None:
    assert not place.has_variant()
    assert not place.exists(DRAFT)


def label(place: Place, name: str) -> None:
    place.edit(name, lambda body: body["metadata"].setdefault("labels", {}).update(team="a"))


def test_a_resync_with_nothing_new_makes_no_request(place: Place, controller: LiveController) -> None:
    place.create(CORE, "configmaps", config_map("east", {"db": "one"}))
    add(place, controller, "other", "other", upstream=upstream("qux", revision=1))
    add(place, controller, injectors=[{"name": "east"}])
    controller.resync()
    eventually(lambda: skipped(controller, 2))

    assert caused(controller, "passes", "writes", "reads") == [0, 0, 0]


def skipped(controller: LiveController, number: int) -> None:
    assert controller.count("skipped") == number


def test_a_restart_with_nothing_new_writes_nothing(place: Place) -> None:
    place.create(CORE, "configmaps", config_map("east", {"db": "one"}))
    with live_controller(place.server.kubeconfig, place.namespace) as controller:
        add(place, controller, "other", "other", upstream=upstream("qux", revision=1))
        add(place, controller, injectors=[{"name": "east"}])
    with live_controller(place.server.kubeconfig, place.namespace) as restarted:
        eventually(lambda: _passed(restarted, 2))

        assert caused(restarted, "reconciles", "writes") == [2, 0]
        place.patch(CORE, "configmaps", "east", {"data": {"db": "two"}})
        eventually(lambda: has(place, "db: two"))  # what is injected is watched again


def test_a_server_that_was_killed_and_started_again_wakes_nobody_and_is_followed_again(
    place: Place, controller: LiveController
) -> None:
    place.create(CORE, "configmaps", config_map("east", {"db": "one"}))
    add(place, controller, injectors=[{"name": "east"}])
    place.server.kill()
    place.server.start()
    place.porch.close()  # its connection is gone; the next request opens one
    controller.settle()
    by_the_restart = caused(controller, "reconciles", "writes")
    place.patch(CORE, "configmaps", "east", {"data": {"db": "two"}})
    eventually(lambda: has(place, "db: two"), timeout=60)  # watches are opened again after growing pauses
    eventually(lambda: is_ready(place))

    assert by_the_restart == [0, 0]
    assert caused(controller, "reconciles") == [1]


def story(place: Place, controller: LiveController) -> float | None:
    """Let everything happen that happens to variants; return how many of them an event forgot."""
    place.create(CORE, "configmaps", config_map("east", {"db": "one"}))
    chained = upstream("bar") | {"repo": DOWNSTREAM}
    add(place, controller, injectors=[{"name": "east"}], upstream=upstream(revision="latest"))
    add_waiting(
        place, controller, "tagged", "tagged", upstream=upstream("qux", tag="stable"), adoptionPolicy="adoptExisting"
    )
    add_waiting(place, controller, "chained", "far", upstream=chained)
    stable = {"metadata": {"labels": {"tags.porch.kpt.dev/stable": ""}}}
    events: list[Callable[[], object]] = [
        lambda: place.patch(PORCH, "packagerevisions", "blueprints.qux.v1", stable),
        lambda: place.approve(DRAFT),
        lambda: place.new_upstream(2, other_yaml=CONFIG_MAP.replace("settings", "others")),
        lambda: place.save(eventually(lambda: second(place)), more_yaml=CONFIG_MAP.replace("settings", "more")),
        lambda: place.approve("deployments.bar.packagevariant-2"),
        lambda: place.new_draft("elsewhere"),
        lambda: place.patch(CONFIG, "repositories", UPSTREAM, {"metadata": {"labels": {"a": "b"}}}),
    ]
    for event in events:
        event()
        controller.settle()
    return controller.sample("porch_variant_missed_wakeups_total")


def add_waiting(place: Place, controller: LiveController, name: str, package: str, **spec: Any) -> None:
    """Make a variant that has to wait for its upstream."""
    place.add_variant(variant(name, downstream=downstream(package), **spec))
    controller.settle()


def second(place: Place) -> str:
    name = "deployments.bar.packagevariant-2"
    assert condition_of(place.revision(name), GATE)["status"] == "True"
    return name


def test_in_a_long_story_no_event_forgets_anybody(place: Place) -> None:
    with live_controller(place.server.kubeconfig, place.namespace, check_wakeups=True) as controller:
        missed = story(place, controller)
        is_ready(place, "tagged")
        is_ready(place, "chained")

    assert missed == 0


def test_a_mapping_that_forgets_is_found_out(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with live_controller(place.server.kubeconfig, place.namespace, check_wakeups=True) as controller:
        add(place, controller, upstream=upstream(revision="latest"))
        monkeypatch.setattr(wakeups, "by_revision", lambda *_: set())
        place.new_upstream(2, other_yaml=CONFIG_MAP.replace("settings", "others"))
        eventually(lambda: has(place, "others", "other.yaml"))
        controller.settle()

        assert controller.sample("porch_variant_missed_wakeups_total") == 1


def _passed(controller: LiveController, number: int) -> None:
    assert controller.count("passes") == number


def test_a_kind_that_is_defined_later_is_injected_when_it_is(place: Place, controller: LiveController) -> None:
    team = "apiVersion: hr.example.com/v1alpha1\nkind: Team\nmetadata:\n  name: team\n  annotations:\n"
    team += "    kpt.dev/config-injection: optional\nspec:\n  chargeCode: none\n"
    place.push(UPSTREAM, {"teams@v1": blueprint("teams", team_yaml=team)})
    place.sync(UPSTREAM)
    add(place, controller, upstream=upstream("teams", revision=1), injectors=[{"name": "alpha"}])
    before = condition_of(place.revision(DRAFT), "config.injection.Team.team")
    accepted(place.porch.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", TEAMS))
    body = {
        "apiVersion": "hr.example.com/v1alpha1",
        "kind": "Team",
        "metadata": {"name": "alpha"},
        "spec": {"chargeCode": "ab"},
    }
    place.create("/apis/hr.example.com/v1alpha1", "teams", body)
    eventually(lambda: has(place, "chargeCode: ab", "team.yaml"))

    assert before["message"] == 'no matches for kind "Team" in version "hr.example.com/v1alpha1"'
    assert controller.sample("porch_variant_injection_watches") == 1.0


TEAMS: Json = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "teams.hr.example.com"},
    "spec": {
        "group": "hr.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Team", "plural": "teams", "singular": "team"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
