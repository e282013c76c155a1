"""Questions about what somebody may do. None of them is ever stored.

Source: ``authorization.k8s.io/v1``.
"""

from typing import Any, Final

from pydantic import Field

from krm.meta.objects import ObjectMeta, WireModel

_ATOMIC: Final[dict[str, Any]] = {"x-kubernetes-list-type": "atomic"}
_METADATA: Final = "Standard object metadata."


class SelectorRequirement(WireModel):
    """One condition of a selector."""

    key: str = Field(description="Field or label.")
    operator: str = Field(description="In, NotIn, Exists or DoesNotExist.")
    values: list[str] | None = Field(
        default=None, description="Values that In and NotIn compare with.", json_schema_extra=_ATOMIC
    )


class SelectorAttributes(WireModel):
    """How a request narrows a collection."""

    raw_selector: str | None = Field(default=None, description="The selector as a query parameter.")
    requirements: list[SelectorRequirement] | None = Field(
        default=None, description="The selector taken apart.", json_schema_extra=_ATOMIC
    )


class ResourceAttributes(WireModel):
    """A request for a resource."""

    namespace: str | None = Field(default=None, description="Namespace; empty is all, or the cluster scope.")
    verb: str | None = Field(default=None, description="Verb, like get, list, create or approve; * is all.")
    group: str | None = Field(default=None, description="API group; * is all.")
    version: str | None = Field(default=None, description="API version; * is all.")
    resource: str | None = Field(default=None, description="Resource, in the plural; * is all.")
    subresource: str | None = Field(default=None, description="Subresource, if any.")
    name: str | None = Field(default=None, description="Name of the object; empty is all.")
    field_selector: SelectorAttributes | None = Field(default=None, description="Field selector of the request.")
    label_selector: SelectorAttributes | None = Field(default=None, description="Label selector of the request.")


class NonResourceAttributes(WireModel):
    """A request for a path that is no resource's."""

    path: str | None = Field(default=None, description="The path.")
    verb: str | None = Field(default=None, description="The HTTP method in lower case.")


class ReviewStatus(WireModel):
    """The answer."""

    allowed: bool = Field(description="Whether it is allowed.")
    denied: bool | None = Field(default=None, description="Whether it is forbidden whatever others say.")
    reason: str | None = Field(default=None, description="Why.")
    evaluation_error: str | None = Field(default=None, description="What went wrong on the way to the answer.")


class SelfSubjectAccessReviewSpec(WireModel):
    """What the sender wants to do; exactly one of the two."""

    resource_attributes: ResourceAttributes | None = Field(default=None, description="A request for a resource.")
    non_resource_attributes: NonResourceAttributes | None = Field(
        default=None, description="A request for another path."
    )


class SelfSubjectAccessReview(WireModel):
    """Asks whether the sender may do something; ``kubectl auth can-i``."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description=_METADATA)
    spec: SelfSubjectAccessReviewSpec = Field(description="The question.")
    status: ReviewStatus | None = Field(default=None, description="The answer, from the server.")


class SubjectAccessReviewSpec(SelfSubjectAccessReviewSpec):
    """What somebody wants to do, and who."""

    user: str | None = Field(default=None, description="Name of the user.")
    groups: list[str] | None = Field(
        default=None, description="Groups of the user; none are added.", json_schema_extra=_ATOMIC
    )
    extra: dict[str, list[str]] | None = Field(default=None, description="Further facts about the user.")
    uid: str | None = Field(default=None, description="UID of the user.")


class SubjectAccessReview(WireModel):
    """Asks whether somebody may do something."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description=_METADATA)
    spec: SubjectAccessReviewSpec = Field(description="The question.")
    status: ReviewStatus | None = Field(default=None, description="The answer, from the server.")


class LocalSubjectAccessReview(WireModel):
    """Asks whether somebody may do something in one namespace."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description=_METADATA)
    spec: SubjectAccessReviewSpec = Field(description="The question.")
    status: ReviewStatus | None = Field(default=None, description="The answer, from the server.")


class ResourceRule(WireModel):
    """Verbs that are allowed on resources."""

    verbs: list[str] = Field(description="What may be done.", json_schema_extra=_ATOMIC)
    api_groups: list[str] | None = Field(default=None, description="API groups.", json_schema_extra=_ATOMIC)
    resources: list[str] | None = Field(default=None, description="Resources.", json_schema_extra=_ATOMIC)
    resource_names: list[str] | None = Field(
        default=None, description="Names; empty is all.", json_schema_extra=_ATOMIC
    )


class NonResourceRule(WireModel):
    """Verbs that are allowed on other paths."""

    verbs: list[str] = Field(description="What may be done.", json_schema_extra=_ATOMIC)
    non_resource_urls: list[str] | None = Field(
        default=None, alias="nonResourceURLs", description="Paths.", json_schema_extra=_ATOMIC
    )


class RulesReviewSpec(WireModel):
    """Where."""

    namespace: str | None = Field(default=None, description="The namespace in question.")


class RulesReviewStatus(WireModel):
    """The answer."""

    resource_rules: list[ResourceRule] = Field(description="On resources.", json_schema_extra=_ATOMIC)
    non_resource_rules: list[NonResourceRule] = Field(description="On other paths.", json_schema_extra=_ATOMIC)
    incomplete: bool = Field(description="Whether something may be missing.")
    evaluation_error: str | None = Field(default=None, description="Why something may be missing.")


class SelfSubjectRulesReview(WireModel):
    """Asks what the sender may do in a namespace; ``kubectl auth can-i --list``."""

    metadata: ObjectMeta = Field(default_factory=ObjectMeta, description=_METADATA)
    spec: RulesReviewSpec = Field(description="The question.")
    status: RulesReviewStatus | None = Field(default=None, description="The answer, from the server.")
