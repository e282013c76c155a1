"""What the cluster is asked about others: whose a token is (TokenReview), and what they may do (SubjectAccessReview).

Answers are kept for seconds, so that a burst of requests asks once. Source: ``kube-api.md`` 3.3.
"""

import asyncio
import hashlib
import hmac
import random
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, Final

import structlog

from apiserver.auth.answer_cache import AnswerCache
from apiserver.auth.authorizer import Decision, denied
from apiserver.auth.bearer import InvalidToken, TokenIdentity
from apiserver.auth.identity import MASTERS, user_info
from apiserver.auth.rate_limit import RateLimit
from apiserver.auth.selector_requirements import selector_requirements
from apiserver.machinery.request import RequestInfo
from apiserver.machinery.rest import User
from krm.client.errors import NoAnswer, Unreachable
from krm.meta.errors import InternalError, ServiceUnavailable, StatusError

Json = dict[str, Any]
Create = Callable[[Json], Awaitable[Json]]
"""Has the cluster judge a review: the object with a spec → the same with a status."""

KEPT_SECONDS: Final = 10.0
KEPT_ANSWERS: Final = 8192
MAX_ASKED: Final = 10_000
"""Characters of what is asked about one request; an answer about more is not kept."""
REVIEW_SECONDS: Final = 10.0
"""For one question with all its repetitions."""
ATTEMPTS: Final = 5
FIRST_PAUSE_SECONDS: Final = 0.5
GROWTH: Final = 1.5
JITTER: Final = 0.2
QUESTIONS_A_SECOND: Final = 200
QUESTIONS_AT_ONCE: Final = 400
"""Of tokens, and as many of access: what a cluster is asked by one server, whatever is asked of that."""
TRANSIENT: Final = (429, 500, 504)
"""Codes after which the same question may be asked again; others, if the answer says when."""

log = structlog.get_logger()


class NotReviewed(Exception):
    """The cluster gave no answer in time."""


class ReviewedTokens:
    """Tokens of the cluster: of its service accounts, and of whoever else it knows. A kind of bearer tokens."""

    def __init__(self, create: Create) -> None:
        self._create = _limited(create)
        self._key = secrets.token_bytes(32)
        self._answers: AnswerCache[bytes, Json] = AnswerCache(seconds=KEPT_SECONDS, size=KEPT_ANSWERS)

    async def identify(self, token: str) -> TokenIdentity | None:
        """Return whom the cluster says the token stands for; a token that was refused is refused for ten seconds.

        Raises:
            InvalidToken: the cluster does not know it.
            ServiceUnavailable: the cluster does not say.
        """
        # Under a key of this process, so that what is in memory says nothing about tokens.
        digest = hmac.digest(self._key, token.encode("utf-8", "surrogateescape"), hashlib.sha256)
        try:
            status = await self._answers.get(digest, lambda: self._ask(token))
        except NotReviewed as error:
            log.warning("a token cannot be reviewed", problem=str(error))
            raise ServiceUnavailable("the cluster does not say whose the token is; try again", retry_after=1) from error
        user = _user_of(status.get("user") or {})
        if not status.get("authenticated") or not user.name:
            raise InvalidToken
        return TokenIdentity(user)

    async def _ask(self, token: str) -> Json:
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "metadata": {},
            "spec": {"token": token},
        }
        return await _reviewed(self._create, review)


class ReviewedAccess:
    """Asks the cluster whether a user may do what a request asks for."""

    def __init__(self, create: Create) -> None:
        self._create = _limited(create)
        self._answers: AnswerCache[Any, Decision] = AnswerCache(seconds=KEPT_SECONDS, size=KEPT_ANSWERS)

    async def authorize(self, user: User, info: RequestInfo) -> str:
        """Return why the user may; members of ``system:masters`` always may.

        Raises:
            AccessDenied: the user may not.
            InternalError: the cluster does not say.
        """
        if MASTERS in user.groups:
            return ""
        spec = {**_user_spec(user), **_attributes(info)}
        key = _key(spec)
        try:
            if _length(key) >= MAX_ASKED:
                decision = await self._ask(spec)
            else:
                decision = await self._answers.get(key, lambda: self._ask(spec))
        except NotReviewed as error:
            log.warning("access cannot be reviewed", problem=str(error))
            raise InternalError.because("the cluster does not say whether this is allowed") from error
        if not decision.allowed:
            raise denied(user, info, decision.reason)
        return decision.reason

    async def _ask(self, spec: Json) -> Decision:
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {}, "spec": spec}
        status = await _reviewed(self._create, review)
        allowed = bool(status.get("allowed")) and not status.get("denied")
        return Decision(allowed, str(status.get("reason") or ""))


def _limited(create: Create) -> Create:
    limit = RateLimit(QUESTIONS_A_SECOND, QUESTIONS_AT_ONCE)

    async def create_in_turn(review: Json) -> Json:
        await limit.turn()
        return await create(review)

    return create_in_turn


async def _reviewed(create: Create, review: Json) -> Json:
    """Return the status of a review; a question that the cluster was too busy for is asked again.

    Raises:
        NotReviewed: there is none in ten seconds, or the cluster refuses the question.
    """
    try:
        async with asyncio.timeout(REVIEW_SECONDS):
            for number in range(ATTEMPTS):
                try:
                    status = (await create(review)).get("status")
                except (StatusError, NoAnswer) as error:
                    if number == ATTEMPTS - 1 or not _may_repeat(error):
                        raise NotReviewed(str(error)) from error
                    await asyncio.sleep(_pause(number, error))
                else:
                    return status if isinstance(status, dict) else {}
    except TimeoutError as error:
        raise NotReviewed(f"no answer within {REVIEW_SECONDS:g} s") from error
    raise AssertionError("unreachable: the last attempt returns or raises")


def _may_repeat(error: StatusError | NoAnswer) -> bool:
    if isinstance(error, StatusError):
        return error.code in TRANSIENT or bool(error.retry_after)
    # A review writes nothing, so one whose answer was lost may be asked again, too.
    return not isinstance(error, Unreachable)


def _pause(number: int, error: StatusError | NoAnswer) -> float:
    pause = FIRST_PAUSE_SECONDS * GROWTH**number * random.uniform(1, 1 + JITTER)  # noqa: S311 - spreads load, keeps no secret
    return max(pause, error.retry_after) if isinstance(error, StatusError) else pause


def _user_of(told: Json) -> User:
    extra = {str(key): tuple(map(str, values or ())) for key, values in (told.get("extra") or {}).items()}
    groups = tuple(map(str, told.get("groups") or ()))
    return User(str(told.get("username") or ""), groups, str(told.get("uid") or ""), extra)


def _user_spec(user: User) -> Json:
    spec = user_info(user)
    return {"user" if key == "username" else key: value for key, value in spec.items()}


def _attributes(info: RequestInfo) -> Json:
    if not info.resource:
        return {"nonResourceAttributes": {"path": info.path, "verb": info.verb}}
    attributes: Json = {
        "namespace": info.namespace or "",
        "verb": info.verb,
        "group": info.group,
        "version": info.version,
        "resource": info.resource,
        "subresource": info.subresource,
        "name": info.name,
        **selector_requirements(info),
    }
    return {"resourceAttributes": {key: value for key, value in attributes.items() if value}}


def _key(value: Any) -> Any:
    """Return a question as something that can be compared and looked up."""
    if isinstance(value, dict):
        return tuple((name, _key(one)) for name, one in sorted(value.items()))
    return tuple(map(_key, value)) if isinstance(value, list) else value


def _length(key: Any) -> int:
    return sum(map(_length, key)) if isinstance(key, tuple) else len(str(key))
