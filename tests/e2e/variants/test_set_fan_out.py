"""The fan-out of sets by the controller against a real server: the golden cases of ``variants.md`` 5.11.

Those of seed 000 come from ``tests/data/variants/seed_examples.yaml``. After each case a controller that starts anew must find nothing to write.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import yaml
from eventually import eventually
from git_server import GitServer
from live_set_controller import LiveSetController, live_set_controller
from porch_process import PorchProcess
from recording_client import Fault, Write
from seed_examples import TEAMS, block, printed, targets, text_of
from set_place import FOO, SET_LABEL, UPSTREAM, SetPlace, package_set
from variant_place import Json, blueprint, new_place

from krm.client.errors import Unanswered
from krm.meta.errors import Invalid, ServiceUnavailable

VARIANTS = "/apis/config.porch.kpt.dev/v1alpha1"
HR = {"matchLabels": {"env": "prod", "org": "hr"}}
TEAM = ("krm-platform.bigco.com", "v1", "Team", "teams")
MACHINE = ("example.com", "v1", "Machine", "machines")
WORKLOAD_CLUSTER = ("infra.nephio.org", "v1alpha1", "WorkloadCluster", "workloadclusters")
NEPHIO = "network-function-auto-namespace"


@pytest.fixture(scope="module")
def sets(porch_server: PorchProcess, git_http: GitServer) -> Iterator[SetPlace]:
    """One namespace for all cases; sets have names of their own."""
    place = new_place(porch_server, git_http, "fan-out")
    made = SetPlace(place)
    made.prepare()
    place.register("platform-catalog", {"base-ns@v1": blueprint("base-ns")})
    add_objects(made)
    yield made
    place.porch.close()


def add_objects(sets: SetPlace) -> None:
    """Make the objects that cases select, each with a Repository of its name, and the repositories that they name."""
    for kind in (TEAM, MACHINE, WORKLOAD_CLUSTER):
        sets.define(*kind)
    for name, labels in TEAMS.items():
        sets.add_object(*TEAM, name, **labels)
    for name in ("my-pod-1", "my-pod-2"):
        sets.add_object(*MACHINE, name)
    for name in ("region-1", "region-2"):
        sets.add_object(*WORKLOAD_CLUSTER, name)
    for name in (*TEAMS, "my-pod-1", "my-pod-2", "region-1", "region-2", "r1", "r2", "repo-1", "repo-2", "edge1"):
        sets.add_repository(name, {})


@pytest.fixture
def controller(sets: SetPlace) -> Iterator[LiveSetController]:
    """The controller of that namespace."""
    with live_set_controller(sets.place.server.kubeconfig, sets.place.namespace) as made:
        made.settle()
        made.begin()
        yield made


@pytest.fixture
def quiet_afterwards(sets: SetPlace) -> Iterator[None]:
    """Check that a controller that starts anew writes nothing, not even a status."""
    yield
    with live_set_controller(sets.place.server.kubeconfig, sets.place.namespace) as again:
        eventually(lambda: has_looked(again))
        again.settle()
        assert again.all_lines == []


def has_looked(controller: LiveSetController) -> None:
    assert controller.reconciles > 0


@dataclass(frozen=True)
class Case:
    """A set and the variants that it comes to."""

    targets: list[Json]
    expected: dict[str, str]
    """Repository and package by the end of the variant's name."""
    upstream: Json = field(default_factory=lambda: FOO)
    specs: dict[str, Json] = field(default_factory=dict)
    """Parts of the spec by the end of the name."""


def names(*pairs: str) -> dict[str, str]:
    return {pair.replace("/", "-"): pair for pair in pairs}


def repos(**packages: list[str] | None) -> list[Json]:
    return [
        {"name": name.replace("_", "-"), **({"packageNames": given} if given else {})}
        for name, given in packages.items()
    ]


