"""What a set hears of its variants. Source: ``variants.md`` 3.7, 6.2."""

from typing import Any

from controllers.packagevariantset.cached_values import Member


def failing(generation: int, observed: int) -> Member:
    """Return a variant whose controller has failed with a generation of it."""
    condition = {"type": "Ready", "status": "False", "reason": "MutationFailed"}
    body: dict[str, Any] = {
        "metadata": {"namespace": "ns", "name": "v", "uid": "u", "generation": generation},
        "spec": {"upstream": {}, "downstream": {"repo": "r", "package": "p"}},
        "status": {"observedGeneration": observed, "conditions": [condition]},
    }
    return Member.of(body)


def test_a_variant_that_fails_again_as_it_did_before_is_news() -> None:
    """Until its controller has seen the new generation it is in flight: a rollout would wait for it for ever."""
    assert failing(2, 1).told != failing(2, 2).told
    assert failing(2, 2).told == failing(2, 2).told
