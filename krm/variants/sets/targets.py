"""From the targets of a set to what gets a variant: repositories by name, Repositories by labels, any objects.

Source: ``variants.md`` 3.2; C-05, C-25, C-26, C-34.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from krm.meta.selectors import LabelSelector, Operator, Requirement
from krm.variants.sets.vocabulary import REPOSITORY

Json = dict[str, Any]
Kind = tuple[str, str]
"""API version and kind."""

NO_MATCHING_TARGETS: Final = "NoMatchingTargets"
UNEXPECTED_ERROR: Final = "UnexpectedError"
SECRET: Final = ("v1", "Secret")
NEVER_SELECTED: Final = "objects of kind Secret are never selected"
_OPERATORS: Final[Mapping[str, Operator]] = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.MISSING,
}
MOST_CONTEXTS: Final = 50_000
"""Variants that a set may ask for: five times the scale that sets are measured at."""
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""An annotation that repeats the whole object: expressions may see no more than metadata."""


class UnrollError(Exception):
    """The targets cannot be determined. The text is the message of ``Stalled``, ``reason`` its reason."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        """``NoMatchingTargets`` for a kind that is not served, otherwise ``UnexpectedError``."""


@dataclass(frozen=True, slots=True)
class SelectedObject:
    """The metadata of an object of the cluster that a target can select."""

    api_version: str
    kind: str
    namespace: str
    """Empty for an object of the cluster as a whole."""
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    deleting: bool = False

    @classmethod
    def of(cls, body: Json, kind: Kind) -> "SelectedObject":
        """Read an object, or only its metadata (PartialObjectMetadata does not name the kind)."""
        meta = body["metadata"]
        return cls(
            api_version=kind[0],
            kind=kind[1],
            namespace=meta.get("namespace") or "",
            name=meta["name"],
            labels=meta.get("labels") or {},
            annotations=visible_annotations(meta.get("annotations")),
            deleting=bool(meta.get("deletionTimestamp")),
        )


@dataclass(frozen=True, slots=True)
class Context:
    """What one variant is rendered from."""

    target_index: int
    """Place in ``spec.targets``."""
    template: Json | None
    repo_default: str
    package_default: str
    target: SelectedObject | None
    """What was selected; None for a repository that is named (C-26)."""


@dataclass(frozen=True, slots=True)
class Unrolled:
    """What gets variants, in the order of the targets, names in order within each."""

    contexts: list[Context]
    empty: tuple[int, ...]
    """Targets that selected nothing: a warning, and a matter for ``onEmptySelection`` (C-34)."""


def visible_annotations(annotations: Mapping[str, str] | None) -> Mapping[str, str]:
    """Return what expressions may see of an object's annotations."""
    if not annotations or _LAST_APPLIED not in annotations:
        return annotations or {}
    return {key: value for key, value in annotations.items() if key != _LAST_APPLIED}


def selected_kinds(spec: Json) -> set[Kind]:
    """Return the kinds that must be listed and watched for a valid set, besides Repositories."""
    return {kind for target in _targets(spec) if (kind := _selected_kind(target)) is not None} - {REPOSITORY}


def unroll(
    spec: Json,
    namespace: str,
    repositories: Sequence[SelectedObject],
    objects: Mapping[Kind, Sequence[SelectedObject] | str],
) -> Unrolled:
    """Return what the targets of a valid set select.

    ``repositories`` are the Repositories of the namespace, ``objects`` what there is of each of ``selected_kinds``: its
    objects, or why they cannot be listed; a kind that is not served is missing.

    Raises:
        UnrollError: a kind is not served or cannot be listed, a selector is invalid, or there are more than ``MOST_CONTEXTS``.
    """
    contexts: list[Context] = []
    empty: list[int] = []
    for index in range(len(_targets(spec))):
        found = unroll_target(spec, index, namespace, repositories, objects)
        contexts += found
        _check_count(len(contexts))
        if not found:
            empty.append(index)
    return Unrolled(contexts, tuple(empty))


def unroll_target(
    spec: Json,
    index: int,
    namespace: str,
    repositories: Sequence[SelectedObject],
    objects: Mapping[Kind, Sequence[SelectedObject] | str],
) -> list[Context]:
    """Return what one target of a valid set selects; arguments and errors as of ``unroll``."""
    target = _targets(spec)[index]
    template = target.get("template")
    names = _package_names(target) or [spec["upstream"]["package"]]
    if target.get("repositories"):
        _check_count(sum(len(repository.get("packageNames") or names) for repository in target["repositories"]))
        return [
            Context(index, template, repository["name"], name, None)
            for repository in target["repositories"]
            for name in repository.get("packageNames") or [spec["upstream"]["package"]]
        ]
    selected = _selected(target, index, namespace, repositories, objects)
    _check_count(len(selected) * len(names))
    return [Context(index, template, one.name, name, one) for one in selected for name in names]


