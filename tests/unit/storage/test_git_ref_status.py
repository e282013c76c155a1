"""What a remote's words about a ref mean, and what a refused push says."""

import pytest

from storage.git.errors import PushRejected
from storage.git.ref_status import RefStatus, ref_status
from storage.git.remote import Credentials, Remote


@pytest.mark.parametrize(
    ("words", "means"),
    [
        ("hook declined", RefStatus.DECLINED),
        ("pre-receive hook declined", RefStatus.DECLINED),
        ("deletion prohibited", RefStatus.DECLINED),
        ("non-fast-forward", RefStatus.DECLINED),
        ("protected branch hook declined", RefStatus.DECLINED),
        ("you are not allowed to push code to protected branches", RefStatus.DECLINED),
        ("", RefStatus.DECLINED),
        ("failed to update ref", RefStatus.TRANSIENT),
        ("Failed to lock ", RefStatus.TRANSIENT),
        ("unable to migrate objects to permanent storage", RefStatus.TRANSIENT),
        ("atomic push failure", RefStatus.COLLATERAL),
        ("atomic transaction failed", RefStatus.COLLATERAL),
    ],
)
def test_words_of_git_have_a_meaning_and_all_others_are_a_refusal(words: str, means: RefStatus) -> None:
    assert ref_status(words) is means


def test_refs_that_only_share_a_push_are_not_blamed() -> None:
    refused = PushRejected({"refs/heads/main": "hook declined", "refs/tags/a/v1": "atomic push failure"})

    assert refused.blamed == {"refs/heads/main": "hook declined"}
    assert not refused.transient


def test_a_push_that_failed_as_a_whole_may_go_through_in_a_moment() -> None:
    whole = dict.fromkeys(("refs/heads/main", "refs/tags/a/v1"), "atomic transaction failed")

    assert PushRejected(whole).transient
    assert PushRejected(whole).blamed == whole
    assert PushRejected({"a": "failed to lock", "b": "atomic push failure"}).transient
    assert not PushRejected({"a": "failed to lock", "b": "hook declined"}).transient


def test_text_of_a_remote_is_shown_without_our_credentials() -> None:
    remote = Remote("https://git.example/x", Credentials("porch", "canary"))
    bearer = Remote("https://git.example/x", Credentials("", "canary"))

    assert remote.without_secrets("no canary for cG9yY2g6Y2FuYXJ5!") == "no *** for ***!"
    assert bearer.without_secrets("no canary") == "no ***"
    assert Remote("https://git.example/x", Credentials("u", "")).without_secrets("as it is") == "as it is"
