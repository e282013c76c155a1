"""Questions about what somebody may do: answered by the authorizer that also decides on requests.

Source: ``kube-api.md`` 3.6; checks and wording are those of ``authorization.k8s.io/v1``.
"""

from collections.abc import Sequence

from apiserver.auth.authorizer import Authorizer
from apiserver.machinery.apply.ownership import Ownership
from apiserver.machinery.definition import Json
from apiserver.machinery.request import RequestInfo
from apiserver.machinery.rest import Resource, Scope, User, WriteOptions
from apiserver.resources.unstored import review_definition, unstored
from krm.api.authorization import (
    LocalSubjectAccessReview,
    SelfSubjectAccessReview,
    SelfSubjectRulesReview,
    SubjectAccessReview,
)
from krm.meta.errors import BadRequest, Cause, Invalid, invalid_value
from storage.interfaces import Entry

GROUP = "authorization.k8s.io"


def access_reviews(authorizer: Authorizer) -> list[Resource]:
    """Return the four kinds of review."""
    return [
        SubjectAccessReviews(authorizer),
        LocalSubjectAccessReviews(authorizer),
        SelfSubjectAccessReviews(authorizer),
        SelfSubjectRulesReviews(authorizer),
    ]


class SelfSubjectAccessReviews:
    """May the sender do something? Creating one answers it."""

    def __init__(self, authorizer: Authorizer) -> None:
        self.definition = review_definition(GROUP, "SelfSubjectAccessReview", SelfSubjectAccessReview)
        self._ownership = Ownership(self.definition)
        self._authorizer = authorizer

    async def create(self, scope: Scope, wanted: Json, options: WriteOptions) -> Entry:
        """Answer.

        Raises:
            Invalid: not exactly one kind of request is asked about.
        """
        self._ownership.created(wanted, options)
        spec = wanted.get("spec") or {}
        _refuse([*_metadata_causes(wanted["metadata"]), *_request_causes(spec)])
        return unstored({**wanted, "status": _answer(self._authorizer, scope.user, spec)})


class SubjectAccessReviews:
    """May somebody do something? Creating one answers it."""

    def __init__(self, authorizer: Authorizer) -> None:
        self.definition = review_definition(GROUP, "SubjectAccessReview", SubjectAccessReview)
        self._ownership = Ownership(self.definition)
        self._authorizer = authorizer

    async def create(self, _scope: Scope, wanted: Json, options: WriteOptions) -> Entry:
        """Answer.

        Raises:
            Invalid: nobody is named, or not exactly one kind of request.
        """
        self._ownership.created(wanted, options)
        spec = wanted.get("spec") or {}
        _refuse([*_metadata_causes(wanted["metadata"]), *_subject_causes(spec)])
        return unstored({**wanted, "status": _answer(self._authorizer, _subject(spec), spec)})


class LocalSubjectAccessReviews:
    """May somebody do something in this namespace? Creating one answers it."""

    def __init__(self, authorizer: Authorizer) -> None:
        self.definition = review_definition(
            GROUP, "LocalSubjectAccessReview", LocalSubjectAccessReview, namespaced=True
        )
        self._ownership = Ownership(self.definition)
        self._authorizer = authorizer

    async def create(self, scope: Scope, wanted: Json, options: WriteOptions) -> Entry:
        """Answer.

        Raises:
            Invalid: nobody is named, or the request is not one for a resource of the namespace.
        """
        self._ownership.created(wanted, options)
        spec, metadata = wanted.get("spec") or {}, wanted["metadata"]
        namespace = scope.namespace or ""
        other = {key: value for key, value in metadata.items() if key != "namespace"}
        causes = [*_metadata_causes(other), *_subject_causes(spec)]
        resource = spec.get("resourceAttributes")
        if resource is not None and (resource.get("namespace") or "") != namespace:
            field = "spec.resourceAttributes.namespace"
            causes.append(invalid_value(field, resource.get("namespace") or "", "must match metadata.namespace"))
        if spec.get("nonResourceAttributes") is not None:
            detail = "disallowed on this kind of request"
            causes.append(
                invalid_value("spec.nonResourceAttributes", _as_internal(spec["nonResourceAttributes"]), detail)
            )
        _refuse(causes)
        answered = {**wanted, "metadata": {**metadata, "namespace": namespace}}
        return unstored({**answered, "status": _answer(self._authorizer, _subject(spec), spec)})


