"""Questions about who somebody is: the sender, or the holder of a token.

Source: ``kube-api.md`` 3.3 and 3.6; the answers are those of ``authentication.k8s.io/v1``.
"""

from apiserver.auth.bearer import BearerTokens, InvalidToken
from apiserver.auth.identity import AUTHENTICATED, user_info, with_group
from apiserver.machinery.apply.ownership import Ownership
from apiserver.machinery.definition import Json
from apiserver.machinery.rest import Scope, WriteOptions
from apiserver.resources.unstored import review_definition, unstored
from krm.api.authentication import SelfSubjectReview, TokenReview
from krm.meta.conditions import timestamp
from krm.meta.errors import BadRequest
from storage.interfaces import Entry

GROUP = "authentication.k8s.io"


class SelfSubjectReviews:
    """Who is the sender? Creating one answers it, impersonation included."""

    def __init__(self) -> None:
        self.definition = review_definition(GROUP, "SelfSubjectReview", SelfSubjectReview)

    async def create(self, scope: Scope, wanted: Json, _options: WriteOptions) -> Entry:
        """Answer; whatever else the body says is ignored."""
        head = {"apiVersion": wanted["apiVersion"], "kind": wanted["kind"]}
        metadata = {"creationTimestamp": timestamp()}
        return unstored({**head, "metadata": metadata, "status": {"userInfo": user_info(scope.user)}})


class TokenReviews:
    """Whose token is this? Creating one answers it; the token is neither kept nor logged."""

    def __init__(self, tokens: BearerTokens) -> None:
        self.definition = review_definition(GROUP, "TokenReview", TokenReview)
        self._ownership = Ownership(self.definition)
        self._tokens = tokens

    async def create(self, _scope: Scope, wanted: Json, options: WriteOptions) -> Entry:
        """Answer.

        Raises:
            BadRequest: there is no token.
        """
        spec = wanted.get("spec") or {}
        if not spec.get("token"):
            raise BadRequest("token is required for TokenReview in authentication")
        self._ownership.created(wanted, options)
        try:
            identity = await self._tokens.review(spec["token"], spec.get("audiences") or self._tokens.audiences)
        except InvalidToken as error:
            return unstored({**wanted, "status": {"user": {}, "error": str(error)}})
        status = {
            "authenticated": True,
            "user": user_info(with_group(identity.user, AUTHENTICATED)),
            "audiences": list(identity.audiences),
        }
        return unstored({**wanted, "status": status})
