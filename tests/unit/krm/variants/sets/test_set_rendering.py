"""What targets come to: templates, expressions, errors with their places (5.12; C-03, C-04, C-21, C-25 to C-27, C-36, C-39)."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from set_tables import cases, package_variant_set, repositories, selected, table, upstream

from krm.variants import validation as variant_validation
from krm.variants.revisions import Revision
from krm.variants.sets.rendering import MOST_SAID, Rendered, render
from krm.variants.sets.specs import spec_digest
from krm.variants.sets.targets import Context
from krm.variants.sets.validation import problems

Json = dict[str, Any]
DEFAULTS = table("rendering")["defaults"]
UPSTREAM = {"repo": "up-repo", "package": "up-pkg", "revision": 2}


def rendered(case: Json) -> Rendered:
    template, (repo, package) = case.get("template"), case.get("context") or DEFAULTS["context"]
    written = case.get("object")
    found = written and selected(
        written["name"],
        written.get("labels"),
        ("x/v1", written.get("kind", "X")),
        annotations=written.get("annotations"),
    )
    target: Json = {"repositories": [{"name": repo}], "template": template}
    body = package_variant_set({"upstream": UPSTREAM, "targets": [target]})
    if "errors" not in case and "'repository'" not in case.get("error", ""):
        assert problems(body) == []
    known = {**(case.get("repos") or DEFAULTS["repos"]), **({} if "error" in case else {repo: case_labels(case, repo)})}
    (one,) = render(
        body,
        upstream(**{**DEFAULTS["upstream"], **case.get("upstream", {})}),
        [Context(0, template, repo, package, found)],
        repositories(known),
    )
    return one


def case_labels(case: Json, repo: str) -> Json:
    labels: Json = (case.get("repos") or DEFAULTS["repos"]).get(repo, {})
    return labels


def with_expression(case: Json, expression: str) -> Json:
    return {**case, "template": {"annotationExprs": [{"key": "value", "valueExpr": expression}]}}


@pytest.mark.parametrize("case", cases("rendering", "golden", "shapes"))
def test_specs(case: Json) -> None:
    one = rendered(case)

    assert one.error == ""
    assert one.spec == {"upstream": UPSTREAM, **case["spec"]}
    assert one.digest == spec_digest(one.spec)
    assert (one.repo, one.package) == tuple(case["spec"]["downstream"].values())
    assert variant_validation.problems({"spec": one.spec}) == []


@pytest.mark.parametrize("case", cases("rendering", "expressions"))
def test_expressions(case: Json) -> None:
    for expression, value in case.get("values", {}).items():
        one = rendered(with_expression(case, expression))

        assert one.error == ""
        assert one.spec is not None
        assert one.spec["annotations"] == {"value": value}
    for expression, message in case.get("errors", {}).items():
        one = rendered(with_expression(case, expression))

        assert one.spec is None
        assert one.error.startswith("spec.targets[0] (my-repo-1/p): template.annotationExprs[0].valueExpr: ")
        assert message in one.error
    if "spec" in case:
        assert rendered(case).spec == {"upstream": UPSTREAM, **case["spec"]}


@pytest.mark.parametrize("case", cases("rendering", "failures"))
def test_failures(case: Json) -> None:
    one = rendered(case)

    assert one.error == case["error"]
    assert one.spec is None
    assert one.located is case.get("located", True)


@pytest.mark.parametrize("written", ["v1", "1", 1, -1, "latest", "v2.0.0"])
def test_the_revision_is_kept_as_it_is_written(written: Any) -> None:
    source = {"repo": "up-repo", "package": "up-pkg", "revision": written}
    body = package_variant_set({"upstream": source, "targets": [{"repositories": [{"name": "a"}]}]})

    (one,) = render(body, upstream(), [Context(0, None, "a", "b", None)], repositories({"a": {}}))

    assert one.spec is not None
    assert one.spec["upstream"] == source


def test_an_administrator_can_let_expressions_see_which_revision_the_upstream_is() -> None:
    written = "upstream.repo + '-' + upstream.package + '-' + string(upstream.revision)"
    template = {"downstream": {"packageExpr": written}}
    body = package_variant_set(
        {"upstream": UPSTREAM, "targets": [{"repositories": [{"name": "a"}], "template": template}]}
    )
    source = Revision.of(
        {
            "metadata": {"namespace": "default", "name": "r.p.w"},
            "spec": {"repository": "r", "packageName": "p", "workspaceName": "w", "revision": 3},
        }
    )
    context, known = Context(0, template, "a", "b", None), repositories({"a": {}})

    (hidden,) = render(body, source, [context], known)
    (shown,) = render(body, source, [context], known, upstream_identity=True)

    assert hidden.error.endswith("template.downstream.packageExpr: no such key: repo")
    assert shown.package == "r-p-3"


def test_a_target_with_everything_wrong_does_not_say_it_all() -> None:
    template = {"annotations": {f"{number}/{'x' * 60}!": "v" for number in range(100)}}
    body = package_variant_set({"upstream": UPSTREAM, "targets": [{"repositorySelector": {}, "template": template}]})
    known = repositories({"a": {}})

    (one,) = render(body, upstream(), [Context(0, template, "a", "p", known["a"])], known)

    assert one.error.startswith("spec.targets[0] (a/p): spec.annotations: ")
    assert len(one.error) <= MOST_SAID + 1


def test_one_target_that_fails_hides_no_other() -> None:
    template = {"labelExprs": [{"key": "zone", "valueExpr": "repository.labels.zone"}]}
    body = package_variant_set({"upstream": UPSTREAM, "targets": [{"repositorySelector": {}, "template": template}]})
    known = repositories({"a": {"zone": "1"}, "b": {}, "c": {"zone": "1"}, "d": {"zone": ""}})

    found = render(body, upstream(), [Context(0, template, name, "p", one) for name, one in known.items()], known)

    assert [one.spec and one.spec["labels"]["zone"] for one in found] == ["1", None, "1", ""]
    assert found[1].error == "spec.targets[0] (b/p): template.labelExprs[0].valueExpr: no such key: zone"


def test_the_wave_of_a_target_is_the_first_that_matches() -> None:
    waves = [
        {"name": "canary", "match": "target.labels.ring == '0'"},
        {"name": "west", "match": "repository.name.startsWith('west')"},
    ]
    spec: Json = {"upstream": UPSTREAM, "targets": [{"repositorySelector": {}}]}
    known = repositories(
        {"a": {"ring": "0"}, "west-1": {"ring": "0"}, "west-2": {"ring": "1"}, "z": {"ring": "2"}, "y": {}}
    )
    contexts = [Context(0, None, name, "p", one) for name, one in known.items()]

    def places(rollout: Json) -> list[int]:
        return [
            one.wave for one in render(package_variant_set({**spec, "rollout": rollout}), upstream(), contexts, known)
        ]

    assert places({"strategy": "Waves", "waves": waves}) == [0, 0, 1, -1, -1]
    assert places({"strategy": "Waves", "waves": [{"name": "all"}, *waves]}) == [0, 0, 0, 0, 0]
    assert places({"strategy": "Rolling", "waves": waves}) == [-1] * 5


@pytest.mark.parametrize(
    ("match", "message"),
    [
        ("target.labels.ring", "rollout.waves[0].match: expression returned non-boolean value: 0"),
        ("target.labels.none == '0'", "rollout.waves[0].match: no such key: none"),
        ("nobody", "rollout.waves[0].match: line 1 column 1: undeclared reference to 'nobody' (in container '')"),
    ],
)
def test_a_wave_that_cannot_be_found_out_fails_its_target(match: str, message: str) -> None:
    rollout = {"strategy": "Waves", "waves": [{"name": "a", "match": match}]}
    body = package_variant_set({"upstream": UPSTREAM, "targets": [{"repositorySelector": {}}], "rollout": rollout})
    known = repositories({"a": {"ring": "0"}})

    (one,) = render(body, upstream(), [Context(0, None, "a", "p", known["a"])], known)

    assert one.error == f"spec.targets[0] (a/p): {message}"
    assert one.located


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (
            {"downstream": {"repoExpr": "target.labels.x", "packageExpr": "target.labels.y"}},
            "spec.downstream must differ",
        ),
        (
            {"labelExprs": [{"keyExpr": "target.labels.x", "value": "v"}]},
            'must not contain the key "kpt.dev/latest-revision"',
        ),
        ({"labelExprs": [{"key": "a", "valueExpr": "target.labels.y"}]}, "spec.labels: "),
        ({"labelExprs": [{"keyExpr": "target.labels.y", "value": "v"}]}, "spec.labels: "),
        ({"annotationExprs": [{"keyExpr": "target.labels.y", "value": "v"}]}, "spec.annotations: "),
        (
            {"packageContext": {"dataExprs": [{"keyExpr": "target.labels.z", "value": "v"}]}},
            "spec.packageContext.data: ",
        ),
        ({"packageContext": {"removeKeyExprs": ["target.labels.z"]}}, "spec.packageContext.removeKeys: "),
        ({"injectors": [{"nameExpr": "target.labels.empty"}]}, "spec.injectors[0].name must not be empty"),
    ],
)
def test_what_is_wrong_is_found_after_a_target_of_the_same_template_was_right(template: Json, message: str) -> None:
    """Once one spec of a template was right, only what its expressions give is looked at."""
    good = {"x": "my-repo", "y": "good", "z": "key", "empty": "name"}
    bad = {"x": "kpt.dev/latest-revision", "y": "up/pkg!", "z": "name", "empty": ""}
    if "downstream" in template:
        bad = {"x": "up-repo", "y": "up-pkg"}
    known = repositories({"a": good, "b": bad, "c": good, "my-repo": {}, "up-repo": {}})
    body = package_variant_set({"upstream": UPSTREAM, "targets": [{"repositorySelector": {}, "template": template}]})

    found = render(body, upstream(), [Context(0, template, name, "p", known[name]) for name in "abc"], known)

    assert [one.spec is None for one in found] == [False, True, False]
    assert message in found[1].error


label = st.sampled_from(["", "a", "b", "A-b", "x" * 63])
labels = st.dictionaries(st.sampled_from(["a", "b", "c"]), label, max_size=3)
expression = st.sampled_from(
    [
        "target.labels.a",
        "repository.labels['b'] + target.name",
        "has(target.labels.c) ? target.labels.c : repoDefault",
        "'b'",
        "target.labels.map(k, k).join()",
        "upstream.labels[?'a'].orValue('none')",
        "target.labels.a.b",
        "string(size(target.labels))",
        "packageDefault.upperAscii()",
    ]
)
map_expressions = st.lists(
    st.fixed_dictionaries({"keyExpr": expression, "valueExpr": expression})
    | st.fixed_dictionaries({"key": st.sampled_from(["a", "b"]), "valueExpr": expression}),
    max_size=2,
)
templates = st.fixed_dictionaries(
    {},
    optional={
        "downstream": st.fixed_dictionaries({}, optional={"repoExpr": expression, "packageExpr": expression}),
        "labels": labels,
        "labelExprs": map_expressions,
        "annotationExprs": map_expressions,
        "packageContext": st.fixed_dictionaries(
            {},
            optional={"data": labels, "dataExprs": map_expressions, "removeKeyExprs": st.lists(expression, max_size=2)},
        ),
        "injectors": st.lists(st.fixed_dictionaries({"nameExpr": expression}), max_size=2),
        "pipeline": st.fixed_dictionaries(
            {"mutators": st.lists(st.fixed_dictionaries({"image": st.just("i"), "configMapExprs": map_expressions}))}
        ),
    },
)


@pytest.mark.hypothesis
@settings(deadline=None)
@given(templates, st.lists(labels, min_size=1, max_size=4))
def test_what_targets_share_changes_nothing(template: Json, written: list[Json]) -> None:
    """Results that are remembered, and checks that are left out, are those of a target alone."""
    known = {
        **repositories({f"r{place}": each for place, each in enumerate(written)}),
        **repositories({"a": {}, "b": {}}),
    }
    body = package_variant_set({"upstream": UPSTREAM, "targets": [{"repositorySelector": {}, "template": template}]})
    contexts = [Context(0, template, name, "p", one) for name, one in known.items()]

    together = render(body, upstream(), contexts, known)

    assert together == [render(body, upstream(), [context], known)[0] for context in contexts]
    for one in together:
        assert bool(one.error) is (one.spec is None)
        if one.spec is not None:
            assert variant_validation.problems({"spec": one.spec}) == []
            assert one.digest == spec_digest(one.spec)
