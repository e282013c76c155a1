"""Where set-labels writes, by kind, and the writing: as plain as it can be, for packages of thousands of objects.

Source: ``kpt.md`` 4.5, the table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

_EACH = "[]"
"""In a path: every element of the list."""

Labels = Sequence[tuple[str, str]]
"""Keys and values, in the order in which they are written."""


class FieldTypeError(Exception):
    """A field on the way to labels is not what the table says; the text names it."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A map that gets labels, below ``base``."""

    path: tuple[str, ...]
    """Up to the map, or to a list of what ``then`` is in."""
    create: bool
    """Whether the map is created, and labels that it lacks are added."""
    then: "_Place | None" = None


@dataclass(frozen=True, slots=True)
class _Rule:
    kinds: frozenset[tuple[str | None, str]]
    """Group (None for any) and kind; empty for every kind."""
    base: tuple[str, ...]
    """What must exist for the place to be visited."""
    place: _Place


Plan = tuple[tuple[tuple[str, ...], tuple[_Place, ...]], ...]
"""The places of one kind, by their base."""


def _kinds(*names: str) -> frozenset[tuple[str | None, str]]:
    """Read ``group/Kind``, with ``*`` for any group and nothing for the core group."""
    pairs = (name.rpartition("/") for name in names)
    return frozenset((None if group == "*" else group, kind) for group, _, kind in pairs)


def _place(path: str, *, create: bool) -> _Place:
    first, _, rest = path.partition(f"/{_EACH}/")
    then = _place(rest, create=create) if rest else None
    return _Place(tuple(first.split("/")), create and then is None, then)


def _rules(kinds: frozenset[tuple[str | None, str]], base: str, *places: _Place) -> tuple[_Rule, ...]:
    return tuple(_Rule(kinds, tuple(base.split("/")) if base else (), place) for place in places)


_REPLICATED = ("*/Deployment", "*/ReplicaSet", "*/DaemonSet", "apps/StatefulSet")
_TEMPLATED = _kinds("ReplicationController", *_REPLICATED, "batch/Job")
_NETWORK_POLICY = _kinds("networking.k8s.io/NetworkPolicy")
_CRON_JOB = _kinds("batch/CronJob")
_POD_TEMPLATE = (
    _place("metadata/labels", create=True),
    _place("spec/topologySpreadConstraints/[]/labelSelector/matchLabels", create=False),
    *(
        _place(f"spec/affinity/{affinity}/{selector}/matchLabels", create=False)
        for affinity in ("podAffinity", "podAntiAffinity")
        for selector in (
            "requiredDuringSchedulingIgnoredDuringExecution/[]/labelSelector",
            "preferredDuringSchedulingIgnoredDuringExecution/[]/podAffinityTerm/labelSelector",
        )
    ),
)
_RULES = (
    *_rules(frozenset(), "", _place("metadata/labels", create=True)),
    *_rules(_kinds("Service", "ReplicationController"), "", _place("spec/selector", create=True)),
    *_rules(_kinds(*_REPLICATED), "", _place("spec/selector/matchLabels", create=True)),
    *_rules(_kinds("batch/Job", "policy/PodDisruptionBudget"), "", _place("spec/selector/matchLabels", create=False)),
    *_rules(
        _NETWORK_POLICY,
        "",
        _place("spec/podSelector/matchLabels", create=False),
        _place("spec/ingress/[]/from/[]/podSelector/matchLabels", create=False),
        _place("spec/egress/[]/to/[]/podSelector/matchLabels", create=False),
    ),
    *_rules(_kinds("apps/StatefulSet"), "", _place("spec/volumeClaimTemplates/[]/metadata/labels", create=True)),
    *_rules(_TEMPLATED, "spec/template", *_POD_TEMPLATE),
    *_rules(
        _CRON_JOB,
        "spec/jobTemplate",
        _place("metadata/labels", create=True),
        _place("spec/selector/matchLabels", create=False),
    ),
    *_rules(_CRON_JOB, "spec/jobTemplate/spec/template", *_POD_TEMPLATE),
)


@lru_cache(maxsize=1024)
def label_plan(api_version: str, kind: str) -> Plan:
    """Return where objects of a kind get labels."""
    group = api_version.rpartition("/")[0]
    plan: dict[tuple[str, ...], list[_Place]] = {}
    for rule in _RULES:
        if not rule.kinds or (group, kind) in rule.kinds or (None, kind) in rule.kinds:
            plan.setdefault(rule.base, []).append(rule.place)
    return tuple((base, tuple(places)) for base, places in plan.items())


def write_labels(data: dict[str, Any], plan: Plan, labels: Labels) -> int:
    """Write ``labels`` at the places of ``plan``; return how often a label was written, there already or left out.

    Raises:
        FieldTypeError: something on the way is neither map nor list; the object is then half done.
    """
    visited = 0
    for base, places in plan:
        owner: Any = data
        for name in base:
            owner = owner.get(name)
            if type(owner) is not dict:
                break
        else:
            for place in places:
                visited += _write(owner, place, labels)
            continue
        if owner is not None:
            raise FieldTypeError(f"field {'.'.join(base)} is not a map")
    return visited


def _write(owner: dict[str, Any], place: _Place, labels: Labels) -> int:
    if place.then is not None:
        return _write_each(owner, place, place.then, labels)
    create = place.create
    for name in place.path:
        value = owner.get(name)
        if value is None:
            if not create:
                return len(labels)
            value = owner[name] = {}
        elif type(value) is not dict:
            raise FieldTypeError(f"field {'.'.join(place.path)}: {name} is not a map")
        owner = value
    for key, label in labels:
        if create or key in owner:
            owner[key] = label
    return len(labels)


def _write_each(owner: Any, place: _Place, then: _Place, labels: Labels) -> int:
    for name in place.path:
        if type(owner) is not dict:
            raise FieldTypeError(f"field {'.'.join(place.path)}: what {name} is in is not a map")
        owner = owner.get(name)
        if owner is None:
            return 0
    if type(owner) is not list:
        raise FieldTypeError(f"field {'.'.join(place.path)} is not a list")
    visited = 0
    for item in owner:
        if type(item) is not dict:
            raise FieldTypeError(f"an element of {'.'.join(place.path)} is not a map")
        visited += _write(item, then, labels)
    return visited
