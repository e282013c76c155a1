"""Previews of sets by a real server: the controller then does exactly what was said, and nothing is written before.

Source: ``variants.md`` 6.1, 6.2, 6.6, 6.7 and 6.11.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from drafts import accepted
from eventually import eventually
from git_server import GitServer
from live_set_controller import LiveSetController, live_set_controller
from porch_client import CONFIG, PORCH, Answer
from porch_process import PorchProcess
from set_place import SETS, SetPlace, package_set
from variant_place import Json, new_place

from krm.meta.conditions import find_condition
from krm.variants.sets.specs import spec_digest

PREVIEWS = "packagevariantsetpreviews"
VERBS = {"create": "POST", "update": "PUT", "delete": "DELETE"}
LONG = 90.0
PAUSED = "config.porch.kpt.dev/paused"
TEAM = ("krm-platform.bigco.com", "v1", "Team", "teams")
TEAMS = {"objectSelector": {"apiVersion": "krm-platform.bigco.com/v1", "kind": "Team"}}
REGION = {"labelExprs": [{"key": "region", "valueExpr": "repository.labels['region']"}]}
WRONG = {"labelExprs": [{"key": "x", "valueExpr": "repository.labels['none']"}]}


def ask(sets: SetPlace, **spec: Any) -> Answer:
    """Create a preview."""
    body = {"apiVersion": "porch.kpt.dev/v1alpha1", "kind": "PackageVariantSetPreview", "spec": spec}
    return sets.porch.request("POST", sets.place.path(PORCH, PREVIEWS), body)


def preview(sets: SetPlace, **spec: Any) -> Json:
    """Return the status of a preview."""
    answer = ask(sets, **spec)
    assert answer.code == 201, answer.body
    status: Json = answer.object["status"]
    return status


def clusters(*numbers: int, **template: Any) -> Json:
    """Target clusters by name."""
    target: Json = {"repositories": [{"name": f"cluster-0{number}"} for number in numbers]}
    return {**target, "template": template} if template else target


def selected(template: Json | None = None, **labels: str) -> Json:
    """Target clusters by labels."""
    target: Json = {"repositorySelector": {"matchLabels": labels or {"env": "prod"}}}
    return {**target, "template": template} if template else target


def nothing(_sets: SetPlace, _name: str) -> None:
    """What people do in between: nothing."""


def pause_first(sets: SetPlace, name: str) -> None:
    sets.place.patch_variant({"metadata": {"annotations": {PAUSED: "true"}}}, f"{name}-cluster-01-foo")


def pause_set(sets: SetPlace, name: str) -> None:
    sets.change(name, {"metadata": {"annotations": {PAUSED: "true"}}})


def edit_first(sets: SetPlace, name: str) -> None:
    """Somebody points a variant at another package."""
    sets.place.patch_variant({"spec": {"downstream": {"package": "other"}}}, f"{name}-cluster-01-foo")


def delete_first(sets: SetPlace, name: str) -> None:
    """Somebody deletes a variant, whose finalizer holds it: there is no controller of variants here."""
    sets.place.delete(CONFIG, "packagevariants", f"{name}-cluster-01-foo")


def take_a_name(sets: SetPlace, name: str) -> None:
    """Somebody has a variant of the name that the set would give."""
    spec = {
        "upstream": {"repo": "example-repo", "package": "foo"},
        "downstream": {"repo": "cluster-03", "package": "foo"},
    }
    metadata = {"name": f"{name}-cluster-03-foo"}
    body = {"apiVersion": "config.porch.kpt.dev/v1alpha1", "kind": "PackageVariant", "metadata": metadata, "spec": spec}
    sets.place.create(CONFIG, "packagevariants", body)


@dataclass(frozen=True)
class Scene:
    """A set, what people do then, and the set that is previewed and applied."""

    after: list[Json]
    expected: Json
    """Of the summary what is not 0."""
    reason: str = "Reconciled"
    """Of the condition Ready afterwards."""
    before: list[Json] = field(default_factory=list)
    """Targets of the set at first; none: there is no set."""
    between: Callable[[SetPlace, str], None] = nothing
    spec: Json = field(default_factory=dict)
    """Parts of the spec afterwards."""
    waits: bool = True
    """Whether the controller works on the set, which can be waited for."""


STUCK = {"onFailure": "Pause"}
SCENES = {
    "new": Scene([selected(REGION)], {"create": 4, "admitted": 4}),
    "changed": Scene(
        [clusters(1, 2), clusters(3, labels={"a": "b"}), clusters(4)],
        {"create": 1, "update": 1, "delete": 1, "unchanged": 2, "admitted": 3},
        before=[clusters(1, 2, 3), clusters(1, downstream={"package": "more"})],
    ),
    "same-twice": Scene([clusters(1), selected(org="hr")], {"create": 3, "admitted": 3}),
    "nothing-to-do": Scene([clusters(1, 2)], {"unchanged": 2}, before=[clusters(1), clusters(2)]),
    "failing": Scene(
        [clusters(1), clusters(2, **WRONG)], {"create": 1, "delete": 1, "failed": 1}, "UnexpectedError", [clusters(3)]
    ),
    "best-effort": Scene(
        [clusters(1), clusters(2, **WRONG)],
        {"create": 1, "delete": 2, "failed": 1, "admitted": 2},
        "UnexpectedError",
        [clusters(2, 3)],
        spec={"errorPolicy": "BestEffort"},
    ),
    "no-repository": Scene(
        [{"repositories": [{"name": "nowhere"}, {"name": "cluster-01"}]}],
        {"create": 1, "failed": 1},
        "UnexpectedError",
    ),
    "duplicates": Scene(
        [clusters(1, labels={"a": "b"}), clusters(1), clusters(2)],
        {"create": 1, "failed": 2},
        "DuplicateTargets",
    ),
    "taken-name": Scene(
        [clusters(1, 3)], {"unchanged": 1, "failed": 1}, "UnexpectedError", [clusters(1)], between=take_a_name
    ),
    "edited": Scene([clusters(1, 2)], {"unchanged": 2}, before=[clusters(1, 2)], between=edit_first),
    "deleted": Scene(
        [clusters(1, 2, 3)],
        {"unchanged": 1, "create": 2, "admitted": 1},
        "WaitingForDeletion",
        [clusters(1, 2)],
        between=delete_first,
    ),
    "guarded": Scene(
        [clusters(1, 4)],
        {"unchanged": 1, "create": 1, "delete": 2, "admitted": 1},
        "DeletionGuard",
        [clusters(1, 2, 3)],
        spec={"guards": {"maxDeletions": "50%"}},
    ),
    "kept": Scene(
        [selected(env="none"), clusters(4)],
        {"create": 1, "delete": 2, "admitted": 1},
        before=[clusters(1, 2)],
        spec={"guards": {"onEmptySelection": "Keep"}},
    ),
    "paused-variant": Scene(
        [clusters(1, 2, labels={"a": "b"})],
        {"update": 2, "delete": 1, "admitted": 2},
        before=[clusters(1, 2, 3)],
        between=pause_first,
    ),
    "paused-and-unwanted": Scene(
        [clusters(2)], {"delete": 1, "unchanged": 1}, before=[clusters(1, 2)], between=pause_first
    ),
    "paused-set": Scene(
        [clusters(2, 3)],
        {"unchanged": 1, "create": 1, "delete": 1},
        "Reconciled",
        [clusters(1, 2)],
        pause_set,
        {},
        False,
    ),
    "rolling": Scene(
        [selected()],
        {"create": 4, "admitted": 2},
        "RolloutInProgress",
        spec={"rollout": {"strategy": "Rolling", "maxInFlight": 2}},
    ),
    "rolling-deletes-last": Scene(
        [clusters(1, 2, labels={"a": "b"})],
        {"update": 2, "delete": 1, "admitted": 1},
        "RolloutInProgress",
        [clusters(1, 2, 3)],
        spec={"rollout": {"strategy": "Rolling"}},
    ),
    "waves": Scene(
        [selected()],
        {"create": 4, "admitted": 1},
        "RolloutInProgress",
        spec={
            "rollout": {
                "strategy": "Waves",
                "maxInFlight": "100%",
                "waves": [{"name": "canary", "match": "repository.name == 'cluster-02'"}],
            }
        },
    ),
    "objects": Scene([TEAMS], {"create": 2, "admitted": 2}),
    "invalid": Scene([{}], {}, "ValidationError"),
    "no-kind": Scene([{"objectSelector": {"apiVersion": "x.io/v1", "kind": "Nothing"}}], {}, "NoMatchingTargets"),
    "secrets": Scene([{"objectSelector": {"apiVersion": "v1", "kind": "Secret"}}], {}, "UnexpectedError"),
    "reviews": Scene(
        [{"objectSelector": {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}}],
        {},
        "UnexpectedError",
    ),
    "bad-selector": Scene(
        [{"repositorySelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}], {}, "UnexpectedError"
    ),
    "no-upstream": Scene(
        [clusters(1)],
        {},
        "UpstreamNotFound",
        spec={"upstream": {"repo": "example-repo", "package": "foo", "revision": 9}},
    ),
}


@pytest.fixture(scope="module")
def sets(porch_server: PorchProcess, git_http: GitServer) -> Iterator[SetPlace]:
    """One namespace for all cases; sets have names of their own."""
    place = new_place(porch_server, git_http, "previews")
    made = SetPlace(place)
    made.prepare()
    made.define(*TEAM)
    for name in ("dev-team-alpha", "prod-team"):
        made.add_object(*TEAM, name)
    for name in ("dev-team-alpha", "prod-team"):
        made.add_repository(name, {})
    yield made
    place.porch.close()


@pytest.fixture(scope="module")
def controller(sets: SetPlace) -> Iterator[LiveSetController]:
    """The controller of that namespace."""
    with live_set_controller(sets.place.server.kubeconfig, sets.place.namespace) as made:
        yield made


def put(sets: SetPlace, body: Json) -> None:
    """Create a set, or give the one that is there another spec."""
    path = sets.place.path(SETS, "packagevariantsets", body["metadata"]["name"])
    there = sets.porch.request("GET", path)
    if there.code == 404:
        sets.add(body)
    else:
        accepted(sets.porch.request("PUT", path, {**there.object, "spec": body["spec"]}))


def worked_on(sets: SetPlace, name: str) -> None:
    """Wait until the controller has worked on the set as it is."""

    def check() -> None:
        body = sets.get(name)
        assert (body.get("status") or {}).get("observedGeneration") == body["metadata"]["generation"]

    eventually(check, timeout=LONG)


def conditions(status: Json, *kinds: str) -> list[tuple[str, ...]]:
    found = [find_condition(status.get("conditions"), kind) or {} for kind in kinds]
    return [tuple(str(one.get(part)) for part in ("type", "status", "reason", "message")) for one in found]


def written(status: Json) -> list[str]:
    """Return what the next pass writes, as the recording says it."""
    lines = {f"{VERBS[one['action']]} PV {one['name']}" for one in status.get("targets") or () if one.get("admitted")}
    return sorted(lines)


@pytest.mark.parametrize("name", SCENES)
def test_the_controller_does_what_the_preview_said(sets: SetPlace, controller: LiveSetController, name: str) -> None:
    scene = SCENES[name]
    if scene.before:
        put(sets, package_set(name, *scene.before))
        worked_on(sets, name)
        controller.settle()
    scene.between(sets, name)
    controller.settle()
    everything = sets.porch.request("GET", sets.place.path(CONFIG, "packagevariants")).object["items"]
    upstream = scene.spec.get("upstream")
    rest = {key: value for key, value in scene.spec.items() if key != "upstream"}
    after = package_set(name, *scene.after, upstream=upstream, **rest)
    controller.begin()

    status = preview(sets, set=after)

    assert {key: number for key, number in status["summary"].items() if number} == scene.expected
    assert sets.porch.request("GET", sets.place.path(CONFIG, "packagevariants")).object["items"] == everything
    put(sets, after)
    if scene.waits:
        worked_on(sets, name)
    controller.settle()
    assert sorted(controller.lines) == written(status)
    now = sets.get(name)["status"]
    kinds = ["Stalled", "Ready"] if scene.waits else ["Stalled", "Ready", "Paused"]
    assert conditions(now, *kinds) == conditions(status, *kinds)
    assert conditions(status, "Ready")[0][2] == scene.reason
    assert (now.get("rollout") or {}).get("phase") == (status.get("rollout") or {}).get("phase")
    made = sets.variants(name)
    for one in status.get("targets") or ():
        if one.get("admitted") and one["action"] != "delete":
            assert spec_digest(made[one["name"]]["spec"]) == spec_digest(one["spec"])
        assert ("reason" in one) is (one.get("admitted") is False), one
