"""Which object of the cluster goes into which injection point of a package, and what is told of it.

Source: ``variants.md`` 2.9.3 steps 4 to 8, C-12; seed 000, "Configuration injection details".
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from krm.package.documents import limit_depth, read_resources
from krm.package.yaml_edit_text import edit_document, edit_json
from krm.package.yaml_reader import MAX_DEPTH, YamlError, read_document, same
from krm.variants.injection_points import InjectionPoint
from krm.variants.mutation_error import MutationError
from krm.variants.string_map import with_strings
from krm.variants.variant import InjectionSelector, Variant
from krm.variants.vocabulary import INJECTED_NAME, INJECTED_NAME_OF_UPSTREAM

Json = dict[str, Any]

MAX_COPIED: Final = 16 << 20
"""Characters of JSON that are copied into one package; an object of the cluster has at most some 1.5 million."""
_CONFIG_MAP = ("v1", "ConfigMap")
_TRUE, _FALSE = "True", "False"


@dataclass(frozen=True, slots=True)
class Listing:
    """What the cluster has of one apiVersion and kind, in the variant's namespace."""

    objects: Mapping[str, Json] = field(default_factory=dict)
    """Name → the whole object."""
    error: str = ""
    """Why it could not be listed: not served, forbidden, cluster-scoped."""


@dataclass(frozen=True, slots=True)
class Source:
    """What was chosen for an injection point; ``name`` is empty when nothing was, ``value`` None when nothing was copied."""

    point_type: str
    api_version: str
    kind: str
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class _Outcome:
    """Of one injection point; ``note`` says why nothing is copied."""

    source: Source
    note: str = ""


def choose(
    variant: Variant, points: Iterable[InjectionPoint], listings: Mapping[tuple[str, str], Listing]
) -> list[_Outcome]:
    """Find the object for each point: that of the first selector that names one of its kind.

    A selector that names an object is the last that is asked, even when that object has nothing to copy.
    """
    return [_choice(variant, point, listings.get((point.api_version, point.kind), Listing())) for point in points]


def conditions_of(
    variant: Variant, points: Sequence[InjectionPoint], outcomes: Sequence[_Outcome], inherited: Iterable[Json]
) -> list[Json]:
    """Return the conditions of the points, but for those that a variant without selectors leaves as they are.

    ``inherited`` are the conditions that the Kptfile has: a package that another variant injected into stays so.
    """
    fulfilled = {one.get("type") for one in inherited if one.get("status") == _TRUE}
    return [
        _condition(point, outcome)
        for point, outcome in zip(points, outcomes, strict=True)
        if variant.injectors or not point.injected or point.condition_type not in fulfilled
    ]


def injection_edits(
    texts: Mapping[str, str], points: Sequence[InjectionPoint], outcomes: Sequence[_Outcome]
) -> dict[str, str]:
    """Return the files that the copies change, by path.

    Raises:
        MutationError: the copies are more than ``MAX_COPIED`` together.
    """
    chosen: dict[str, list[tuple[InjectionPoint, Source]]] = {}
    sizes: dict[int, int] = {}
    copied = 0
    for point, outcome in zip(points, outcomes, strict=True):
        if outcome.note:
            continue
        chosen.setdefault(point.file, []).append((point, outcome.source))
        value = outcome.source.value
        copied += sizes.get(id(value)) or sizes.setdefault(id(value), len(json.dumps(value)))
        if copied > MAX_COPIED:
            raise MutationError(
                f"{point.file}: what is injected into the package is larger than {MAX_COPIED >> 20} MiB"
            )
    edited = {path: _with_copies(path, texts[path], copies) for path, copies in chosen.items()}
    return {path: text for path, text in edited.items() if text != texts[path]}


def field_of(api_version: str, kind: str) -> str:
    """Return the field that is copied from objects of a kind."""
    return "data" if (api_version, kind) == _CONFIG_MAP else "spec"


def _choice(variant: Variant, point: InjectionPoint, listing: Listing) -> _Outcome:
    nothing = Source(point.condition_type, point.api_version, point.kind, "", None)
    if not variant.injectors:
        return _Outcome(nothing, "no injectors defined")
    if listing.error:
        return _Outcome(nothing, listing.error)
    if not listing.objects:
        return _Outcome(nothing, f"no in-cluster resources of type {point.api_version}.{point.kind}")
    for selector in variant.injectors:
        one = listing.objects.get(selector.name)
        if one is not None and _concerns(selector, point) and _lives_in(variant.namespace, one):
            return _copy(nothing, selector.name, one)
    return _Outcome(nothing, "no resource matched any injection selector for this injection point")


def _lives_in(namespace: str, one: Json) -> bool:
    """Nothing of another namespace is ever copied, whoever listed it."""
    return bool((one.get("metadata") or {}).get("namespace", namespace) == namespace)


def _concerns(selector: InjectionSelector, point: InjectionPoint) -> bool:
    group, _, version = point.api_version.rpartition("/")
    wanted = (selector.group, group), (selector.version, version), (selector.kind, point.kind)
    return all(one is None or one == other for one, other in wanted)


def _copy(nothing: Source, name: str, one: Json) -> _Outcome:
    key = field_of(nothing.api_version, nothing.kind)
    value = one.get(key)
    source = Source(nothing.point_type, nothing.api_version, nothing.kind, name, value)
    if value is None:
        return _Outcome(source, f'field "{key}" not found in resource "{name}"')
    try:
        limit_depth({key: value})
    except YamlError:
        # Written into a package it could not be read again.
        without = Source(nothing.point_type, nothing.api_version, nothing.kind, name, None)
        return _Outcome(without, f'field "{key}" of resource "{name}" is nested deeper than {MAX_DEPTH - 1} levels')
    return _Outcome(source)


def _condition(point: InjectionPoint, outcome: _Outcome) -> Json:
    is_injected = not outcome.note
    return {
        "type": point.condition_type,
        "status": _TRUE if is_injected else _FALSE,
        "reason": "ConfigInjected" if is_injected else "NoResourceSelected",
        "message": outcome.note or f'injected resource "{outcome.source.name}" from cluster',
    }


def _with_copies(path: str, text: str, copies: Sequence[tuple[InjectionPoint, Source]]) -> str:
    pieces, documents, is_json = read_resources(path, text.encode())
    for point, source in copies:
        document = documents[point.document]
        wanted = _injected(document.data, document.text, source, is_json=is_json)
        edit = edit_json if is_json else edit_document
        pieces[2 * point.document] = edit(document.text, wanted, document.data)
    return "".join(pieces)


def _injected(data: Json, text: str, source: Source, *, is_json: bool) -> Json:
    """Return a point's data with the copy in it, and the name of the object that it comes from."""
    key = field_of(source.api_version, source.kind)
    old, value = data.get(key), source.value
    if key == "data" and isinstance(old, dict) and isinstance(value, dict) and not is_json:
        value = with_strings(old, read_document(text, as_text=True).get(key) or {}, value)
    metadata = data["metadata"]
    annotations = {**metadata["annotations"], INJECTED_NAME: source.name}
    if INJECTED_NAME_OF_UPSTREAM in annotations:
        annotations[INJECTED_NAME_OF_UPSTREAM] = source.name
    wanted = {**data, "metadata": {**metadata, "annotations": annotations}}
    if key not in data or not same(old, value):
        wanted[key] = value
    return wanted
