"""Ranges of versions: the grammar of pipelines' tags, and which tag is chosen."""

import pytest

from krm.functions.builtins import BUILTINS, BuiltinRunner
from krm.functions.images import checked_prefix, is_version_constraint, parse_image
from krm.functions.runner import FunctionNotFound, NoMatchingTag
from krm.functions.version_range import LONGEST_RANGE, is_range, newest_tag, parse_range, version_of


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("~0.2", "v0.2.0 0.2.9 0.2", "0.1.9 0.3.0 0.3.0-rc1 0.2.3-rc1"),
        ("~1", "1.0.0 1.9.9", "2.0.0 0.9"),
        ("~1.2.3", "1.2.3 1.2.9", "1.2.2 1.3.0"),
        ("~>1.2", "1.2.4", "1.3.0"),
        ("~0.0.0", "0.0.0 0.0.5", "0.1.0"),
        ("^0.1", "0.1.0 0.1.9", "0.2.0 1.0.0"),
        ("^0.0.3", "0.0.3", "0.0.4"),
        ("^0.0", "0.0.9", "0.1.0"),
        ("^0", "0.9.0", "1.0.0"),
        ("^1.2.3", "1.2.3 1.9.0", "1.2.2 2.0.0"),
        ("^1.x", "1.0.0 1.9.0", "2.0.0"),
        (">=1 <2", "1.0.0 1.9.9", "0.9.0 2.0.0 2.0.0-alpha"),
        (">=1, <2", "1.1.0", "2.0.0"),
        (">= 1.2,<1.4", "1.3.9", "1.4.0"),
        ("=>1", "1.0.0", "0.9.9"),
        ("=<1", "1.9.9", "2.0.0"),
        ("<=1.2", "1.2.9", "1.3.0"),
        (">11", "12.0.0", "11.5.0"),
        (">11.1", "11.2.0", "11.1.1"),
        ("0.1.x", "0.1.0 0.1.99", "0.2.0"),
        ("v0.1.*", "0.1.7", "0.2.0"),
        ("1", "1.5.0", "2.0.0"),
        ("=1.2.3", "1.2.3", "1.2.4"),
        ("!=1.2", "1.3.0", "1.2.0 1.2.9"),
        ("!=1.2.3", "1.2.4", "1.2.3"),
        ("1.2 - 1.4", "1.2.0 1.4.9", "1.1.9 1.5.0"),
        ("1 - 2, !=1.5", "1.4.0 2.9.0", "1.5.1"),
        ("~1 || 3", "1.9.0 3.5.0", "2.0.0"),
        ("*", "0.0.1 9.9.9", "1.0.0-alpha"),
        ("", "0.0.1", "1.0.0-alpha"),
        ("!=*", "", "1.0.0"),
        (">1.2.3-alpha", "1.2.3-beta 1.2.3 1.2.4-rc1", "1.2.3-alpha 1.2.2"),
        (">=1.2.3-alpha, <2", "1.3.0-beta", "2.0.0"),
    ],
)
def test_range_holds_the_versions_that_masterminds_puts_into_it(text: str, inside: str, outside: str) -> None:
    found = parse_range(text)

    for version in map(version_of, inside.split()):
        assert version is not None
        assert version in found
    for version in map(version_of, outside.split()):
        assert version is not None
        assert version not in found


@pytest.mark.parametrize(
    "text", ["latest", "a.x.b", "1.2.3.4", "~~1", "1,,2", ",1", "1,", ">=1<2", "foo bar", "~v", "1 || !", "~1.2.3-+"]
)
def test_what_is_no_range_is_told_from_one(text: str) -> None:
    assert not is_range(text)
    assert newest_tag(["v1.0.0"], text) is None


@pytest.mark.parametrize("text", ["v0.2", "0.2.1", "1-2", "latest", "unstable", "v1.2.3-rc.1", "my-x-tag"])
def test_tag_is_taken_literally(text: str) -> None:
    assert not is_version_constraint(text)


@pytest.mark.parametrize("text", ["~0.2", "^0.1", ">=1 <2", "0.1.x", "x", "not a tag", "a:b"])
def test_what_cannot_be_a_tag_is_looked_up_as_a_range(text: str) -> None:
    assert is_version_constraint(text)


def test_hostile_range_costs_nothing() -> None:
    assert not is_range("1" * 100_000)
    assert not is_range(" " * (LONGEST_RANGE - 1) + "!")
    assert not is_range("1 - " * 60)


def test_highest_release_is_chosen_in_its_own_spelling() -> None:
    tags = ["v0.2.0", "v0.2.10", "v0.2.9", "sha256-1f", "v0.2.11-git-4711", "latest", "0.2.10-rc1", "v0.3.0"]

    assert newest_tag(tags, "~0.2") == "v0.2.10"
    assert newest_tag(tags, "^1") is None


def test_builtins_answer_ranges_from_the_tags_they_declare() -> None:
    image = "ghcr.io/kptdev/krm-functions-catalog/set-labels"
    tags = BUILTINS["set-labels"].tags

    assert BuiltinRunner().resolve(f"{image}:v9", "~0.1") == f"{image}:v0.1.5"
    assert BuiltinRunner().resolve(image, ">=0") == f"{image}:{tags[-1]}"
    with pytest.raises(NoMatchingTag, match='no tag could be found matching the version constraint "~7"'):
        BuiltinRunner().resolve(image, "~7")
    with pytest.raises(FunctionNotFound):
        BuiltinRunner().resolve("example.com/set-labels", "~0.1")


def test_builtins_stand_in_for_further_registries_when_told() -> None:
    runner = BuiltinRunner(prefixes=["registry.example/mirror/"])

    runner.require("registry.example/mirror/set-labels:v0.2")
    with pytest.raises(FunctionNotFound):
        runner.require("gcr.io/kpt-fn/set-labels:v0.2")


@pytest.mark.parametrize(
    ("prefix", "problem"),
    [
        ("https://example.com/fns", "must not include a scheme (e.g. https://)"),
        ("example.com/fns?x", "must not include a query or fragment"),
        ("example.com/fns#x", "must not include a query or fragment"),
        ("Example.com/Fns", "must be a registry and path"),
        ("", "must be a registry and path"),
    ],
)
def test_prefix_that_begins_no_image_is_refused(prefix: str, problem: str) -> None:
    with pytest.raises(ValueError, match="invalid image prefix") as refused:
        checked_prefix(prefix)

    assert problem in str(refused.value)


def test_prefix_goes_before_short_names_only() -> None:
    prefix = checked_prefix("registry.example/fns")

    assert str(parse_image("set-labels", prefix=prefix)) == "registry.example/fns/set-labels:latest"
    assert str(parse_image("a/set-labels:v1", prefix=prefix)) == "a/set-labels:v1"
