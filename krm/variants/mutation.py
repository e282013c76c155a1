"""What a variant makes of a package: its context, its pipeline and its injected configuration, in this order.

Values in, values out; a package that says it all already comes back byte for byte. Source: ``variants.md`` 2.9.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from krm.package.kptfile_edit import KptfileEdit, edit_kptfile
from krm.package.kptfile_error import KptfileError
from krm.variants.injection import Listing, Source, choose, conditions_of, injection_edits
from krm.variants.injection_points import InjectionPoint, injection_points
from krm.variants.kptfile import KPTFILE, KptfileFacts, read_kptfile
from krm.variants.mutation_error import MutationError
from krm.variants.package_context import context_edits
from krm.variants.pipeline import pipeline_of
from krm.variants.variant import Variant

__all__ = [
    "InjectionPoint",
    "Listing",
    "Mutation",
    "MutationError",
    "Source",
    "check_upstream",
    "injection_points",
    "mutate",
]

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Mutation:
    """A package after its mutation."""

    resources: dict[str, str]
    """All its files: path → text."""
    sources: tuple[Source, ...]
    """What each injection point got, in the order of the points."""
    points: tuple[InjectionPoint, ...]


def mutate(
    variant: Variant,
    named: str,
    resources: Mapping[str, str] | None,
    listings: Mapping[tuple[str, str], Listing],
) -> Mutation:
    """Change a package as its variant says. Doing it again changes nothing.

    Nothing waits, but a package of a megabyte takes a second on first sight.

    Args:
        variant: A valid variant.
        named: The package revision, ``namespace/name``, for messages.
        resources: The package's files; they stay as they are.
        listings: What the cluster has, by apiVersion and kind of the injection points; none where one is missing.

    Raises:
        MutationError: the package cannot be changed so.
    """
    texts = _present(resources, named)
    texts |= context_edits(variant, named, texts)
    kptfile = read_kptfile(texts, named)
    pipeline = pipeline_of(variant, kptfile.pipeline)
    points = injection_points(texts)
    outcomes = choose(variant, points, listings)
    texts |= injection_edits(texts, points, outcomes)
    conditions = conditions_of(variant, points, outcomes, kptfile.conditions)
    required = [point.condition_type for point in points if point.required]
    texts[KPTFILE] = _kptfile(texts[KPTFILE], kptfile, pipeline, required, conditions)
    return Mutation(texts, tuple(outcome.source for outcome in outcomes), tuple(points))


def check_upstream(variant: Variant, named: str, resources: Mapping[str, str] | None) -> list[InjectionPoint]:
    """Find out, before a draft is made, what of an upstream package would keep it from being mutated.

    The package context is no part of it: the server makes one while it clones. Returns the injection points.

    Raises:
        MutationError: as :func:`mutate`.

    Source: ``variants.md`` 2.8, pre-flight.
    """
    texts = _present(resources, named)
    pipeline_of(variant, read_kptfile(texts, named).pipeline)
    return injection_points(texts)


def _present(resources: Mapping[str, str] | None, named: str) -> dict[str, str]:
    if resources is None:
        raise MutationError(f"nil resources found for PackageRevisionResources '{named}'")
    return dict(resources)


def _kptfile(
    text: str,
    facts: KptfileFacts,
    pipeline: Mapping[str, list[Any]],
    required: Iterable[str],
    conditions: Sequence[Json],
) -> str:
    """Return the Kptfile with functions, gates and conditions; the very same text when it has them."""
    edit = KptfileEdit(
        pipeline=None if _same_lists(pipeline, facts.pipeline) else pipeline,
        readiness_gates=_with_gates(facts.gates, required),
        conditions=_with_conditions(facts.conditions, conditions),
    )
    if edit == KptfileEdit():
        return text
    try:
        return edit_kptfile(text.encode(), edit).decode()
    except KptfileError as error:
        raise MutationError(str(error)) from None


def _same_lists(one: Mapping[str, list[Any]], other: Mapping[str, list[Any]]) -> bool:
    return all((one.get(key) or []) == (other.get(key) or []) for key in one.keys() | other.keys())


def _with_gates(gates: Sequence[str], required: Iterable[str]) -> list[str] | None:
    """Return the gates with those required, sorted; None when they are all there. None is ever removed."""
    wanted = {*gates, *required}
    return None if wanted == set(gates) else sorted(wanted)


def _with_conditions(conditions: Sequence[Json], wanted: Sequence[Json]) -> list[Json] | None:
    """Return the conditions with those wanted in place of the ones of their types, sorted; None when they are there."""
    types = {condition["type"] for condition in wanted}
    own = sorted((one for one in conditions if one.get("type") in types), key=_type)
    if own == sorted(wanted, key=_type):
        return None
    return sorted([*(one for one in conditions if one.get("type") not in types), *wanted], key=_type)


def _type(condition: Json) -> str:
    return str(condition.get("type") or "")
