"""No example of the seeds is without a place in ``tests/data``, and each is read as it is meant."""

from collections import Counter

import pytest
import yaml
from seed_examples import block, blocks, printed, targets, templates, text_of

BLOCKS_OF_SEED_000 = [459, 480, 770, 826, 863, 1017, 1041, 1068, 1142, 1164]
"""Lines of the fences of all its YAML blocks."""
TARGETS_OF_SEED_001 = [135, 161, 192]
TEMPLATES_OF_SEED_001 = [302, 303, 307, 308, 312, 313, 317, 318, 322, 323]
"""Lines of "Target Unrolling", and of "Expression evaluation examples"."""


def test_every_example_of_the_seeds_has_its_place() -> None:
    assert [one["line"] for one in blocks()] == BLOCKS_OF_SEED_000
    assert [one["line"] for one in targets()] == TARGETS_OF_SEED_001
    assert [one["line"] for one in templates()] == TEMPLATES_OF_SEED_001


def test_every_example_has_what_comes_of_it() -> None:
    assert Counter(one["kind"] for one in blocks()) == {"set": 6, "variants": 2, "variant": 1, "kptfile": 1}
    assert all(one["variants"] for one in blocks("set"))
    assert all(one["packages"] for one in targets())
    assert all(one.get("gives") or one["refused"] for one in templates())


@pytest.mark.parametrize("example", blocks("set") + blocks("variant"), ids=lambda one: one["id"])
def test_examples_are_complete_manifests(example: dict[str, str]) -> None:
    body = yaml.safe_load(text_of(example))

    assert body["kind"] == ("PackageVariantSet" if example["kind"] == "set" else "PackageVariant")
    assert body["metadata"]["name"] == ("example" if example["kind"] == "set" else "my-pv")
    assert body["spec"]["upstream"]["revision"] == "v1"


def test_printed_variants_belong_to_sets() -> None:
    pairs = [
        [f"{one['spec']['downstream']['repo']}/{one['spec']['downstream']['package']}" for one in printed(example)]
        for example in blocks("set")
        if "prints" in example
    ]

    assert pairs == [list(block(name)["variants"].values()) for name in ("labelled", "expressions")]


def test_the_notation_of_seed_001_is_read() -> None:
    found = {one["id"]: one for one in [*targets(), *templates()]}

    assert found["objects"]["target"] == {
        "objectSelector": {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "labelSelector": {"matchLabels": {"cluster": "edge"}},
        }
    }
    assert found["function-expression"]["template"] == {
        "pipeline": {
            "mutators": [
                {
                    "image": "set-namespace:v0.4.1",
                    "configMapExprs": [{"keyExpr": "'namespace'", "valueExpr": "target.labels.ns"}],
                }
            ]
        }
    }