def _check_count(count: int) -> None:
    if count > MOST_CONTEXTS:
        raise UnrollError(
            UNEXPECTED_ERROR, f"a set may have {MOST_CONTEXTS} package variants; its targets ask for more"
        )


def selects(target: Json, candidate: SelectedObject) -> bool:
    """Tell whether a target of a valid set concerns an object: selects it, or names it in ``repositories``."""
    return target_filter(target)(candidate)


def target_filter(target: Json) -> Callable[[SelectedObject], bool]:
    """Return ``selects`` of a target as a function, for thousands of objects; an invalid selector concerns its whole kind."""
    kind = _selected_kind(target)
    if kind is None:
        names = {repository.get("name") for repository in target.get("repositories") or ()}
        return lambda one: (one.api_version, one.kind) == REPOSITORY and one.name in names
    selector = _selector(target)
    name = selector.get("name")
    try:
        accepts = label_selector(selector).predicate()
    except ValueError:
        return lambda one: (one.api_version, one.kind) == kind
    return lambda one: (one.api_version, one.kind) == kind and name in (None, "", one.name) and accepts(one.labels)


def label_selector(selector: Json) -> LabelSelector:
    """Read ``matchLabels`` and ``matchExpressions``, beside each other or below ``labelSelector``; all must hold.

    Raises:
        ValueError: an operator is unknown, or has values that it does not take.
    """
    return LabelSelector(tuple(_requirements(selector)))


def _requirements(selector: Json) -> Iterator[Requirement]:
    for part in (selector, selector.get("labelSelector") or {}):
        for key, value in (part.get("matchLabels") or {}).items():
            yield Requirement(key, Operator.IN, frozenset({value}))
        yield from map(_requirement, part.get("matchExpressions") or ())


def _requirement(written: Json) -> Requirement:
    operator, values = _OPERATORS.get(written["operator"]), written.get("values") or []
    if operator is None:
        raise ValueError(f'"{written["operator"]}" is not a valid label selector operator')
    takes_values = operator in (Operator.IN, Operator.NOT_IN)
    if takes_values and not values:
        raise ValueError(f"values of {written['key']}: for 'in', 'notin' operators, values set can't be empty")
    if values and not takes_values:
        raise ValueError(f"values of {written['key']}: values set must be empty for exists and does not exist")
    return Requirement(written["key"], operator, frozenset(values))


def _targets(spec: Json) -> list[Json]:
    return spec.get("targets") or []


def _selected_kind(target: Json) -> Kind | None:
    if target.get("repositorySelector") is not None:
        return REPOSITORY
    selector = target.get("objectSelector")
    return (selector.get("apiVersion", ""), selector.get("kind", "")) if selector is not None else None


def _selector(target: Json) -> Json:
    """Return the selector of a target that has one."""
    repositories: Json | None = target.get("repositorySelector")
    return target["objectSelector"] if repositories is None else repositories


def _package_names(target: Json) -> list[str]:
    """Return the names that a target with a selector lists, wherever it does (C-05)."""
    selector = target.get("repositorySelector") or target.get("objectSelector") or {}
    return target.get("packageNames") or selector.get("packageNames") or []


def _selected(
    target: Json,
    index: int,
    namespace: str,
    repositories: Sequence[SelectedObject],
    objects: Mapping[Kind, Sequence[SelectedObject] | str],
) -> list[SelectedObject]:
    kind = _selected_kind(target)
    if kind is None:
        return []
    candidates = repositories if kind == REPOSITORY else _listed(kind, objects, f"spec.targets[{index}].objectSelector")
    selector = _selector(target)
    where = f"spec.targets[{index}].{'objectSelector' if 'objectSelector' in target else 'repositorySelector'}"
    try:
        accepts = label_selector(selector).predicate()
    except ValueError as error:
        raise UnrollError(UNEXPECTED_ERROR, f"{where}: {error}") from error
    name = selector.get("name")
    matching = [one for one in _present(candidates, namespace, kind) if accepts(one.labels)]
    return sorted((one for one in matching if name in (None, "", one.name)), key=lambda one: one.name)


def _listed(kind: Kind, objects: Mapping[Kind, Sequence[SelectedObject] | str], where: str) -> Sequence[SelectedObject]:
    found = objects.get(kind)
    if found is None:
        raise UnrollError(NO_MATCHING_TARGETS, f'{where}: no matches for kind "{kind[1]}" in version "{kind[0]}"')
    if isinstance(found, str):
        raise UnrollError(UNEXPECTED_ERROR, f"{where}: {found}")
    return found


def _present(candidates: Iterable[SelectedObject], namespace: str, kind: Kind) -> Iterator[SelectedObject]:
    """Objects of the namespace, or of the cluster as a whole; Repositories that are being deleted get no variants."""
    for one in candidates:
        if one.namespace in (namespace, "") and not (one.deleting and kind == REPOSITORY):
            yield one
