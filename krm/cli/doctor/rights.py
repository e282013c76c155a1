"""Which of the usual steps with packages the caller may not take; nothing is wrong with that, but it explains refusals."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from krm.cli.doctor.finding import Finding, Severity
from krm.client.resources import Resource

Json = dict[str, Any]

REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)


class Step(NamedTuple):
    """A step, the right that it needs, and the role that gives it."""

    what: str
    verb: str
    group: str
    resource: str
    subresource: str
    role: str


STEPS: Final = (
    Step("read packages", "list", "porch.kpt.dev", "packagerevisions", "", "view"),
    Step("write packages", "create", "porch.kpt.dev", "packagerevisions", "", "porch-author"),
    Step("approve packages", "update", "porch.kpt.dev", "packagerevisions", "approval", "porch-approver"),
    Step("register repositories", "create", "config.porch.kpt.dev", "repositories", "", "admin"),
)


def review(step: Step, namespace: str) -> Json:
    """Return the question whether the caller may take a step in a namespace; an empty one stands for all."""
    attributes = {"namespace": namespace, "verb": step.verb, "group": step.group, "resource": step.resource}
    if step.subresource:
        attributes["subresource"] = step.subresource
    return {
        "apiVersion": REVIEWS.api_version,
        "kind": REVIEWS.kind,
        "metadata": {},
        "spec": {"resourceAttributes": attributes},
    }


def of_rights(answers: Mapping[Step, bool], namespace: str) -> Iterator[Finding]:
    """Find the steps that are refused."""
    where = f"namespace {namespace}" if namespace else "all namespaces"
    for step, allowed in answers.items():
        if not allowed:
            right = f"{step.verb} {step.resource}{'/' if step.subresource else ''}{step.subresource}.{step.group}"
            fix = f"if you should, have the role {step.role} bound to you (docs/how-to/give-people-access.md)"
            yield Finding(Severity.NOTE, "You", f"may not {step.what} in {where} ({right})", fix)
