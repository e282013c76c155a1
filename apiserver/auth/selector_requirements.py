"""What a list or watch is narrowed to, as a SubjectAccessReview tells it: an authorizer may allow a part of a collection.

Source: ``kube-api.md`` 3.3; the field names are ``authorization.k8s.io/v1``'s.
"""

from typing import Any, Final

from apiserver.machinery.request import RequestInfo
from krm.meta.errors import BadRequest
from krm.meta.selectors import FieldSelector, LabelSelector, Operator

Json = dict[str, Any]

_OPERATORS: Final = {
    Operator.IN: "In",
    Operator.NOT_IN: "NotIn",
    Operator.EXISTS: "Exists",
    Operator.MISSING: "DoesNotExist",
}
"""Comparisons of numbers are not among those of reviews: left out, the question is about more than is asked for, never less."""
_FIELD_OPERATORS: Final = {"=": "In", "!=": "NotIn"}


def selector_requirements(info: RequestInfo) -> Json:
    """Return ``fieldSelector`` and ``labelSelector`` of a request, each if it has requirements.

    A selector that cannot be parsed is left out; the verb itself refuses it, if the sender may use the verb at all.
    """
    found = {"fieldSelector": _of_fields(info.field_selector), "labelSelector": _of_labels(info.label_selector)}
    return {key: {"requirements": requirements} for key, requirements in found.items() if requirements}


def _of_fields(text: str) -> list[Json]:
    try:
        terms = FieldSelector.parse(text).terms
    except BadRequest:
        return []
    return [
        {"key": term.field, "operator": _FIELD_OPERATORS[term.operator], "values": [term.value]}
        for term in terms
        if term.field
    ]


def _of_labels(text: str) -> list[Json]:
    try:
        requirements = LabelSelector.parse(text).requirements
    except BadRequest:
        return []
    return [
        {"key": one.key, "operator": _OPERATORS[one.operator], **({"values": sorted(one.values)} if one.values else {})}
        for one in requirements
        if one.operator in _OPERATORS
    ]
