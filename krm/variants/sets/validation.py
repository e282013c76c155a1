"""Whether a PackageVariantSet can be worked on: every rule, and the sentence for each breach.

Source: ``variants.md`` 1.5, 6.2, 6.3, 6.6, 6.7, 6.11 and 6.12; C-01, C-05, C-21, C-22.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any, Final

from krm.variants import shapes
from krm.variants import validation as variant_validation
from krm.variants.revision_choice import By, InvalidRevision, revision_choice
from krm.variants.sets.rollout_validation import guard_problems, rollout_expressions, rollout_problems
from krm.variants.sets.template_validation import (
    Written,
    expression_problem,
    template_expressions,
    template_problems,
)

Json = dict[str, Any]

MOST_PROBLEMS: Final = 50
"""Sentences; a set with more is not better described by more."""
MOST_EXPRESSIONS: Final = 1000
"""Expressions of a set."""
MOST_EXPRESSION_TEXT: Final = 100_000
"""Characters of all expressions of a set: what takes about a second to compile."""
ERROR_POLICIES: Final = ("FailFast", "BestEffort")
SELECTORS: Final = ("repositories", "repositorySelector", "objectSelector")
_ENDS: Final[Json] = {"downstream": {"repo": "downstream", "package": "package"}}
_NAMES: Final[Json] = {"repo": "upstream", "package": "package"}
"""Names that make a valid PackageVariant of an upstream's choice of revision."""


def problems(body: Json) -> list[str]:
    """Return what is wrong with a PackageVariantSet as it is on the wire, in the order of 1.5; empty when nothing is.

    Joined with ``"; "`` they are the message of ``Stalled``. Any JSON gives sentences, never an error. Compiles the
    expressions, which takes up to a second where they are many: what was compiled once is remembered.
    """
    spec = body.get("spec")
    if not isinstance(spec, dict | None):
        return ["spec must be an object"]
    found: list[str] = []
    for problem in _problems(spec or {}):
        if len(found) == MOST_PROBLEMS:
            return [*found, "and more"]
        found.append(problem)
    return found


def _problems(spec: Json) -> Iterator[str]:
    yield from _upstream(spec.get("upstream"))
    targets = spec.get("targets")
    if not targets:
        yield "must specify at least one item in spec.targets"
    expressions: list[Iterator[Written]] = []
    for one in shapes.objects(targets or None, "spec.targets"):
        if isinstance(one, str):
            yield one
            continue
        path, target = one
        yield from _target(target, path)
        yield from template_problems(target.get("template"), f"{path}.template")
        expressions.append(template_expressions(target.get("template"), f"{path}.template"))
    yield from shapes.choice(spec.get("errorPolicy"), "spec.errorPolicy", ERROR_POLICIES)
    yield from shapes.truth(spec.get("suspend"), "spec.suspend")
    yield from guard_problems(spec.get("guards"))
    yield from rollout_problems(spec.get("rollout"))
    yield from _expressions(chain(*expressions, rollout_expressions(spec.get("rollout"))))


def _expressions(written: Iterator[Written]) -> Iterator[str]:
    count = characters = 0
    for one in written:
        count, characters = count + 1, characters + len(one[1])
        if count > MOST_EXPRESSIONS or characters > MOST_EXPRESSION_TEXT:
            yield (
                f"a set may have {MOST_EXPRESSIONS} expressions of {MOST_EXPRESSION_TEXT} characters in all; the others were not checked"
            )
            return
        if problem := expression_problem(one):
            yield problem


# --- upstream (1 to 4) ----------------------------------------------------------------------------------


def _upstream(upstream: object) -> Iterator[str]:
    if upstream is None:
        yield "spec.upstream is a required field"
        return
    if not isinstance(upstream, dict):
        yield "spec.upstream must be an object"
        return
    for name in ("package", "repo"):
        if upstream.get(name) in (None, ""):
            yield f"spec.upstream.{name} is a required field"
        yield from shapes.text(upstream.get(name), f"spec.upstream.{name}")
    if not (upstream.get("workspaceName") or upstream.get("tag") or _chooses_revision(upstream.get("revision"))):
        yield "either spec.upstream.revision or spec.upstream.workspaceName must be specified"
    yield from variant_validation.problems({"spec": {"upstream": {**upstream, **_NAMES}, **_ENDS}})


def _chooses_revision(written: object) -> bool:
    try:
        return revision_choice(written).by is not By.UNSET
    except InvalidRevision:
        return True  # and there is a sentence of its own for that


# --- targets (6 to 11) ----------------------------------------------------------------------------------


def _target(target: Json, path: str) -> Iterator[str]:
    yield from _repositories(target.get("repositories"), f"{path}.repositories")
    yield from _package_names(target, path)
    selector = target.get("objectSelector")
    if isinstance(selector, dict):
        for name in ("apiVersion", "kind"):
            if selector.get(name) in (None, ""):
                yield f"{path}.objectselector.{name} cannot be empty"
        for name in ("apiVersion", "kind", "name"):
            yield from shapes.text(selector.get(name), f"{path}.objectSelector.{name}")
    for name in SELECTORS[1:]:
        yield from _labels(target.get(name), f"{path}.{name}")
        if isinstance(target.get(name), dict):
            yield from _labels(target[name].get("labelSelector"), f"{path}.{name}.labelSelector")
    if sum(target.get(name) is not None for name in SELECTORS) != 1:
        yield f"{path} must specify one of `repositories`, `repositorySelector`, or `objectSelector`"


def _repositories(repositories: object, path: str) -> Iterator[str]:
    if repositories == []:
        yield f"{path} must not be an empty list if specified"
    for one in shapes.objects(repositories, path):
        if isinstance(one, str):
            yield one
            continue
        where, repository = one
        if repository.get("name") in (None, ""):
            yield f"{where}.name cannot be empty"
        yield from shapes.text(repository.get("name"), f"{where}.name")
        yield from _names(repository.get("packageNames"), f"{where}.packageNames")


def _package_names(target: Json, path: str) -> Iterator[str]:
    """Check the names beside a selector or in it, of which the former are the proper ones (C-05)."""
    beside = target.get("packageNames")
    yield from _names(beside, f"{path}.packageNames")
    for name in SELECTORS[1:]:
        selector = target.get(name)
        inside = selector.get("packageNames") if isinstance(selector, dict) else None
        if not beside:
            yield from _names(inside, f"{path}.packageNames")
        elif inside and inside != beside:
            yield f"{path}.packageNames and {path}.{name}.packageNames must not differ"
    if beside and target.get("repositories") is not None:
        yield f"{path}.packageNames is for selectors; repositories have packageNames of their own"


def _names(names: object, path: str) -> Iterator[str]:
    yield from shapes.string_list(names, path)
    for place, name in enumerate(names if isinstance(names, list) else ()):
        if name == "":
            yield f"{path}[{place}] cannot be empty"


def _labels(selector: object, path: str) -> Iterator[str]:
    """Check the shape of a label selector; what its operators take is found out when it is used (3.2)."""
    if selector is None:
        return
    if not isinstance(selector, dict):
        yield f"{path} must be an object"
        return
    yield from shapes.string_map(selector.get("matchLabels"), f"{path}.matchLabels")
    for one in shapes.objects(selector.get("matchExpressions"), f"{path}.matchExpressions"):
        if isinstance(one, str):
            yield one
            continue
        where, requirement = one
        for name in ("key", "operator"):
            if not isinstance(requirement.get(name), str):
                yield f"{where}.{name} must be a text"
        yield from shapes.string_list(requirement.get("values"), f"{where}.values")
