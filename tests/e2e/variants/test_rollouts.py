"""Sets that change their variants some at a time, with both controllers as processes. Source: ``variants.md`` 6.2, 6.3."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from approving_place import Approvals, approvals
from drafts import accepted
from eventually import eventually
from git_server import GitServer
from porch_client import CONFIG
from porch_process import PorchProcess
from variant_place import NO_FUNCTION, UPSTREAM, Place, blueprint, new_place, upstream

Json = dict[str, Any]
SITES = ("site-a", "site-b", "site-c", "site-d")
BOTH = {"propose": "WhenReady", "publish": "Always"}
SETS = "/apis/config.porch.kpt.dev/v1alpha2"
APPROVE = "config.porch.kpt.dev/approve-wave"
LONG = 90.0
SETTLES = 3.0
"""Seconds in which something would have happened if it were going to."""

pytestmark = pytest.mark.timeout(400)


@pytest.fixture
def running(porch_server: PorchProcess, git_http: GitServer, namespace: str, tmp_path: Path) -> Iterator[Approvals]:
    """Both controllers, in a place with a blueprint and four sites, of which the first is a canary."""
    place = new_place(porch_server, git_http, namespace)
    with closing(place.porch):
        place.register(UPSTREAM, {"foo@v1": blueprint()})
        for site in SITES:
            place.register(site, deployment=True)
            labels = {"site": "yes", "tier": "canary" if site == SITES[0] else "prod"}
            place.patch(CONFIG, "repositories", site, {"metadata": {"labels": labels}})
        with approvals(place, tmp_path) as made:
            yield made


def add_set(place: Place, rollout: Json, template: Json | None = None, **source: Any) -> None:
    """Create a set ``fleet`` over all sites."""
    target: Json = {"repositorySelector": {"matchLabels": {"site": "yes"}}}
    if template is not None:
        target["template"] = template
    spec = {"upstream": upstream(**(source or {"revision": "latest"})), "targets": [target], "rollout": rollout}
    body = {"apiVersion": "config.porch.kpt.dev/v1alpha2", "kind": "PackageVariantSet", "metadata": {"name": "fleet"}}
    place.create(SETS, "packagevariantsets", {**body, "spec": spec})


def change_set(place: Place, patch: Json) -> None:
    """Merge a patch into the set."""
    place.patch(SETS, "packagevariantsets", "fleet", patch)


def rollout_of(place: Place) -> Json:
    """Return ``status.rollout``; empty before there is one."""
    answer = place.porch.request("GET", place.path(SETS, "packagevariantsets", "fleet"))
    found: Json = (accepted(answer).get("status") or {}).get("rollout") or {}
    return found


def variants(place: Place) -> dict[str, Json]:
    """Return the variants by site."""
    path = place.path(CONFIG, "packagevariants")
    items = accepted(place.porch.request("GET", path))["items"]
    return {one["spec"]["downstream"]["repo"]: one for one in items}


def sources(place: Place) -> dict[str, Any]:
    """Return the revision of the blueprint that each site was told."""
    return {site: one["spec"]["upstream"]["revision"] for site, one in variants(place).items()}


def reached(place: Place, phase: str, wave: str | None = None) -> Json:
    """Wait until the rollout is in a phase (and wave)."""

    def check() -> Json:
        found = rollout_of(place)
        assert found.get("phase") == phase, found
        assert wave is None or found.get("wave") == wave, found
        return found

    return eventually(check, timeout=LONG)


def has(found: object, expected: object) -> None:
    assert found == expected


def draft(site: str, number: int = 1) -> str:
    return f"{site}.foo.packagevariant-{number}"


# --- rolling --------------------------------------------------------------------------------------------


def test_so_many_at_a_time_each_until_a_person_has_published_it(running: Approvals) -> None:
    place = running.place
    add_set(place, {"strategy": "Rolling", "maxInFlight": 2, "settleOn": "Published"})
    eventually(lambda: has(set(variants(place)), set(SITES[:2])), timeout=LONG)
    for site in SITES[:2]:
        running.becomes(draft(site), "Draft")
    time.sleep(SETTLES)
    assert set(variants(place)) == set(SITES[:2])
    told = rollout_of(place)
    assert (told["phase"], told["outdated"], told["inFlight"]) == ("Progressing", 2, 2)

    eventually(lambda: _approve(place, draft(SITES[0])))
    eventually(lambda: has(set(variants(place)), set(SITES[:3])), timeout=LONG)
    for site in SITES[1:]:
        eventually(lambda site=site: _approve(place, draft(site)), timeout=LONG)  # type: ignore[misc]
    done = reached(place, "Complete")
    assert (done["settled"], done["outdated"], done["inFlight"], done["failed"]) == (4, 0, 0, 0)


def test_a_failure_pauses_and_a_correction_goes_to_what_failed_first(running: Approvals) -> None:
    place = running.place
    broken = {"pipeline": {"mutators": [NO_FUNCTION]}}
    add_set(place, {"strategy": "Rolling", "maxInFlight": 1}, broken)
    paused = reached(place, "Paused")
    assert (paused["failed"], paused["outdated"]) == (1, 3)
    assert "1 of 4 variants failed" in paused["message"]
    assert set(variants(place)) == {SITES[0]}

    target = {"repositorySelector": {"matchLabels": {"site": "yes"}}, "template": {"labels": {"fixed": "yes"}}}
    change_set(place, {"spec": {"targets": [target]}})
    done = reached(place, "Complete")
    assert done["changeId"] != paused["changeId"]
    assert done["settled"] == len(SITES)


def test_a_rollback_may_be_faster(running: Approvals) -> None:
    """Nobody publishes any more, so that one at a time would never get further than the first."""
    place = running.place
    place.new_upstream(2)
    rollout = {"strategy": "Rolling", "maxInFlight": 1, "rollback": {"maxInFlight": "100%"}, "settleOn": "Published"}
    add_set(place, rollout, {"approval": BOTH}, revision=2)
    reached(place, "Complete")
    target = {"repositorySelector": {"matchLabels": {"site": "yes"}}}
    change_set(place, {"spec": {"upstream": {"revision": 1}, "targets": [target]}})
    eventually(lambda: has(sources(place), dict.fromkeys(SITES, 1)), timeout=LONG)
    eventually(lambda: has(rollout_of(place).get("rollback"), True))
    for site in SITES:
        running.becomes(draft(site, 2), "Draft")
    told = rollout_of(place)
    assert (told["inFlight"], told["settled"]) == (len(SITES), 0)


def test_a_site_that_leaves_goes_when_the_others_are_done(running: Approvals) -> None:
    """And one whose variant a person has paused is neither changed nor waited for."""
    place = running.place
    add_set(place, {"strategy": "Rolling", "maxInFlight": 4, "settleOn": "Published"}, {"approval": BOTH}, revision=1)
    reached(place, "Complete")
    paused, leaving = SITES[1], SITES[3]
    place.patch_variant(
        {"metadata": {"annotations": {"config.porch.kpt.dev/paused": "true"}}},
        variants(place)[paused]["metadata"]["name"],
    )
    change_set(place, {"spec": {"targets": [{"repositorySelector": {"matchLabels": {"site": "yes"}}}]}})
    place.new_upstream(2)
    change_set(place, {"spec": {"upstream": {"revision": 2}}})
    place.patch(CONFIG, "repositories", leaving, {"metadata": {"labels": {"site": "no"}}})
    for site in (SITES[0], SITES[2]):
        running.becomes(draft(site, 2), "Draft")
    eventually(lambda: has(rollout_of(place).get("message"), "deletions (1) wait until all other variants are settled"))
    assert set(variants(place)) == set(SITES)
    for site in (SITES[0], SITES[2]):
        eventually(lambda site=site: _approve(place, draft(site, 2)), timeout=LONG)  # type: ignore[misc]
    eventually(lambda: has(set(variants(place)), {*SITES} - {leaving}), timeout=LONG)
    assert sources(place) == {SITES[0]: 2, SITES[1]: 1, SITES[2]: 2}
    reached(place, "Complete")


# --- waves -----------------------------------------------------------------------------------------------


def test_waves_follow_a_blueprint_gate_by_gate_without_a_person_publishing(running: Approvals) -> None:
    """The canary first, a person says go, then the others; and so again for the next revision of the blueprint."""
    place = running.place
    canary = {
        "name": "canary",
        "match": "repository.labels['tier'] == 'canary'",
        "gate": {"manual": True, "soak": "1s"},
    }
    add_set(
        place,
        {"strategy": "Waves", "maxInFlight": 4, "settleOn": "Published", "waves": [canary, {"name": "rest"}]},
        {"approval": BOTH},
    )
    first = reached(place, "Waiting", "canary")
    running.becomes(draft(SITES[0]), "Published")
    assert set(variants(place)) == {SITES[0]}
    assert first["waves"][0]["settled"] == 1
    eventually(lambda: has(f"canary@{first['changeId']}" in rollout_of(place)["message"], True))

    change_set(place, {"metadata": {"annotations": {APPROVE: f"canary@{first['changeId']}"}}})
    reached(place, "Complete")
    for site in SITES:
        running.becomes(draft(site), "Published")
    assert sources(place) == dict.fromkeys(SITES, 1)

    place.new_upstream(2)
    second = reached(place, "Waiting", "canary")
    assert second["changeId"] != first["changeId"]
    running.becomes(draft(SITES[0], 2), "Published")
    time.sleep(SETTLES)
    assert sources(place) == {**dict.fromkeys(SITES, 1), SITES[0]: 2}, "a floating source moves nobody by itself"
    change_set(place, {"metadata": {"annotations": {APPROVE: f"canary@{second['changeId']}"}}})
    reached(place, "Complete")
    for site in SITES:
        running.becomes(draft(site, 2), "Published")


def test_controllers_that_are_killed_go_on_where_the_rollout_was(running: Approvals) -> None:
    """At no time are more in flight than allowed, and no wave begins too early."""
    place = running.place
    canary = {"name": "canary", "match": "repository.labels['tier'] == 'canary'"}
    add_set(
        place,
        {"strategy": "Waves", "maxInFlight": 1, "settleOn": "Published", "waves": [canary]},
        {"approval": BOTH},
    )
    deadline = time.monotonic() + LONG
    kills = 0
    while rollout_of(place).get("phase") != "Complete":
        assert time.monotonic() < deadline, rollout_of(place)
        if len(variants(place)) > kills and kills < 3:
            kills += 1
            running.variants.kill()
            running.variants.start()
        _at_most_one_unpublished(place)
    assert kills == 3
    assert all(place.revisions_of("foo", site) == {"packagevariant-1": "Published"} for site in SITES)


def _at_most_one_unpublished(place: Place) -> None:
    published = {
        one["spec"]["repository"] for one in place.porch.revisions("spec.lifecycle=Published,spec.packageName=foo")
    }
    begun = set(variants(place))
    assert len(begun - published) <= 1
    assert begun <= {SITES[0]} or SITES[0] in published


def _approve(place: Place, name: str) -> None:
    body = place.porch.revision(name)
    assert body.code == 200, name
    if body.object["spec"]["lifecycle"] == "Draft":
        assert place.porch.propose(name).code == 200
    assert place.porch.approve(name).code == 200
