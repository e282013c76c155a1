"""Questions about who somebody is, and requests for a token. None of them is ever stored.

Source: ``authentication.k8s.io/v1``.
"""

from typing import Any, Final

from pydantic import Field

from krm.meta.objects import ObjectMeta, WireModel

_ATOMIC: Final[dict[str, Any]] = {"x-kubernetes-list-type": "atomic"}
_METADATA: Final = "Standard object metadata."


class UserInfo(WireModel):
    """Who somebody is."""

    username: str | None = Field(default=None, description="Name, unique among those active now.")
    uid: str | None = Field(default=None, description="Tells users apart that had the same name in turn.")
    groups: list[str] | None = Field(default=None, description="Groups the user belongs to.", json_schema_extra=_ATOMIC)
    extra: dict[str, list[str]] | None = Field(default=None, description="Further facts from the authenticator.")


class TokenReviewSpec(WireModel):
    """The token in question."""

    token: str | None = Field(default=None, description="The bearer token.")
    audiences: list[str] | None = Field(
        default=None,
        description="For whom the token should be meant, at least one of these; empty: this server.",
        json_schema_extra=_ATOMIC,
    )


class TokenReviewStatus(WireModel):
    """The answer."""

    authenticated: bool | None = Field(default=None, description="Whether the token is valid.")
    user: UserInfo | None = Field(default=None, description="Whom it stands for.")
    audiences: list[str] | None = Field(
        default=None, description="Those asked for that it is meant for.", json_schema_extra=_ATOMIC
    )
    error: str | None = Field(default=None, description="Why it is not valid.")


class TokenReview(WireModel):
    """Asks whom a bearer token stands for."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description=_METADATA)
    spec: TokenReviewSpec = Field(description="The question.")
    status: TokenReviewStatus | None = Field(default=None, description="The answer, from the server.")


class SelfSubjectReviewStatus(WireModel):
    """The answer."""

    user_info: UserInfo | None = Field(default=None, description="Who the sender is.")


class SelfSubjectReview(WireModel):
    """Asks who the sender is; ``kubectl auth whoami``."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description=_METADATA)
    status: SelfSubjectReviewStatus | None = Field(default=None, description="The answer, from the server.")


class BoundObjectReference(WireModel):
    """An object that a token depends on."""

    kind: str | None = Field(default=None, description="Secret; Pod where there are pods.")
    api_version: str | None = Field(default=None, description="v1.")
    name: str | None = Field(default=None, description="Name, in the account's namespace.")
    uid: str | None = Field(default=None, description="UID; if given, the object must have it.")


class TokenRequestSpec(WireModel):
    """The token that is wanted."""

    audiences: list[str] | None = Field(
        default=None, description="For whom it is meant; empty: this server.", json_schema_extra=_ATOMIC
    )
    expiration_seconds: int | None = Field(
        default=None, description="Seconds it should be good for, at least 600; the server may choose fewer."
    )
    bound_object_ref: BoundObjectReference | None = Field(
        default=None, description="If set, the token ends with this object."
    )


class TokenRequestStatus(WireModel):
    """The token."""

    token: str | None = Field(default=None, description="The bearer token.")
    expiration_timestamp: str | None = Field(
        default=None, description="Its end.", json_schema_extra={"format": "date-time"}
    )


class TokenRequest(WireModel):
    """Asks for a token of a service account."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description=_METADATA)
    spec: TokenRequestSpec = Field(description="What is wanted.")
    status: TokenRequestStatus | None = Field(default=None, description="The token, from the server.")
