"""What was rendered is used again exactly while it would come to the same."""

from dataclasses import replace
from typing import Any

import pytest

from controllers.packagevariantset.renderings import Inputs, Renderings
from krm.variants.sets.rendering import Rendered
from krm.variants.sets.targets import Context, SelectedObject

KEY = ("default", "my-set")
SPEC = {"upstream": {"repo": "a"}, "downstream": {"repo": "r", "package": "p"}, "labels": {"x": "y"}}


def repository(name: str, **labels: str) -> SelectedObject:
    return SelectedObject("config.porch.kpt.dev/v1alpha1", "Repository", "default", name, labels, {})


INPUTS = Inputs(
    uid="u",
    generation=1,
    source={"repo": "a"},
    upstream={"name": "a.foo.v1"},
    contexts=[Context(0, None, "r", "p", repository("r"))],
    repositories={"r": repository("r"), "unused": repository("unused")},
)


@pytest.fixture
def known() -> Renderings:
    made = Renderings()
    made.keep(KEY, INPUTS, [Rendered(0, "r", "p", SPEC, "", "digest", 2), Rendered(1, "x", "p", None, "wrong")])
    return made


@pytest.mark.parametrize(
    "same",
    [
        {},
        {"contexts": [Context(0, None, "r", "p", repository("r"))]},
        {"repositories": {"r": repository("r"), "unused": repository("unused", a="b"), "more": repository("more")}},
    ],
)
def test_the_same_is_found(known: Renderings, same: dict[str, Any]) -> None:
    found = known.find(KEY, replace(INPUTS, **same))

    assert found is not None
    good, bad = found.rendered
    assert good.spec is not None
    assert found.spec(good.spec) == SPEC
    assert (good.digest, good.wave) == ("digest", 2)
    assert (bad.spec, bad.error) == (None, "wrong")


@pytest.mark.parametrize(
    "other",
    [
        {"uid": "v"},
        {"generation": 2},
        {"source": {"repo": "b"}},
        {"upstream": {"name": "a.foo.v2"}},
        {"contexts": []},
        {"contexts": [Context(0, None, "r", "p", repository("r", a="b"))]},
        {"repositories": {"r": repository("r", a="b")}},
        {"repositories": {"r": repository("r"), "x": repository("x")}},
        {"repositories": {}},
    ],
)
def test_what_is_made_of_something_else_is_not(known: Renderings, other: dict[str, Any]) -> None:
    assert known.find(KEY, replace(INPUTS, **other)) is None


def test_what_was_forgotten_is_not_found(known: Renderings) -> None:
    known.forget(KEY)
    known.forget(KEY)

    assert known.find(KEY, INPUTS) is None
    assert len(known) == 0
