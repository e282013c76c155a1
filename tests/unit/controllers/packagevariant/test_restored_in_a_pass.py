"""A variant that is replaced by another of its name while a pass over it is under way is looked at again.

Found by ``test_invariants_live.py``: forgetting the old one also forgot that news had come, so that the pass counted as the last
word on the new one.
"""

from controllers.runtime.finished_passes import FinishedPasses

KEY = ("default", "one")


def test_news_are_news_also_after_the_variant_was_forgotten() -> None:
    passes = FinishedPasses(lambda _key: "the same")
    passes.woken(KEY)
    begun = passes.begin(KEY)

    passes.forget(KEY)  # another uid
    passes.woken(KEY)
    passes.finish(KEY, begun)

    assert not passes.is_finished(KEY)


def test_a_pass_in_which_nothing_came_is_the_last_word() -> None:
    passes = FinishedPasses(lambda _key: "the same")
    passes.woken(KEY)
    passes.finish(KEY, passes.begin(KEY))

    assert passes.is_finished(KEY)
