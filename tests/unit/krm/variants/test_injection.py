"""Configuration from the cluster in packages: ``variants.md`` 5.5."""

from typing import Any

import pytest
from mutation_cases import HEAD, NAMED, cases, golden_ids, listings, numbered, table, variant

from krm.variants.mutation import MutationError, check_upstream, injection_points, mutate
from krm.variants.variant import Variant

Json = dict[str, Any]

INJECTIONS = table("injection")
FAILING = [row for row in INJECTIONS if "error" in row]
PASSING = [row for row in INJECTIONS if "error" not in row]


def files_of(case: Json) -> dict[str, str]:
    return {"Kptfile": HEAD + case.get("kptfile", ""), **case["files"]}


def variant_of(case: Json) -> Variant:
    return variant(injectors=case.get("injectors"), pipeline=case.get("pipeline"))


def test_every_golden_case_has_a_row() -> None:
    assert golden_ids(INJECTIONS) == numbered("I", 24)


@pytest.mark.parametrize("case", cases(PASSING))
def test_configuration_is_copied_into_the_points_of_a_package(case: Json) -> None:
    files, pv, cluster = files_of(case), variant_of(case), listings(case.get("cluster", ()))
    kptfile = {"Kptfile": HEAD + case["kptfile after"]} if "kptfile after" in case else {}
    wanted = {**files, **case.get("changed", {}), **kptfile}

    once = mutate(pv, NAMED, files, cluster)
    twice = mutate(pv, NAMED, once.resources, cluster)

    assert once.resources == wanted
    assert twice.resources == wanted
    assert twice.sources == once.sources


@pytest.mark.parametrize("case", cases(row for row in PASSING if "points" in row))
def test_points_are_found_where_they_are(case: Json) -> None:
    files = files_of(case)

    found = injection_points(files)

    shown = [{"file": one.file, "required": one.required, "type": one.condition_type} for one in found]
    assert shown == case["points"]
    assert check_upstream(variant_of(case), NAMED, files) == found
    assert list(mutate(variant_of(case), NAMED, files, listings(case.get("cluster", ()))).points) == [
        *injection_points(files)
    ]


@pytest.mark.parametrize("case", cases(FAILING))
def test_points_that_are_none_or_ambiguous_are_told_before_and_after_a_draft_is_made(case: Json) -> None:
    for way in (
        lambda: mutate(variant_of(case), NAMED, files_of(case), listings()),
        lambda: check_upstream(variant_of(case), NAMED, files_of(case)),
    ):
        with pytest.raises(MutationError) as caught:
            way()
        assert str(caught.value) == case["error"]


def test_a_source_says_what_was_copied_or_that_nothing_was() -> None:
    files = {"Kptfile": HEAD}
    for kind, name in (("Team", "team"), ("Team", "other"), ("Secret", "none")):
        files[f"{name}.yaml"] = (
            f"apiVersion: {'hr.example.com/v1alpha1' if kind == 'Team' else 'v1'}\nkind: {kind}\n"
            f"metadata: {{name: {name}, annotations: {{kpt.dev/config-injection: optional}}}}\n"
        )

    sources = mutate(variant(injectors=[{"name": "prod-team"}]), NAMED, files, listings()).sources

    assert [(one.point_type, one.api_version, one.kind, one.name, one.value) for one in sources] == [
        ("config.injection.Secret.none", "v1", "Secret", "", None),
        ("config.injection.Team.other", "hr.example.com/v1alpha1", "Team", "prod-team", {"chargeCode": "ef"}),
        ("config.injection.Team.team", "hr.example.com/v1alpha1", "Team", "prod-team", {"chargeCode": "ef"}),
    ]


def test_what_could_not_be_read_again_is_not_copied() -> None:
    deep: Any = "bottom"
    for _ in range(300):
        deep = {"a": deep}
    point = "apiVersion: e.com/v1\nkind: A\nmetadata: {name: a, annotations: {kpt.dev/config-injection: required}}\n"
    files = {"Kptfile": HEAD, "a.yaml": point}
    cluster = listings(
        [{"apiVersion": "e.com/v1", "kind": "A", "objects": [{"metadata": {"name": "x"}, "spec": deep}]}]
    )

    mutation = mutate(variant(injectors=[{"name": "x"}]), NAMED, files, cluster)

    assert mutation.resources["a.yaml"] == point
    assert 'message: field "spec" of resource "x" is nested deeper than 255 levels' in mutation.resources["Kptfile"]
    assert mutation.sources[0].value is None


def points_of(count: int) -> dict[str, str]:
    """Return a package with so many points, all for Teams."""
    point = "apiVersion: hr.example.com/v1alpha1\nkind: Team\nmetadata: {{name: t{}, annotations: {{kpt.dev/config-injection: optional}}}}\n"
    return {"Kptfile": HEAD, "points.yaml": "---\n".join(map(point.format, range(count)))}


def test_a_package_has_so_many_points_and_no_more() -> None:
    assert len(injection_points(points_of(1000))) == 1000
    with pytest.raises(MutationError, match="the package has 1001 injection points, more than 1000"):
        check_upstream(variant(), NAMED, points_of(1001))


def test_a_small_package_cannot_ask_for_endless_copies() -> None:
    large = {"metadata": {"name": "x"}, "spec": {"text": "x" * (1 << 20)}}
    cluster = listings([{"apiVersion": "hr.example.com/v1alpha1", "kind": "Team", "objects": [large]}])
    pv = variant(injectors=[{"name": "x"}])

    assert len(mutate(pv, NAMED, points_of(3), cluster).resources["points.yaml"]) > 3 << 20
    with pytest.raises(MutationError, match=r"^points\.yaml: what is injected into the package is larger than 16 MiB$"):
        mutate(pv, NAMED, points_of(16), cluster)


def test_many_problems_are_told_in_few_words() -> None:
    bad = "apiVersion: v1\nkind: A\nmetadata: {name: b, annotations: {kpt.dev/config-injection: bad}}\n"

    with pytest.raises(MutationError) as caught:
        injection_points({"many.yaml": "---\n".join([bad] * 500)})

    assert str(caught.value).endswith(", and 979 more")
    assert len(str(caught.value)) < 3000
