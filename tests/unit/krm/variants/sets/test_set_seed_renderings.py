"""Every PackageVariantSet that the seeds print, as it stands there, and the variants that the text says come of it.

Seed 000 prints six, three of them as fragments that begin with ``spec:`` and are completed by ``WRAPPER``. Where it prints
variants, too, their names are only illustrations (C-23), and ``injectors`` is a mapping there and a list here (C-27). Seed 001
prints targets and template fields in a notation of its own, written here as YAML: the same words, first letters small.
"""

from typing import Any

import pytest
import yaml
from set_tables import package_variant_set, repositories, selected, upstream

from krm.variants.sets.naming import identifier
from krm.variants.sets.plan import plan
from krm.variants.sets.rendering import Rendered, render
from krm.variants.sets.specs import spec_digest
from krm.variants.sets.targets import SelectedObject, unroll
from krm.variants.sets.validation import problems

Json = dict[str, Any]

WRAPPER = """apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata:
  namespace: default
  name: example
"""
REPOSITORIES = {
    "cluster-01": {"region": "useast1", "env": "prod", "org": "hr"},
    "cluster-02": {"region": "uswest1", "env": "prod", "org": "finance"},
    "cluster-03": {"region": "useast2", "env": "prod", "org": "hr"},
    "cluster-04": {"region": "uswest1", "env": "prod", "org": "hr"},
}
LIST = """apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata:
  namespace: default
  name: example
spec:
  upstream:
    repo: example-repo
    package: foo
    revision: v1
  targets:
  - repositories:
    - name: cluster-01
    - name: cluster-02
    - name: cluster-03
      packageNames:
      - foo-a
      - foo-b
      - foo-c
    - name: cluster-04
      packageNames:
      - foo-a
      - foo-b
"""
SELECTORS = """spec:
  upstream:
    repo: example-repo
    package: foo
    revision: v1
  targets:
  - repositorySelector:
      matchLabels:
        env: prod
        org: hr
  - repositorySelector:
      matchLabels:
        region: uswest1
      packageNames:
      - foo-a
      - foo-b
      - foo-c
"""
OBJECTS = """spec:
  upstream:
    repo: example-repo
    package: foo
    revision: v1
  targets:
  - objectSelector:
      apiVersion: krm-platform.bigco.com/v1
      kind: Team
      matchLabels:
        org: hr
        role: dev
"""
NAMESPACES = """apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata:
  namespace: default
  name: example
spec:
  upstream:
    repo: platform-catalog
    package: base-ns
    revision: v1
  targets:
  - repositories:
    - name: cluster-01
      packageNames:
      - ns-1
      - ns-2
      - ns-3
"""
LABELLED = """apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata:
  namespace: default
  name: example
spec:
  upstream:
    repo: platform-catalog
    package: base-ns
    revision: v1
  targets:
  - repositories:
    - name: cluster-01
      packageNames:
      - ns-1
      - ns-2
      - ns-3
    template:
      labels:
        package-type: namespace
        org: hr
"""
LABELLED_VARIANTS = """apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata:
  namespace: default
  name: example-aaaa
spec:
  upstream:
    repo: platform-catalog
    package: base-ns
    revision: v1
  downstream:
    repo: cluster-01
    package: ns-1
  labels:
    package-type: namespace
    org: hr
---
apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata:
  namespace: default
  name: example-aaab
spec:
  upstream:
    repo: platform-catalog
    package: base-ns
    revision: v1
  downstream:
    repo: cluster-01
    package: ns-2
  labels:
    package-type: namespace
    org: hr
---

apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata:
  namespace: default
  name: example-aaac
spec:
  upstream:
    repo: platform-catalog
    package: base-ns
    revision: v1
  downstream:
    repo: cluster-01
    package: ns-3
  labels:
    package-type: namespace
    org: hr
"""
EXPRESSIONS = """spec:
  upstream:
    repo: example-repo
    package: foo
    revision: v1
  targets:
  - repositorySelector:
      matchLabels:
        env: prod
        org: hr
    template:
      labelExprs:
        key: org
        valueExpr: "repository.labels['org']"
      injectorExprs:
        - nameExpr: "repository.labels['region'] + '-endpoints'"
"""
EXPRESSIONS_VARIANTS = """apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata:
  namespace: default
  name: example-aaaa
spec:
  upstream:
    repo: example-repo
    package: foo
    revision: v1
  downstream:
    repo: cluster-01
    package: foo
  labels:
    org: hr
  injectors:
    name: useast1-endpoints
---
apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata:
  namespace: default
  name: example-aaab
spec:
  upstream:
    repo: example-repo
    package: foo
    revision: v1
  downstream:
    repo: cluster-03
    package: foo
  labels:
    org: hr
  injectors:
    name: useast2-endpoints
---
apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata:
  namespace: default
  name: example-aaac
spec:
  upstream:
    repo: example-repo
    package: foo
    revision: v1
  downstream:
    repo: cluster-04
    package: foo
  labels:
    org: hr
  injectors:
    name: uswest1-endpoints
"""
TEAM = ("krm-platform.bigco.com/v1", "Team")
TEAMS = [
    selected("dev-team-alpha", {"org": "hr", "role": "dev"}, TEAM),
    selected("dev-team-beta", {"org": "hr", "role": "dev"}, TEAM),
    selected("prod-team", {"org": "hr", "role": "prod"}, TEAM),
]