def of_seed(id_: str) -> Case:
    """Return an example of seed 000: what it prints, or else the table below it."""
    example = block(id_)
    spec = yaml.safe_load(text_of(example))["spec"]
    specs = {
        f"{one['downstream']['repo']}-{one['downstream']['package']}": one
        for one in [body["spec"] for body in (printed(example) if "prints" in example else ())]
    }
    expected = {name.removeprefix("example-"): pair for name, pair in example["variants"].items()}
    for end in expected:
        specs.setdefault(end, {"upstream": spec["upstream"]})
    return Case(spec["targets"], expected, spec["upstream"], specs)


def objects(kind: tuple[str, str, str, str]) -> Json:
    """Select all objects of a kind."""
    return {"objectSelector": {"apiVersion": f"{kind[0]}/{kind[1]}", "kind": kind[2]}}


CASES = {
    "t01": of_seed("list"),
    "t02": of_seed("selectors"),
    "t03": of_seed("objects"),
    "t04": of_seed("namespaces"),
    "t05": of_seed("labelled"),
    "t06": of_seed("expressions"),
    "t07": Case(
        [
            {"repositories": repos(cluster_01=None, cluster_02=None)},
            {"repositories": repos(cluster_03=None), "template": {"downstream": {"package": "bar"}}},
        ],
        names("cluster-01/foo", "cluster-02/foo", "cluster-03/bar"),
    ),
    "t08": Case(
        [{"repositories": repos(cluster_01=["foo-a", "foo-b"], cluster_02=None)}],
        names("cluster-01/foo-a", "cluster-01/foo-b", "cluster-02/foo"),
    ),
    "t09": Case(
        [
            {
                "repositorySelector": HR,
                "template": {
                    "downstream": {"package": "bar"},
                    "injectors": [{"nameExpr": "target.labels['region'] + '-endpoints'"}],
                },
            }
        ],
        names(*(f"cluster-0{one}/bar" for one in (1, 3, 4))),
        specs={"cluster-03-bar": {"injectors": [{"name": "useast2-endpoints"}]}},
    ),
    "t10": Case(
        [{"repositories": repos(r1=["p1", "p2", "p3"], r2=None)}, objects(MACHINE)],
        names("r1/p1", "r1/p2", "r1/p3", "r2/foo", "my-pod-1/foo", "my-pod-2/foo"),
    ),
    "t11": Case([targets()[0]["target"]], names(*targets()[0]["packages"])),
    NEPHIO: Case(
        [
            {
                "repositories": repos(edge1=[f"{NEPHIO}-x", f"{NEPHIO}-y"]),
                "template": {"downstream": {"packageExpr": "target.package + '-cumulonimbus'"}},
            }
        ],
        {
            "edge1-network-function-35079f9f": f"edge1/{NEPHIO}-x-cumulonimbus",
            "edge1-network-function-d521d2c0": f"edge1/{NEPHIO}-y-cumulonimbus",
        },
    ),
    "t20": Case(
        [{**objects(WORKLOAD_CLUSTER), "template": {"annotations": {"approval.nephio.org/policy": "initial"}}}],
        names("region-1/foo", "region-2/foo"),
        specs={f"region-{one}-foo": {"annotations": {"approval.nephio.org/policy": "initial"}} for one in (1, 2)},
    ),
}
"""By the name of the set: the golden case, but G-T19, whose set is called as upstream's."""


@pytest.mark.usefixtures("quiet_afterwards")
@pytest.mark.parametrize("name", CASES)
def test_a_set_makes_exactly_its_variants_and_once(sets: SetPlace, controller: LiveSetController, name: str) -> None:
    case = CASES[name]
    sets.add(package_set(name, *case.targets, upstream=case.upstream))
    expected = {f"{name}-{end}": pair for end, pair in case.expected.items()}
    eventually(lambda: equal(sets.pairs(name), expected))
    eventually(lambda: equal(sets.condition(name, "Ready")[:2], ("True", "Reconciled")))
    controller.settle()

    found = sets.variants(name)
    for end, part in case.specs.items():
        spec = found[f"{name}-{end}"]["spec"]
        assert {key: spec.get(key) for key in part} == part
    assert sorted(controller.lines) == sorted(f"POST PV {one}" for one in expected)
    assert sets.condition(name, "Stalled") == ("False", "Valid", "all validation checks passed")
    assert sets.get(name)["status"]["targets"]["total"] == len(expected)


