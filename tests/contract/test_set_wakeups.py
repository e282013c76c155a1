"""Which events make the PackageVariantSet controller look at a set, and what a look writes.

The controller as it runs, with a real server. Source: ``variants.md`` 3.7, 6.10; G-T03, G-T16, G-T20, G-T21.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from eventually import eventually
from git_server import GitServer
from live_set_controller import LiveSetController, live_set_controller
from porch_process import PorchProcess
from set_place import FOO, UPSTREAM, SetPlace, package_set
from variant_place import Json, new_place

CONFIG = "/apis/config.porch.kpt.dev/v1alpha1"
TEAMS = "/apis/bigco.com/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture(scope="module")
def sets(porch_server: PorchProcess, git_http: GitServer) -> Iterator[SetPlace]:
    """One namespace for all tests; each has labels and repositories of its own."""
    place = new_place(porch_server, git_http, "wakeups-of-sets")
    made = SetPlace(place)
    made.prepare()
    yield made
    place.porch.close()


@pytest.fixture
def controller(sets: SetPlace) -> Iterator[LiveSetController]:
    """The controller of that namespace, with another set in it that no test concerns."""
    if (
        sets.porch.request(
            "GET", sets.place.path("/apis/config.porch.kpt.dev/v1alpha2", "packagevariantsets", "other")
        ).code
        != 200
    ):
        source = {**FOO, "package": "base-ns"}
        sets.add(package_set("other", {"repositories": [{"name": "cluster-04"}]}, upstream=source))
    with live_set_controller(sets.place.server.kubeconfig, sets.place.namespace) as made:
        eventually(lambda: equal(sets.condition("other", "Ready")[0], "True"))
        made.settle()
        made.begin()
        yield made


def by_label(label: str) -> Json:
    return {"repositorySelector": {"matchLabels": {"fleet": label}}}


def add(sets: SetPlace, controller: LiveSetController, name: str, *targets: Json, **spec: Any) -> None:
    """Make a set, wait until it is as it should be, and begin to count."""
    sets.add(package_set(name, *targets, **spec))
    eventually(lambda: equal(sets.condition(name, "Ready")[0], "True"))
    controller.settle()
    controller.begin()


def repositories_of(sets: SetPlace, name: str) -> list[str]:
    return sorted(pair.partition("/")[0] for pair in sets.pairs(name).values())


def caused(controller: LiveSetController) -> tuple[int, list[str]]:
    controller.settle()
    return controller.reconciles, controller.lines


class TestRepositories:
    """One event is one reconcile of the one set that it concerns."""

    def test_a_new_repository_that_is_selected_gets_a_variant(
        self, sets: SetPlace, controller: LiveSetController
    ) -> None:
        add(sets, controller, "new", by_label("new"))
        sets.add_repository("new-1", {"fleet": "new"})
        eventually(lambda: equal(repositories_of(sets, "new"), ["new-1"]))

        assert caused(controller) == (1, ["POST PV new-new-1-foo"])

    def test_a_relabelled_repository_wakes_the_set_that_selects_it_now(
        self, sets: SetPlace, controller: LiveSetController
    ) -> None:
        sets.add_repository("now-1", {})
        add(sets, controller, "now", by_label("now"))
        sets.label("now-1", {"fleet": "now"})
        eventually(lambda: equal(repositories_of(sets, "now"), ["now-1"]))

        assert caused(controller) == (1, ["POST PV now-now-1-foo"])

    def test_a_relabelled_repository_wakes_the_set_that_selected_it_before(
        self, sets: SetPlace, controller: LiveSetController
    ) -> None:
        sets.add_repository("before-1", {"fleet": "before"})
        add(sets, controller, "before", by_label("before"))
        sets.label("before-1", {"fleet": None})
        eventually(lambda: equal(repositories_of(sets, "before"), []))

        # One look for the label; one more since the variant is on its way out, which deletes nothing twice.
        reconciles, lines = caused(controller)
        assert lines == ["DELETE PV before-before-1-foo"]
        assert reconciles <= 2

    def test_a_label_that_an_expression_reads_changes_the_variant(
        self, sets: SetPlace, controller: LiveSetController
    ) -> None:
        sets.add_repository("read-1", {"fleet": "read", "region": "east"})
        template = {"labelExprs": [{"key": "region", "valueExpr": "repository.labels['region']"}]}
        add(sets, controller, "read", {**by_label("read"), "template": template})
        sets.label("read-1", {"region": "west"})
        eventually(lambda: equal(sets.variants("read")["read-read-1-foo"]["spec"]["labels"], {"region": "west"}))

        assert caused(controller) == (1, ["PUT PV read-read-1-foo"])

    def test_a_missing_repository_that_a_template_names_is_noticed_when_it_comes(
        self, sets: SetPlace, controller: LiveSetController
    ) -> None:
        target = {"repositories": [{"name": "cluster-01"}], "template": {"downstream": {"repoExpr": "'late-' + '1'"}}}
        sets.add(package_set("late", target))
        eventually(lambda: equal(sets.condition("late", "Stalled")[0], "True"))
        controller.settle()
        controller.begin()
        sets.add_repository("late-1", {})
        eventually(lambda: equal(repositories_of(sets, "late"), ["late-1"]))

        assert caused(controller) == (1, ["POST PV late-late-1-foo"])

    def test_one_that_nobody_selects_wakes_nobody(self, sets: SetPlace, controller: LiveSetController) -> None:
        add(sets, controller, "nobody", by_label("nobody"))
        sets.add_repository("nobody-1", {"fleet": "another"})
        sets.label("nobody-1", {"more": "labels"})

        assert caused(controller) == (0, [])


def test_an_upstream_that_appears_wakes_the_set_that_waits_for_it(
    sets: SetPlace, controller: LiveSetController
) -> None:
    source = {"repo": UPSTREAM, "package": "foo", "revision": 2}
    sets.add(package_set("waits", {"repositories": [{"name": "cluster-01"}]}, upstream=source))
    eventually(lambda: equal(sets.condition("waits", "Stalled")[1], "UpstreamNotFound"))
    controller.settle()
    sets.place.push(
        UPSTREAM, {"foo@v2": {"Kptfile": "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: foo\n"}}
    )
    sets.place.sync(UPSTREAM)

    eventually(lambda: equal(repositories_of(sets, "waits"), ["cluster-01"]))


def test_a_status_of_a_variant_is_told_and_nothing_is_written(sets: SetPlace, controller: LiveSetController) -> None:
    add(sets, controller, "ready", {"repositories": [{"name": "cluster-02"}]})
    body = sets.place.variant("ready-cluster-02-foo")
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "Test",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    body["status"] = {"observedGeneration": body["metadata"]["generation"], "conditions": [condition]}
    path = sets.place.path(CONFIG, "packagevariants", "ready-cluster-02-foo") + "/status"
    assert sets.porch.request("PUT", path, body).code == 200
    eventually(lambda: equal(sets.condition("ready", "ReadyTargets")[0], "True"))

    assert caused(controller) == (1, [])


def test_a_resync_looks_and_writes_nothing(sets: SetPlace, controller: LiveSetController) -> None:
    controller.resync()
    controller.settle()

    assert controller.reconciles > 0
    assert controller.all_lines == []


class TestKinds:
    """Objects of kinds that come and go."""

    @pytest.fixture(autouse=True)
    def no_definition(self, sets: SetPlace) -> Iterator[None]:
        """The kind is there for the test only."""
        yield
        sets.porch.request("DELETE", f"{DEFINITIONS}/teams.bigco.com")

    def test_a_set_waits_for_its_kind_and_follows_its_objects(
        self, sets: SetPlace, controller: LiveSetController
    ) -> None:
        selector = {"apiVersion": "bigco.com/v1", "kind": "Team", "matchLabels": {"role": "dev"}}
        for name in ("alpha", "beta"):
            sets.add_repository(name, {})
        sets.add(package_set("teams", {"objectSelector": selector}))
        eventually(lambda: equal(sets.condition("teams", "Stalled")[1], "NoMatchingTargets"))

        assert sets.porch.request("POST", DEFINITIONS, teams()).code == 201
        eventually(lambda: equal(sets.condition("teams", "Stalled")[0], "False"), timeout=60)
        controller.settle()
        controller.begin()

        sets.place.create(TEAMS, "teams", team("alpha", "dev"))
        eventually(lambda: equal(repositories_of(sets, "teams"), ["alpha"]))
        assert caused(controller) == (1, ["POST PV teams-alpha-foo"])

        controller.begin()
        sets.place.create(TEAMS, "teams", team("beta", "ops"))
        assert caused(controller) == (0, [])

        sets.place.patch(TEAMS, "teams", "beta", {"metadata": {"labels": {"role": "dev"}}})
        eventually(lambda: equal(repositories_of(sets, "teams"), ["alpha", "beta"]))
        sets.place.delete(TEAMS, "teams", "alpha")
        eventually(lambda: equal(repositories_of(sets, "teams"), ["beta"]))
        controller.settle()
        assert controller.lines == ["POST PV teams-beta-foo", "DELETE PV teams-alpha-foo"]


def teams() -> Json:
    """Return the definition of the kind Team."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "teams.bigco.com"},
        "spec": {
            "group": "bigco.com",
            "scope": "Namespaced",
            "names": {"plural": "teams", "singular": "team", "kind": "Team", "listKind": "TeamList"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def team(name: str, role: str) -> Json:
    return {
        "apiVersion": "bigco.com/v1",
        "kind": "Team",
        "metadata": {"name": name, "labels": {"role": role}},
        "spec": {"secret": "not for expressions"},
    }


def equal(found: object, expected: object) -> None:
    assert found == expected


def test_a_look_with_nothing_new_renders_nothing(sets: SetPlace, controller: LiveSetController) -> None:
    add(sets, controller, "rendered", {"repositories": [{"name": "cluster-03"}]})
    before = controller.sample("porch_variant_set_renderings_total")
    controller.resync()
    controller.settle()

    assert controller.sample("porch_variant_set_renderings_total") == before
    assert (controller.sample("porch_variant_sets", condition="Ready", status="True") or 0) > 0