def loaded(text: str) -> Json:
    body: Json = yaml.safe_load(text if text.startswith("apiVersion") else WRAPPER + text)
    assert problems(body) == []
    return body


def rendered(body: Json, known: dict[str, SelectedObject], objects: Any = ()) -> list[Rendered]:
    found = unroll(body["spec"], "default", list(known.values()), dict(objects))
    return render(body, upstream(labels={"vendor": "bigco.com"}), found.contexts, known)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            LIST,
            "cluster-01/foo cluster-02/foo cluster-03/foo-a cluster-03/foo-b cluster-03/foo-c cluster-04/foo-a cluster-04/foo-b",
            id="seed 000, a list of repositories and package names",
        ),
        pytest.param(
            SELECTORS,
            "cluster-01/foo cluster-03/foo cluster-04/foo cluster-02/foo-a cluster-02/foo-b cluster-02/foo-c "
            "cluster-04/foo-a cluster-04/foo-b cluster-04/foo-c",
            id="seed 000, selectors of repositories",
        ),
        pytest.param(OBJECTS, "dev-team-alpha/foo dev-team-beta/foo", id="seed 000, any objects"),
        pytest.param(NAMESPACES, "cluster-01/ns-1 cluster-01/ns-2 cluster-01/ns-3", id="seed 000, three namespaces"),
        pytest.param(LABELLED, "cluster-01/ns-1 cluster-01/ns-2 cluster-01/ns-3", id="seed 000, with labels"),
        pytest.param(EXPRESSIONS, "cluster-01/foo cluster-03/foo cluster-04/foo", id="seed 000, with expressions"),
    ],
)
def test_sets_of_seed_000_give_the_packages_of_their_tables(text: str, expected: str) -> None:
    known = repositories({**REPOSITORIES, **{team.name: {} for team in TEAMS}})
    body = loaded(text)

    found = rendered(body, known, [(TEAM, TEAMS)])

    assert " ".join(f"{one.repo}/{one.package}" for one in found) == expected
    assert all(one.spec is not None and one.spec["upstream"] == body["spec"]["upstream"] for one in found)
    created = {name for name, _ in plan(body, found, []).creates}
    assert created == {identifier("example", (one.repo, one.package)) for one in found}


