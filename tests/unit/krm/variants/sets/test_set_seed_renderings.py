"""Every PackageVariantSet that the seeds print, and the variants that the text says come of it, rendered.

``tests/e2e/test_set_seed_examples.py`` applies them; both read ``tests/data/variants/seed_examples.yaml``.
"""

from typing import Any

import pytest
import yaml
from seed_examples import (
    CLUSTERS,
    SITE,
    TEAMS,
    blocks,
    package_of,
    printed,
    set_of,
    targets,
    template_target,
    templates,
    text_of,
)
from set_tables import repositories, selected, upstream

from krm.variants.sets.plan import plan
from krm.variants.sets.rendering import Rendered, render
from krm.variants.sets.specs import spec_digest
from krm.variants.sets.targets import SelectedObject, unroll
from krm.variants.sets.validation import problems

Json = dict[str, Any]
TEAM = ("krm-platform.bigco.com/v1", "Team")
MAP = ("v1", "ConfigMap")
FOO = {"repo": "example-repo", "package": "foo", "revision": 1}


def valid(body: Json) -> Json:
    assert problems(body) == []
    return body


def rendered(body: Json, known: dict[str, SelectedObject], objects: Any = ()) -> list[Rendered]:
    found = unroll(body["spec"], "default", list(known.values()), dict(objects))
    return render(body, upstream(labels={"vendor": "bigco.com"}), found.contexts, known)


@pytest.mark.parametrize("example", blocks("set"), ids=lambda one: one["id"])
def test_sets_of_seed_000_give_the_packages_of_their_tables(example: Json) -> None:
    teams = [selected(name, labels, TEAM) for name, labels in TEAMS.items()]
    known = repositories({**CLUSTERS, **{name: {} for name in TEAMS}})
    body = valid(yaml.safe_load(text_of(example)))

    found = rendered(body, known, [(TEAM, teams)])

    assert [f"{one.repo}/{one.package}" for one in found] == list(example["variants"].values())
    assert all(one.spec is not None and one.spec["upstream"] == body["spec"]["upstream"] for one in found)
    assert {name for name, _ in plan(body, found, []).creates} == example["variants"].keys()


@pytest.mark.parametrize("example", [one for one in blocks("set") if "prints" in one], ids=lambda one: one["id"])
def test_sets_of_seed_000_give_the_variants_that_it_prints(example: Json) -> None:
    wanted = [one["spec"] for one in printed(example)]

    found = [one.spec for one in rendered(valid(yaml.safe_load(text_of(example))), repositories(CLUSTERS))]

    assert found == wanted
    assert [spec_digest(one) for one in found if one] == [spec_digest(one) for one in wanted]


@pytest.mark.parametrize("example", targets(), ids=lambda one: one["id"])
def test_targets_of_seed_001(example: Json) -> None:
    source = {"repo": "catalog", "package": "foo", "workspaceName": "v1"}
    body = valid(set_of("my-pvs", example["target"], source))
    known = repositories({"repo-1": {}, "repo-2": {"env": "prod"}})
    maps = [selected("repo-1", {"cluster": "edge"}, MAP), selected("repo-2", kind=MAP)]

    found = rendered(body, known, [(MAP, maps)])

    assert [f"{one.repo}/{one.package}" for one in found] == [one.format(package="foo") for one in example["packages"]]


@pytest.mark.parametrize("example", [one for one in templates() if "gives" in one], ids=lambda one: one["id"])
def test_templates_of_seed_001(example: Json) -> None:
    body = valid(set_of("my-pvs", template_target(example), FOO))

    (one,) = rendered(body, repositories({"edge1": SITE, "prod-repo": {}}))

    downstream = {"repo": "edge1", "package": package_of(example), **(example["gives"].get("downstream") or {})}
    assert one.spec == {"upstream": FOO, **example["gives"], "downstream": downstream}


def test_the_package_name_of_seed_001_has_dots_today() -> None:
    """``upstream.name`` was the package's name once; a PackageRevision's has dots, which no package name has (C-36)."""
    (example,) = [one for one in templates() if "refused" in one]
    body = valid(set_of("my-pvs", template_target(example), FOO))

    (one,) = rendered(body, repositories({"edge1": SITE}))

    package = "example-repo.foo.v1-edge1"
    assert (
        one.error
        == f"spec.targets[0] (edge1/{package}): {example['refused'].format(package=package)}: must not contain dots"
    )
