"""Reviews of tokens and access by a cluster: asked once, remembered for seconds, and never guessed."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from apiserver.auth import reviews
from apiserver.auth.answer_cache import AnswerCache
from apiserver.auth.bearer import InvalidToken
from apiserver.auth.rate_limit import RateLimit
from apiserver.auth.reviews import ReviewedAccess, ReviewedTokens
from apiserver.machinery.access import AccessDenied
from apiserver.machinery.request import RequestInfo
from apiserver.machinery.rest import User
from krm.client.errors import Unanswered, Unreachable
from krm.meta.errors import Forbidden, InternalError, ServiceUnavailable, TooManyRequests

Json = dict[str, Any]
LIST = RequestInfo("list", "/", "porch.kpt.dev", "v1alpha1", "packagerevisions", namespace="ns")
EVE = User("eve", ("devs",), "7", {"scopes": ("a",)})


class Cluster:
    """Answers reviews as the test says, and keeps what it was asked."""

    def __init__(self, *answers: Json | Exception) -> None:
        self.asked: list[Json] = []
        self._answers = list(answers)

    async def create(self, review: Json) -> Json:
        self.asked.append(review["spec"])
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        await asyncio.sleep(0)
        if isinstance(answer, Exception):
            raise answer
        return {**review, "status": answer}


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviews, "FIRST_PAUSE_SECONDS", 0.0)


async def test_a_review_tells_everything_about_user_and_request() -> None:
    cluster = Cluster({"allowed": True, "reason": "a role"})

    assert await ReviewedAccess(cluster.create).authorize(EVE, LIST) == "a role"

    attributes = {
        "namespace": "ns",
        "verb": "list",
        "group": "porch.kpt.dev",
        "version": "v1alpha1",
        "resource": "packagerevisions",
    }
    user = {"user": "eve", "groups": ["devs"], "uid": "7", "extra": {"scopes": ["a"]}}
    assert cluster.asked == [{**user, "resourceAttributes": attributes}]


async def test_a_review_tells_what_a_collection_is_narrowed_to() -> None:
    cluster = Cluster({"allowed": True})
    access = ReviewedAccess(cluster.create)
    narrowed = replace(
        LIST,
        field_selector="spec.packageName=app,spec.revision!=0",
        label_selector="team in (b,a),!old,owner,tier!=x,size>3",
    )

    await access.authorize(EVE, narrowed)
    await access.authorize(EVE, narrowed)
    await access.authorize(EVE, replace(narrowed, label_selector=""))

    asked, other = (one["resourceAttributes"] for one in cluster.asked)
    fields = [
        {"key": "spec.packageName", "operator": "In", "values": ["app"]},
        {"key": "spec.revision", "operator": "NotIn", "values": ["0"]},
    ]
    labels = [
        {"key": "team", "operator": "In", "values": ["a", "b"]},
        {"key": "old", "operator": "DoesNotExist"},
        {"key": "owner", "operator": "Exists"},
        {"key": "tier", "operator": "NotIn", "values": ["x"]},
    ]
    assert asked["fieldSelector"] == other["fieldSelector"] == {"requirements": fields}
    assert asked["labelSelector"] == {"requirements": labels}
    assert "labelSelector" not in other


async def test_a_selector_that_cannot_be_read_is_left_to_the_verb() -> None:
    cluster = Cluster({"allowed": True})

    await ReviewedAccess(cluster.create).authorize(EVE, replace(LIST, field_selector="a", label_selector="=,="))

    assert cluster.asked[0]["resourceAttributes"].keys() == {"namespace", "verb", "group", "version", "resource"}


async def test_a_limit_lets_a_burst_pass_and_then_so_many_a_second() -> None:
    now = 0.0
    limit = RateLimit(20, 2, clock=lambda: now)
    waiting = [asyncio.create_task(limit.turn()) for _ in range(4)]
    await asyncio.sleep(0)
    assert [one.done() for one in waiting] == [True, True, False, False]

    waiting.pop().cancel()
    await asyncio.gather(*waiting)
    now = 0.1  # two have come back, and one of those asked for was never taken
    next_one = asyncio.create_task(limit.turn())
    await asyncio.sleep(0)
    assert next_one.done()


async def test_no_cluster_is_asked_faster_than_it_should_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reviews, "QUESTIONS_AT_ONCE", 3)
    monkeypatch.setattr(reviews, "QUESTIONS_A_SECOND", 0.001)
    monkeypatch.setattr(reviews, "REVIEW_SECONDS", 0.2)
    cluster = Cluster({"allowed": True})
    access = ReviewedAccess(cluster.create)

    outcomes = await asyncio.gather(
        *(access.authorize(User(f"user-{number}"), LIST) for number in range(5)), return_exceptions=True
    )

    assert [isinstance(one, InternalError) for one in outcomes] == [False] * 3 + [True] * 2
    assert len(cluster.asked) == 3


async def test_paths_that_are_no_resources_are_reviewed_as_such() -> None:
    cluster = Cluster({"allowed": True})

    await ReviewedAccess(cluster.create).authorize(EVE, RequestInfo("get", "/metrics"))

    assert cluster.asked[0]["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}


@pytest.mark.parametrize(
    "status", [{"allowed": False}, {"allowed": True, "denied": True}, {}], ids=["no opinion", "denied", "nothing said"]
)
async def test_what_is_not_allowed_is_refused_with_the_reason(status: Json) -> None:
    access = ReviewedAccess(Cluster({**status, "reason": "because"}).create)

    with pytest.raises(AccessDenied, match=r'User "eve" cannot list resource "packagerevisions".*: because'):
        await access.authorize(EVE, LIST)


async def test_the_same_question_is_asked_once_and_another_one_again() -> None:
    cluster = Cluster({"allowed": True})
    access = ReviewedAccess(cluster.create)

    await asyncio.gather(*(access.authorize(EVE, LIST) for _ in range(5)))
    await access.authorize(EVE, LIST)
    assert len(cluster.asked) == 1
    await access.authorize(User("eve", ("ops",)), LIST)

    assert len(cluster.asked) == 2


async def test_a_question_of_unusual_length_is_not_remembered() -> None:
    cluster = Cluster({"allowed": True})
    access, long = ReviewedAccess(cluster.create), User("eve", ("g" * reviews.MAX_ASKED,))

    await access.authorize(long, LIST)
    await access.authorize(long, LIST)

    assert len(cluster.asked) == 2


async def test_masters_are_not_asked_about() -> None:
    cluster = Cluster({"allowed": False})

    await ReviewedAccess(cluster.create).authorize(User("root", ("system:masters",)), LIST)

    assert cluster.asked == []


@pytest.mark.parametrize(
    "problem",
    [Unreachable("no connection"), Forbidden("may not ask"), TooManyRequests("busy")],
    ids=["away", "refused", "busy for too long"],
)
async def test_a_cluster_that_does_not_say_allows_nothing(problem: Exception) -> None:
    cluster = Cluster(problem)
    access = ReviewedAccess(cluster.create)

    for _ in range(2):
        with pytest.raises(InternalError, match="does not say whether this is allowed"):
            await access.authorize(EVE, LIST)

    assert len(cluster.asked) == 2 * (reviews.ATTEMPTS if isinstance(problem, TooManyRequests) else 1)


@pytest.mark.parametrize("problem", [Unanswered("cut"), TooManyRequests("busy")], ids=["cut", "busy"])
async def test_a_question_that_got_no_answer_is_asked_again(problem: Exception) -> None:
    cluster = Cluster(problem, {"allowed": True})

    await ReviewedAccess(cluster.create).authorize(EVE, LIST)

    assert len(cluster.asked) == 2


async def test_a_token_is_whose_the_cluster_says() -> None:
    told = {"username": "eve", "uid": "7", "groups": ["devs"], "extra": {"scopes": ["a"]}}
    cluster = Cluster({"authenticated": True, "user": told})
    tokens = ReviewedTokens(cluster.create)

    found = await tokens.identify("token")

    assert found is not None
    assert found.user == EVE
    await tokens.identify("token")
    assert cluster.asked == [{"token": "token"}]


@pytest.mark.parametrize("status", [{"authenticated": False}, {"authenticated": True, "user": {}}, {}])
async def test_a_token_that_the_cluster_does_not_know_is_invalid(status: Json) -> None:
    with pytest.raises(InvalidToken):
        await ReviewedTokens(Cluster(status).create).identify("token")


async def test_a_token_nobody_can_review_now_is_not_called_invalid() -> None:
    with pytest.raises(ServiceUnavailable):
        await ReviewedTokens(Cluster(Unreachable("away")).create).identify("token")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def cache(size: int = 2) -> tuple[AnswerCache[str, int], Clock]:
    clock = Clock()
    return AnswerCache(seconds=10, size=size, clock=clock), clock


def counted(numbers: list[int]) -> Callable[[], Any]:
    async def ask() -> int:
        numbers.append(len(numbers))
        return numbers[-1]

    return ask


async def test_answers_end_with_their_time() -> None:
    answers, clock = cache()
    asked: list[int] = []
    assert await answers.get("a", counted(asked)) == await answers.get("a", counted(asked)) == 0

    clock.now = 10.0

    assert await answers.get("a", counted(asked)) == 1


async def test_the_answer_not_used_for_longest_goes_first() -> None:
    answers, _ = cache()
    asked: list[int] = []
    for key in ("a", "b", "a", "c"):
        await answers.get(key, counted(asked))

    assert len(answers) == 2
    assert await answers.get("a", counted(asked)) == 0
    assert await answers.get("b", counted(asked)) == 3


async def test_failures_are_told_to_all_who_wait_and_not_kept() -> None:
    answers, _ = cache()
    failing = [True]

    async def ask() -> int:
        await asyncio.sleep(0)
        if failing.pop():
            raise ValueError("no answer")
        return 1

    failing.insert(0, False)
    outcomes = await asyncio.gather(answers.get("a", ask), answers.get("a", ask), return_exceptions=True)

    assert [type(one) for one in outcomes] == [ValueError, ValueError]
    assert await answers.get("a", ask) == 1


async def test_whoever_gives_up_leaves_the_question_to_the_others() -> None:
    answers, _ = cache()
    release = asyncio.Event()

    async def ask() -> int:
        await release.wait()
        return 1

    first, second = (asyncio.create_task(answers.get("a", ask)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    release.set()

    assert await second == 1
    with pytest.raises(asyncio.CancelledError):
        await first