def test_what_a_set_makes_is_its_own(sets: SetPlace, controller: LiveSetController) -> None:
    """G-T13."""
    made = sets.add(package_set("t13", {"repositories": repos(cluster_01=None)}))
    eventually(lambda: equal(len(sets.variants("t13")), 1))

    meta = sets.variants("t13")["t13-cluster-01-foo"]["metadata"]
    assert meta["labels"] == {SET_LABEL: made["metadata"]["uid"]}
    assert meta["finalizers"] == ["config.porch.kpt.dev/packagevariants"]
    (owner,) = meta["ownerReferences"]
    assert owner | {"blockOwnerDeletion": True} == {
        "apiVersion": "config.porch.kpt.dev/v1alpha2",
        "kind": "PackageVariantSet",
        "name": "t13",
        "uid": made["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


@pytest.mark.usefixtures("quiet_afterwards")
def test_a_changed_template_changes_specs_and_keeps_what_users_put_on_variants(
    sets: SetPlace, controller: LiveSetController
) -> None:
    """G-T12 and G-T14: one is deleted, one updated, one created, one left alone; in this order."""
    target = {"repositories": repos(cluster_01=None, cluster_02=None), "template": {"labels": {"a": "1"}}}
    same = {"repositories": repos(cluster_04=None)}
    sets.add(package_set("t14", target, same))
    eventually(lambda: equal(len(sets.variants("t14")), 3))
    by_user = {"metadata": {"labels": {"mine": "yes"}, "annotations": {"note": "kept"}}}
    sets.place.patch("/apis/config.porch.kpt.dev/v1alpha1", "packagevariants", "t14-cluster-02-foo", by_user)
    controller.settle()
    controller.begin()

    changed = {"repositories": repos(cluster_02=None, cluster_03=None), "template": {"labels": {"a": "2"}}}
    sets.change("t14", {"spec": {"targets": [changed, same]}})
    eventually(lambda: equal(sorted(sets.pairs("t14").values()), [f"cluster-0{one}/foo" for one in (2, 3, 4)]))
    eventually(lambda: equal(sets.variants("t14")["t14-cluster-02-foo"]["spec"]["labels"], {"a": "2"}))
    controller.settle()

    meta = sets.variants("t14")["t14-cluster-02-foo"]["metadata"]
    assert meta["labels"]["mine"] == "yes"
    assert meta["annotations"]["note"] == "kept"
    assert controller.lines == [
        "DELETE PV t14-cluster-01-foo",
        "PUT PV t14-cluster-02-foo",
        "POST PV t14-cluster-03-foo",
    ]
    counts = sets.get("t14")["status"]["targets"]
    assert {key: counts[key] for key in ("created", "updated", "deleted")} == {"created": 1, "updated": 1, "deleted": 1}


def test_a_variant_whose_downstream_somebody_changed_is_put_right_where_it_is(
    sets: SetPlace, controller: LiveSetController
) -> None:
    sets.add(package_set("edited", {"repositories": repos(cluster_01=None)}))
    eventually(lambda: equal(len(sets.variants("edited")), 1))
    controller.settle()
    controller.begin()

    elsewhere = {"spec": {"downstream": {"repo": "cluster-01", "package": "elsewhere"}}}
    sets.place.patch("/apis/config.porch.kpt.dev/v1alpha1", "packagevariants", "edited-cluster-01-foo", elsewhere)
    eventually(lambda: equal(controller.lines, ["PUT PV edited-cluster-01-foo"]))

    assert sets.pairs("edited") == {"edited-cluster-01-foo": "cluster-01/foo"}


@pytest.mark.usefixtures("quiet_afterwards")
def test_a_selector_that_matches_nothing_is_told_and_is_no_error(sets: SetPlace, controller: LiveSetController) -> None:
    """G-T15."""
    sets.add(package_set("t15", {"repositorySelector": {"matchLabels": {"no": "one"}}}))
    eventually(lambda: equal(sets.condition("t15", "Ready")[0], "True"))

    assert sets.variants("t15") == {}
    assert ("t15", "NoObjectsSelected", "spec.targets[0] selects nothing") in controller.events


STALLED: dict[str, tuple[list[Json], str, str, dict[str, Any]]] = {
    "t16": (
        [{"objectSelector": {"apiVersion": "example.com/v1", "kind": "Nothing", "matchLabels": {}}}],
        "NoMatchingTargets",
        'spec.targets[0].objectSelector: no matches for kind "Nothing" in version "example.com/v1"',
        {},
    ),
    "t17": (
        [
            {"repositories": repos(cluster_02=None)},
            {"repositories": repos(cluster_01=None), "template": {"downstream": {"repo": "missing"}}},
        ],
        "UnexpectedError",
        'spec.targets[1] (missing/foo): repository "missing" could not be loaded',
        {},
    ),
    "t22": (
        [
            {"repositories": repos(cluster_01=None)},
            {"repositories": repos(cluster_01=None), "template": {"labels": {"a": "1"}}},
        ],
        "DuplicateTargets",
        "cluster-01/foo: spec.targets[0] and spec.targets[1] ask for different package variants of the same package",
        {},
    ),
    "invalid": ([], "ValidationError", "must specify at least one item in spec.targets", {}),
    "no-upstream": (
        [{"repositories": repos(cluster_01=None)}],
        "UpstreamNotFound",
        f"could not find upstream package revision 'foo/v7' in repo '{UPSTREAM}'",
        {"upstream": {**FOO, "revision": "v7"}},
    ),
    "key": (
        [
            {"repositories": repos(cluster_02=None)},
            {
                "repositories": repos(cluster_01=None),
                "template": {"labelExprs": [{"key": "a", "valueExpr": "repository.labels['none']"}]},
            },
        ],
        "UnexpectedError",
        "spec.targets[1] (cluster-01/foo): template.labelExprs[0].valueExpr: no such key: none",
        {},
    ),
}


@pytest.mark.usefixtures("quiet_afterwards")
@pytest.mark.parametrize("name", STALLED)
def test_what_stalls_a_set_is_told_and_nothing_is_written(
    sets: SetPlace, controller: LiveSetController, name: str
) -> None:
    targets, reason, message, spec = STALLED[name]
    sets.add(package_set(name, *targets, **spec))
    eventually(lambda: equal(sets.condition(name, "Stalled"), ("True", reason, message)))
    controller.settle()

    assert sets.condition(name, "Ready") == ("False", reason, message)
    assert controller.lines == []
    assert (name, reason, message) in controller.events


@pytest.mark.usefixtures("quiet_afterwards")
def test_what_exists_stays_while_a_set_is_stalled(sets: SetPlace, controller: LiveSetController) -> None:
    """C-41; and the set recovers by itself once it is put right."""
    target = {"repositories": repos(cluster_01=None, cluster_02=None)}
    sets.add(package_set("c41", target))
    eventually(lambda: equal(len(sets.pairs("c41")), 2))
    controller.settle()
    controller.begin()

    bad = {**target, "template": {"downstream": {"packageExpr": "target.package + '-' + nothing"}}}
    sets.change("c41", {"spec": {"targets": [bad]}})
    eventually(lambda: equal(sets.condition("c41", "Stalled")[:2], ("True", "ValidationError")))
    controller.settle()
    assert controller.lines == []

    sets.change("c41", {"spec": {"targets": [{"repositories": repos(cluster_01=None)}]}})
    eventually(lambda: equal(list(sets.pairs("c41").values()), ["cluster-01/foo"]))
    eventually(lambda: equal(sets.condition("c41", "Ready")[0], "True"))
    assert controller.lines == ["DELETE PV c41-cluster-02-foo"]


@pytest.mark.usefixtures("quiet_afterwards")
def test_best_effort_writes_the_good_targets_and_spares_the_bad(sets: SetPlace, controller: LiveSetController) -> None:
    good, bad = repos(cluster_01=None), {"name": "nowhere"}
    sets.add(package_set("effort", {"repositories": [*good, bad]}, errorPolicy="BestEffort"))
    eventually(lambda: equal(list(sets.pairs("effort").values()), ["cluster-01/foo"]))
    eventually(lambda: equal(sets.condition("effort", "Stalled")[1], "UnexpectedError"))

    (failure,) = sets.get("effort")["status"]["failures"]
    assert (failure["repo"], failure["package"], failure["stage"]) == ("nowhere", "foo", "render")


def test_a_variant_of_somebody_else_with_the_name_is_not_touched(sets: SetPlace, controller: LiveSetController) -> None:
    body = {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "PackageVariant",
        "metadata": {"name": "clash-cluster-01-foo"},
        "spec": {"upstream": FOO, "downstream": {"repo": "cluster-02", "package": "other"}},
    }
    sets.place.add_variant(body)
    sets.add(package_set("clash", {"repositories": repos(cluster_01=None)}))
    message = 'package variant "clash-cluster-01-foo" exists already, and is not of this set'
    eventually(lambda: told(sets.condition("clash", "Stalled"), message))
    controller.settle()
    assert controller.lines == []

    sets.place.delete("/apis/config.porch.kpt.dev/v1alpha1", "packagevariants", "clash-cluster-01-foo")
    eventually(lambda: equal(list(sets.pairs("clash").values()), ["cluster-01/foo"]))


@pytest.mark.usefixtures("quiet_afterwards")
def test_a_paused_set_and_a_paused_variant_are_left_alone(sets: SetPlace, controller: LiveSetController) -> None:
    target = {"repositories": repos(cluster_01=None, cluster_02=None), "template": {"labels": {"a": "1"}}}
    sets.add(package_set("pause", target))
    eventually(lambda: equal(len(sets.pairs("pause")), 2))
    paused = {"metadata": {"annotations": {"config.porch.kpt.dev/paused": "true"}}}
    sets.place.patch("/apis/config.porch.kpt.dev/v1alpha1", "packagevariants", "pause-cluster-01-foo", paused)
    sets.change("pause", {"spec": {"suspend": True}})
    eventually(lambda: equal(sets.condition("pause", "Paused")[:2], ("True", "PausedByUser")))
    controller.settle()
    controller.begin()

    sets.change("pause", {"spec": {"targets": [{**target, "template": {"labels": {"a": "2"}}}]}})
    controller.settle()
    assert controller.lines == []
    assert sets.get("pause")["status"]["observedGeneration"] == 1

    sets.change("pause", {"spec": {"suspend": False}})
    eventually(lambda: equal(controller.lines, ["PUT PV pause-cluster-02-foo"]))
    eventually(lambda: equal(sets.condition("pause", "Paused")[:2], ("False", "Resumed")))

    resumed = {"metadata": {"annotations": {"config.porch.kpt.dev/paused": None}}}
    sets.place.patch("/apis/config.porch.kpt.dev/v1alpha1", "packagevariants", "pause-cluster-01-foo", resumed)
    eventually(lambda: equal(controller.lines[1:], ["PUT PV pause-cluster-01-foo"]))


@pytest.mark.usefixtures("quiet_afterwards")
def test_a_guard_holds_deletions_back_until_they_are_allowed(sets: SetPlace, controller: LiveSetController) -> None:
    sets.add(
        package_set("guarded", {"repositories": repos(cluster_01=None, cluster_02=None)}, guards={"maxDeletions": 1})
    )
    eventually(lambda: equal(len(sets.pairs("guarded")), 2))
    controller.settle()
    controller.begin()

    sets.change("guarded", {"spec": {"targets": [{"repositories": repos(cluster_03=None)}]}})
    eventually(lambda: equal(sets.condition("guarded", "Stalled")[1], "DeletionGuard"))
    controller.settle()
    assert controller.lines == ["POST PV guarded-cluster-03-foo"]

    generation = str(sets.get("guarded")["metadata"]["generation"])
    sets.change("guarded", {"metadata": {"annotations": {"config.porch.kpt.dev/allow-deletions": generation}}})
    eventually(lambda: equal(list(sets.pairs("guarded").values()), ["cluster-03/foo"]))
    eventually(lambda: equal(sets.condition("guarded", "Ready")[0], "True"))
    assert controller.lines[1:] == ["DELETE PV guarded-cluster-01-foo", "DELETE PV guarded-cluster-02-foo"]


@pytest.mark.usefixtures("quiet_afterwards")
def test_a_rollout_changes_no_more_variants_than_it_may(sets: SetPlace, controller: LiveSetController) -> None:
    target = {"repositories": repos(cluster_01=None, cluster_02=None, cluster_03=None)}
    sets.add(package_set("rolling", target, rollout={"strategy": "Rolling", "maxInFlight": 1}))
    eventually(lambda: equal(sets.condition("rolling", "Ready")[:2], ("False", "RolloutInProgress")))
    controller.settle()
    assert controller.lines == ["POST PV rolling-cluster-01-foo"]

    for number in (1, 2, 3):
        name = f"rolling-cluster-0{number}-foo"
        eventually(partial(is_there, sets, "rolling", name))
        make_ready(sets, name)
    eventually(lambda: equal(sets.condition("rolling", "Ready")[0], "True"))
    eventually(lambda: equal(sets.condition("rolling", "ReadyTargets")[0], "True"))

    assert sets.get("rolling")["status"]["rollout"]["phase"] == "Complete"
    assert controller.lines == [f"POST PV rolling-cluster-0{one}-foo" for one in (1, 2, 3)]


def make_ready(sets: SetPlace, name: str) -> None:
    """Say of a variant what its controller would."""
    now = "2026-01-01T00:00:00Z"
    conditions = [
        {"type": kind, "status": status, "reason": "Test", "message": "", "lastTransitionTime": now}
        for kind, status in (("Stalled", "False"), ("Ready", "True"))
    ]

    def write() -> None:
        body = sets.place.variant(name)
        body["status"] = {"observedGeneration": body["metadata"]["generation"], "conditions": conditions}
        path = sets.place.path("/apis/config.porch.kpt.dev/v1alpha1", "packagevariants", name) + "/status"
        assert sets.porch.request("PUT", path, body).code == 200

    eventually(write)


def equal(found: object, expected: object) -> None:
    assert found == expected


def is_there(sets: SetPlace, set_name: str, name: str) -> None:
    assert name in sets.pairs(set_name)


def told(condition: tuple[str, str, str], message: str) -> None:
    assert message in condition[2]


# --- what goes wrong on the way -------------------------------------------------------------------------


def creates(name: str) -> Callable[[Write], bool]:
    """Choose the creations of a variant."""
    return lambda write: (write.verb, write.plural, write.name) == ("POST", "packagevariants", name)


@pytest.mark.usefixtures("quiet_afterwards")
def test_a_write_that_fails_for_a_moment_is_tried_again_and_keeps_no_other_back(
    sets: SetPlace, controller: LiveSetController
) -> None:
    """C-20: and it is not told."""
    controller.recording.faults.append(
        Fault(creates("moment-cluster-01-foo"), lambda: ServiceUnavailable("no"), times=2)
    )
    sets.add(package_set("moment", {"repositories": repos(cluster_01=None, cluster_02=None)}))
    eventually(lambda: equal(sorted(sets.pairs("moment").values()), ["cluster-01/foo", "cluster-02/foo"]))
    eventually(lambda: equal(sets.condition("moment", "Ready")[0], "True"))

    assert (
        controller.lines
        == ["POST PV moment-cluster-01-foo", "POST PV moment-cluster-02-foo"] + ["POST PV moment-cluster-01-foo"] * 2
    )
    assert controller.events == []


@pytest.mark.usefixtures("quiet_afterwards")
def test_a_write_that_cannot_succeed_is_told_and_not_tried_at_once(
    sets: SetPlace, controller: LiveSetController
) -> None:
    controller.recording.faults.append(Fault(creates("cannot-cluster-01-foo"), lambda: Invalid("because"), times=100))
    sets.add(package_set("cannot", {"repositories": repos(cluster_01=None, cluster_02=None)}))
    message = 'package variant "cannot-cluster-01-foo" cannot be written: because'
    eventually(lambda: equal(sets.condition("cannot", "Stalled"), ("True", "UnexpectedError", message)))

    (failure,) = sets.get("cannot")["status"]["failures"]
    assert failure == {"repo": "cluster-01", "package": "foo", "stage": "apply", "message": message}
    assert list(sets.pairs("cannot").values()) == ["cluster-02/foo"]
    controller.settle()
    assert controller.lines == [f"POST PV cannot-cluster-0{number}-foo" for number in (1, 2)]

    controller.recording.faults.clear()
    sets.change("cannot", {"spec": {"errorPolicy": "FailFast"}})
    eventually(lambda: equal(sets.condition("cannot", "Ready")[0], "True"))


@pytest.mark.usefixtures("quiet_afterwards")
@pytest.mark.parametrize("verb", ["POST", "PUT", "DELETE"])
def test_a_write_whose_answer_is_lost_is_not_done_twice(
    sets: SetPlace, controller: LiveSetController, verb: str
) -> None:
    name = f"lost-{verb.lower()}"
    target = {"repositories": repos(cluster_01=None), "template": {"labels": {"a": "1"}}}
    lost = Fault(lambda write: write.plural == "packagevariants", lambda: Unanswered("lost"), done=True)
    if verb == "POST":
        controller.recording.faults.append(lost)
    sets.add(package_set(name, target))
    eventually(lambda: equal(sets.condition(name, "Ready")[0], "True"))
    if verb != "POST":
        controller.recording.faults.append(lost)
    if verb == "PUT":
        sets.change(name, {"spec": {"targets": [{**target, "template": {"labels": {"a": "2"}}}]}})
        eventually(lambda: equal(sets.variants(name)[f"{name}-cluster-01-foo"]["spec"]["labels"], {"a": "2"}))
    if verb == "DELETE":
        sets.change(name, {"spec": {"targets": [{"repositories": repos(cluster_02=None)}]}})
        eventually(lambda: equal(list(sets.pairs(name).values()), ["cluster-02/foo"]))
    controller.settle()

    done = [write for write in controller.recording.accepted if write.plural == "packagevariants"]
    assert len([write for write in done if write.verb == verb and write.name == f"{name}-cluster-01-foo"]) == 1
    assert controller.recording.faults[0].times == 0


@pytest.mark.usefixtures("quiet_afterwards")
def test_a_name_that_a_variant_has_which_is_going_is_used_once_it_is_gone(
    sets: SetPlace, controller: LiveSetController
) -> None:
    sets.add(package_set("going", {"repositories": repos(cluster_01=None)}))
    eventually(lambda: equal(len(sets.pairs("going")), 1))
    before = sets.variants("going")["going-cluster-01-foo"]["metadata"]["uid"]
    sets.place.delete(VARIANTS, "packagevariants", "going-cluster-01-foo")
    eventually(lambda: equal(sets.condition("going", "Ready")[1], "WaitingForDeletion"))

    sets.place.patch(VARIANTS, "packagevariants", "going-cluster-01-foo", {"metadata": {"finalizers": None}})
    eventually(lambda: equal(len(sets.pairs("going")), 1))
    eventually(lambda: equal(sets.condition("going", "Ready")[0], "True"))
    assert sets.variants("going")["going-cluster-01-foo"]["metadata"]["uid"] != before


@pytest.mark.usefixtures("quiet_afterwards")
def test_an_empty_selection_keeps_variants_where_that_is_asked_for(
    sets: SetPlace, controller: LiveSetController
) -> None:
    sets.add_repository("kept-1", {"fleet": "kept"})
    target = {"repositorySelector": {"matchLabels": {"fleet": "kept"}}}
    sets.add(package_set("kept", target, guards={"onEmptySelection": "Keep"}))
    eventually(lambda: equal(len(sets.pairs("kept")), 1))
    sets.label("kept-1", {"fleet": None})
    eventually(lambda: has_event(controller, "kept", "NoObjectsSelected"))
    controller.settle()

    assert list(sets.pairs("kept").values()) == ["kept-1/foo"]


def has_event(controller: LiveSetController, name: str, reason: str) -> None:
    assert (name, reason) in [event[:2] for event in controller.events]