@pytest.mark.parametrize(("text", "variants"), [(LABELLED, LABELLED_VARIANTS), (EXPRESSIONS, EXPRESSIONS_VARIANTS)])
def test_sets_of_seed_000_give_the_variants_that_it_prints(text: str, variants: str) -> None:
    printed = [one["spec"] for one in yaml.safe_load_all(variants)]

    found = [one.spec for one in rendered(loaded(text), repositories(REPOSITORIES))]

    assert [spec_digest(one) for one in found if one] == [spec_digest(one) for one in printed]
    for one in printed:
        if isinstance(one.get("injectors"), dict):
            one["injectors"] = [one["injectors"]]
    assert found == printed


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        pytest.param(
            {
                "repositories": [
                    {"name": "repo-1", "packageNames": ["pkg-a", "pkg-b"]},
                    {"name": "repo-2", "packageNames": ["pkg-c"]},
                ]
            },
            ["repo-1/pkg-a", "repo-1/pkg-b", "repo-2/pkg-c"],
            id="seed 001, a list",
        ),
        pytest.param(
            {"repositorySelector": {"matchLabels": {"env": "prod"}}}, ["repo-2/foo"], id="seed 001, repositories"
        ),
        pytest.param(
            {
                "objectSelector": {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "labelSelector": {"matchLabels": {"cluster": "edge"}},
                }
            },
            ["repo-1/foo"],
            id="seed 001, any objects",
        ),
    ],
)
def test_targets_of_seed_001(target: Json, expected: list[str]) -> None:
    body = package_variant_set(
        {"upstream": {"repo": "catalog", "package": "foo", "workspaceName": "v1"}, "targets": [target]}, "my-pvs"
    )
    assert problems(body) == []
    known = repositories({"repo-1": {}, "repo-2": {"env": "prod"}})
    maps = [selected("repo-1", {"cluster": "edge"}, ("v1", "ConfigMap")), selected("repo-2", kind=("v1", "ConfigMap"))]

    found = rendered(body, known, [(("v1", "ConfigMap"), maps)])

    assert [f"{one.repo}/{one.package}" for one in found] == expected


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ({"downstream": {"repo": "prod-repo"}}, {"downstream": {"repo": "prod-repo", "package": "foo"}}),
        (
            {"downstream": {"repoExpr": "target.labels.environment + '-repo'"}},
            {"downstream": {"repo": "prod-repo", "package": "foo"}},
        ),
        ({"downstream": {"package": "my-package"}}, {"downstream": {"repo": "edge1", "package": "my-package"}}),
        ({"labels": {"env": "prod"}}, {"labels": {"env": "prod"}}),
        ({"labelExprs": [{"keyExpr": "'cluster'", "valueExpr": "target.name"}]}, {"labels": {"cluster": "edge1"}}),
        ({"packageContext": {"data": {"key": "value"}}}, {"packageContext": {"data": {"key": "value"}}}),
        (
            {"packageContext": {"dataExprs": [{"keyExpr": "'region'", "valueExpr": "repository.labels.region"}]}},
            {"packageContext": {"data": {"region": "us-east1"}}},
        ),
        (
            {"pipeline": {"mutators": [{"image": "set-namespace", "configMap": {"namespace": "prod"}}]}},
            {"pipeline": {"mutators": [{"image": "set-namespace", "configMap": {"namespace": "prod"}}]}},
        ),
        (
            {
                "pipeline": {
                    "mutators": [
                        {
                            "image": "set-namespace",
                            "configMapExprs": [{"keyExpr": "'namespace'", "valueExpr": "target.labels.ns"}],
                        }
                    ]
                }
            },
            {"pipeline": {"mutators": [{"image": "set-namespace", "configMap": {"namespace": "blue"}}]}},
        ),
    ],
)
def test_templates_of_seed_001(template: Json, expected: Json) -> None:
    body = loaded_template(template)
    known = repositories({"edge1": {"environment": "prod", "ns": "blue", "region": "us-east1"}, "prod-repo": {}})

    (one,) = [one for one in rendered(body, known) if one.package]

    assert one.spec is not None
    assert {name: one.spec[name] for name in expected} == expected


def test_the_package_name_of_seed_001_has_dots_today() -> None:
    """``upstream.name`` was the package's name once; a PackageRevision's has dots, which no package name has (C-36)."""
    body = loaded_template({"downstream": {"packageExpr": "upstream.name + '-' + target.name"}})

    (one,) = rendered(body, repositories({"edge1": {"ns": "blue"}}))

    assert one.error == (
        'spec.targets[0] (edge1/example-repo.foo.v1-edge1): package name "example-repo.foo.v1-edge1" is invalid: '
        "must not contain dots"
    )


def loaded_template(template: Json) -> Json:
    target = {"repositorySelector": {"matchLabels": {"ns": "blue"}}, "template": template}
    body = package_variant_set(
        {"upstream": {"repo": "example-repo", "package": "foo", "revision": 1}, "targets": [target]}, "my-pvs"
    )
    assert problems(body) == []
    return body
