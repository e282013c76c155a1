"""Names of the variants of a set (5.10; C-23, C-24)."""

import re
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from set_tables import cases

from krm.meta.names import subdomain_problem
from krm.variants.sets.naming import MAX_LENGTH, could_be_named, identifier, names, shortened

Json = dict[str, Any]


def written(text: str) -> str:
    return re.sub(r"(\w)x(\d{2})", lambda match: match[1] * int(match[2]), text)


@pytest.mark.parametrize("case", cases("names"))
def test_names_of_variants(case: Json) -> None:
    for whole, name in case.get("identifiers", {}).items():
        assert shortened(written(whole)) == written(name)
    pairs = [(written(repo), written(package)) for repo, package in case.get("pairs", ())]
    if not pairs:
        return
    existing = {(repo, package): name for repo, package, name in case.get("existing", ())}

    found = names(case["set"], pairs, existing)

    assert [found[pair] for pair in pairs] == [written(name) for name in case["names"]]
    if "length" in case:
        assert {len(identifier(case["set"], pair)) for pair in pairs} == {case["length"]}
    if not existing:
        assert all(could_be_named(case["set"], pair, name) for pair, name in found.items())


labels = st.from_regex(r"[a-c]([-a-c]{0,3}[a-c])?", fullmatch=True)
long_labels = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
set_names = labels | long_labels | st.lists(long_labels, min_size=1, max_size=3).map(".".join)
packages = labels | st.lists(labels | long_labels, min_size=1, max_size=3).map("/".join)
pairs_of_sets = st.lists(st.tuples(labels | long_labels, packages), max_size=12, unique=True)


@pytest.mark.hypothesis
@settings(deadline=None)
@given(set_names, pairs_of_sets, st.randoms())
def test_names_are_valid_short_distinct_and_independent_of_order(set_name: str, pairs: Any, random: Any) -> None:
    found = names(set_name, pairs, {})
    shuffled = list(pairs)
    random.shuffle(shuffled)

    assert found == names(set_name, shuffled, {})
    assert len(set(found.values())) == len(found) == len(pairs)
    for pair, name in found.items():
        assert len(name) <= MAX_LENGTH
        assert subdomain_problem(name) == ""
        assert could_be_named(set_name, pair, name)


@pytest.mark.hypothesis
@settings(deadline=None)
@given(set_names, pairs_of_sets, st.integers(0, 12))
def test_names_stay_when_targets_come_and_go(set_name: str, pairs: Any, count: int) -> None:
    before = names(set_name, pairs[:count], {})

    after = names(set_name, pairs, before)

    assert before.items() <= after.items()
    assert len(set(after.values())) == len(pairs)
    assert names(set_name, pairs, after) == after


@pytest.mark.hypothesis
@settings(deadline=None)
@given(st.text(max_size=80), st.text(max_size=80), st.text(max_size=80))
def test_any_texts_have_a_valid_name_where_the_set_has_one(set_name: str, repo: str, package: str) -> None:
    (name,) = names("set", [(repo, package)], {}).values()
    (other,) = names(set_name, [(repo, package)], {}).values()

    assert subdomain_problem(name) == ""
    assert len(other) <= MAX_LENGTH


def test_all_orders_of_pairs_with_one_identifier_give_the_same_names() -> None:
    pairs = [("a", "b-c-d"), ("a-b", "c-d"), ("a-b-c", "d")]
    expected = names("p", pairs, {})

    assert all(names("p", order, {}) == expected for order in permutations(pairs))
    assert sorted(map(len, expected.values())) == [9, 18, 18]