class SelfSubjectRulesReviews:
    """What may the sender do in a namespace? Creating one answers it."""

    def __init__(self, authorizer: Authorizer) -> None:
        self.definition = review_definition(GROUP, "SelfSubjectRulesReview", SelfSubjectRulesReview)
        self._authorizer = authorizer

    async def create(self, scope: Scope, wanted: Json, _options: WriteOptions) -> Entry:
        """Answer.

        Raises:
            BadRequest: no namespace is named.
        """
        namespace = (wanted.get("spec") or {}).get("namespace")
        if not namespace:
            raise BadRequest("no namespace on request")
        found = self._authorizer.rules_for(scope.user, namespace)
        status: Json = {
            "resourceRules": [_resource_rule(rule) for rule in found.rules if rule.get("resources")],
            "nonResourceRules": [_url_rule(rule) for rule in found.rules if rule.get("nonResourceURLs")],
            "incomplete": False,
        }
        if found.errors:
            status["evaluationError"] = ", ".join(found.errors)
        return unstored({**wanted, "spec": {}, "status": status})


def _answer(authorizer: Authorizer, user: User, spec: Json) -> Json:
    decision = authorizer.decide(user, _request(spec))
    return (
        {"allowed": decision.allowed, "reason": decision.reason} if decision.reason else {"allowed": decision.allowed}
    )


def _request(spec: Json) -> RequestInfo:
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes") or {}
    if resource is None:
        return RequestInfo(other.get("verb") or "", other.get("path") or "")
    return RequestInfo(
        resource.get("verb") or "",
        "",
        group=resource.get("group") or "",
        version=resource.get("version") or "",
        resource=resource.get("resource") or "",
        subresource=resource.get("subresource") or "",
        namespace=resource.get("namespace") or None,
        name=resource.get("name") or "",
    )


def _subject(spec: Json) -> User:
    extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
    return User(spec.get("user") or "", tuple(spec.get("groups") or ()), spec.get("uid") or "", extra)


def _resource_rule(rule: Json) -> Json:
    keys = ("verbs", "apiGroups", "resources", "resourceNames")
    return {key: rule[key] for key in keys if rule.get(key)}


def _url_rule(rule: Json) -> Json:
    return {"verbs": rule["verbs"], "nonResourceURLs": rule["nonResourceURLs"]}


def _metadata_causes(metadata: Json) -> list[Cause]:
    given = {key: value for key, value in metadata.items() if value}
    return [invalid_value("metadata", given, "must be empty")] if given.keys() - {"managedFields"} else []


def _subject_causes(spec: Json) -> list[Cause]:
    causes = _request_causes(spec)
    if not spec.get("user") and not spec.get("groups"):
        causes.append(invalid_value("spec.user", "", "at least one of user or group must be specified"))
    return causes


def _request_causes(spec: Json) -> list[Cause]:
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and other is not None:
        detail = "cannot be specified in combination with resourceAttributes"
        return [invalid_value("spec.nonResourceAttributes", _as_internal(other), detail)]
    if resource is None and other is None:
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        return [invalid_value("spec.resourceAttributes", None, detail)]
    return []


def _as_internal(attributes: Json) -> Json:
    """Write attributes as kube-apiserver shows them in errors: with its internal names, which clients compare."""
    return {"Path": attributes.get("path") or "", "Verb": attributes.get("verb") or ""}


def _refuse(causes: Sequence[Cause]) -> None:
    if causes:
        # Without the kind, as kube-apiserver words it.
        raise Invalid.of("", GROUP, "", causes)
