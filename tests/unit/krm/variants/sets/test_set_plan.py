"""What is written so that a set's variants are what they should be (3.5, 3.6, 5.11, 6.6, 6.7, 6.11; C-27, C-34)."""

import re
from dataclasses import replace
from typing import Any

import pytest
from set_tables import cases, package_variant_set

from krm.variants.sets.guards import GuardDefaults
from krm.variants.sets.plan import NO_GUARDS, Existing, Plan, paused, plan
from krm.variants.sets.rendering import Rendered
from krm.variants.sets.specs import TOO_DEEP, spec_digest
from krm.variants.sets.validation import problems

Json = dict[str, Any]
UID = "uid-set"
UPSTREAM = {"repo": "catalog", "package": "foo", "revision": 1}


def spec_of(repo: str, package: str, label: str) -> Json:
    return {"upstream": UPSTREAM, "downstream": {"repo": repo, "package": package}, "labels": {"is": label}}


def wanted(case: Json) -> list[Rendered]:
    found = []
    for place, one in enumerate(case["wanted"]):
        if isinstance(one, dict):
            repo, package = one["at"]
            located = not one.get("unknown")
            found.append(Rendered(place, repo, package, None, one["failed"], located=located))
        else:
            repo, package, label = (re.sub(r"ox50", "o" * 50, part) for part in one)
            spec = spec_of(repo, package, label)
            found.append(Rendered(place, repo, package, spec, digest=spec_digest(spec)))
    return found


def variant(name: str, repo: str, package: str, label: str, *words: str) -> Json:
    labels = {"config.porch.kpt.dev/packagevariantset": "uid-other" if "foreign" in words else UID}
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if "terminating" in words else {}
    return {"metadata": {"name": name, "labels": labels, **going}, "spec": spec_of(repo, package, label)}


def planned(case: Json) -> Plan:
    spec = {"upstream": UPSTREAM, "targets": [{"repositorySelector": {}}], **case.get("with", {})}
    body = package_variant_set(spec, "my-pvs", generation=7, annotations=case.get("annotations"))
    assert problems(body) == []
    there = [Existing.of(variant(name, *words), UID) for name, words in case.get("there", {}).items()]
    defaults = GuardDefaults(**case["defaults"]) if "defaults" in case else NO_GUARDS
    return plan(body, wanted(case), there, empty=case.get("empty", ()), defaults=defaults)


def writes(asked: Plan) -> list[str]:
    pairs = [(one, spec["downstream"]) for one, spec in asked.updates]
    return [
        *(f"- {one.name}" for one in asked.deletes),
        *(f"~ {one.name} {place['repo']}/{place['package']}" for one, place in pairs),
        *(f"+ {name}" for name, _ in asked.creates),
    ]


@pytest.mark.parametrize("case", cases("plan", "plans"))
def test_plans(case: Json) -> None:
    asked = planned(case)

    assert writes(asked) == case["writes"]
    assert asked.empty is (not case["writes"])
    assert asked.blocked is case.get("blocked", False)
    assert asked.duplicates == case.get("duplicates", "")
    assert asked.guard == case.get("guard", "")
    assert [one.name for one in asked.held] == case.get("held", [])
    assert list(asked.waiting) == case.get("waiting", [])
    assert [f"{one.stage} {one.repo}/{one.package} {one.message}" for one in asked.failures] == case.get("failures", [])
    if not asked.blocked:
        assert [one.name for one in asked.unchanged] == case.get("unchanged", [])


@pytest.mark.parametrize("case", cases("plan", "digests"))
def test_digests_of_specs(case: Json) -> None:
    assert (spec_digest(case["a"]) == spec_digest(case["b"])) is case["same"]


def test_any_spec_that_someone_wrote_has_a_digest() -> None:
    nested: Any = []
    for _ in range(100_000):
        nested = {"a": nested}

    assert spec_digest({"injectors": nested}) == TOO_DEEP
    assert spec_digest({"labels": {"a": "\ud800"}}) == spec_digest({"labels": {"a": "\ud800"}, "pipeline": {}})
    assert spec_digest({"labels": {"a": 2**70}}) != spec_digest({"labels": {"a": 2**70 + 1}})


def test_what_is_there_is_read_from_the_wire() -> None:
    body = variant("a", "r", "p", "x")
    body["metadata"] |= {"uid": "u", "resourceVersion": "5", "generation": 3, "annotations": {"n": "o"}}
    conditions = [{"type": "Stalled", "status": "True", "message": "why"}, {"type": "Ready", "status": "False"}]
    body["status"] = {"observedGeneration": 2, "conditions": conditions}

    one = Existing.of(body, UID, keep_spec=True)

    assert (one.name, one.uid, one.resource_version, one.pair) == ("a", "u", "5", ("r", "p"))
    assert (one.generation, one.observed_generation, one.ready, one.stalled, one.message) == (3, 2, False, True, "why")
    assert one.ours
    assert one.digest == spec_digest(body["spec"])
    assert (one.spec, one.annotations) == (body["spec"], {"n": "o"})
    assert replace(one, spec=None) == Existing.of(body, UID)
    assert not Existing.of(body, "uid-other").ours
    assert not Existing.of({"metadata": {"name": "b"}}, "").ours
    assert Existing.of({"metadata": {"name": "b"}, "spec": None}, UID).pair == ("", "")


def test_the_specs_that_are_written_are_those_that_were_rendered() -> None:
    asked = planned({"wanted": [["r1", "p1", "b"], ["r2", "p2", "b"]], "there": {"one": ["r1", "p1", "a"]}})

    assert [spec for _, spec in (*asked.updates, *asked.creates)] == [
        spec_of("r1", "p1", "b"),
        spec_of("r2", "p2", "b"),
    ]
    assert asked.digests == {
        ("r1", "p1"): spec_digest(spec_of("r1", "p1", "b")),
        ("r2", "p2"): spec_digest(spec_of("r2", "p2", "b")),
    }
    assert asked.waves == {("r1", "p1"): -1, ("r2", "p2"): -1}


@pytest.mark.parametrize(
    ("spec", "annotations", "expected"),
    [
        ({}, None, False),
        ({"suspend": True}, None, True),
        ({"suspend": False}, {"config.porch.kpt.dev/paused": "true"}, True),
        ({}, {"config.porch.kpt.dev/paused": "yes"}, False),
    ],
)
def test_a_paused_set(spec: Json, annotations: Json | None, expected: bool) -> None:
    assert paused(package_variant_set(spec, annotations=annotations)) is expected
