"""What has to be written so that a set's variants are what they should be; previews and the controller ask this alike.

Nothing is written here, and asking again after the writes gives nothing to write. Source: ``variants.md`` 3.5, 3.6, 6.6,
6.7 and 6.11; C-23, C-34, C-41.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

from krm.meta.conditions import find_condition
from krm.variants.sets.guards import GuardDefaults, keeps_all, refusal
from krm.variants.sets.naming import Pair, could_be_named, names
from krm.variants.sets.rendering import Rendered, prefix
from krm.variants.sets.specs import spec_digest
from krm.variants.sets.vocabulary import SET_LABEL
from krm.variants.vocabulary import PAUSED

Json = dict[str, Any]

RENDER: Final = "render"
APPLY: Final = "apply"
BEST_EFFORT: Final = "BestEffort"
NO_GUARDS: Final = GuardDefaults()
MOST_DUPLICATES: Final = 20
"""Pairs that a message names."""


@dataclass(frozen=True, slots=True)
class Existing:
    """A PackageVariant that is there."""

    name: str
    uid: str
    resource_version: str
    pair: Pair
    """Downstream repository and package that its spec names now."""
    digest: str
    """``specs.spec_digest`` of its spec."""
    spec: Json | None = None
    """Only where the caller keeps it: plans compare digests."""
    terminating: bool = False
    ours: bool = True
    """Whether the set made it; another one's only matters where its name is wanted."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    generation: int = 0
    observed_generation: int = 0
    ready: bool = False
    stalled: bool = False
    message: str = ""
    """What its condition Stalled says, while that is True."""

    @classmethod
    def of(cls, body: Json, set_uid: str, *, keep_spec: bool = False) -> "Existing":
        """Read a PackageVariant as it is on the wire, for the set with a UID."""
        meta, spec, status = body["metadata"], body.get("spec") or {}, body.get("status") or {}
        downstream = spec.get("downstream") or {}
        labels = meta.get("labels") or {}
        ready, stalled = (find_condition(status.get("conditions"), kind) or {} for kind in ("Ready", "Stalled"))
        is_stalled = stalled.get("status") == "True"
        return cls(
            name=meta["name"],
            uid=meta.get("uid") or "",
            resource_version=meta.get("resourceVersion") or "",
            pair=(downstream.get("repo") or "", downstream.get("package") or ""),
            digest=spec_digest(spec),
            spec=spec if keep_spec else None,
            terminating=bool(meta.get("deletionTimestamp")),
            ours=bool(set_uid) and labels.get(SET_LABEL) == set_uid,
            labels=labels,
            annotations=meta.get("annotations") or {},
            generation=meta.get("generation") or 0,
            observed_generation=status.get("observedGeneration") or 0,
            ready=ready.get("status") == "True",
            stalled=is_stalled,
            message=str(stalled.get("message") or "") if is_stalled else "",
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """A target that gets no variant, and why: an entry of ``status.failures``."""

    repo: str
    package: str
    stage: str
    """``render`` or ``apply``."""
    message: str
    target_index: int = -1


@dataclass(frozen=True, slots=True)
class Plan:
    """The writes, each kind by name; deletes come first, then updates, then creations."""

    deletes: tuple[Existing, ...] = ()
    updates: tuple[tuple[Existing, Json], ...] = ()
    """What is there, and its new spec; metadata stays."""
    creates: tuple[tuple[str, Json], ...] = ()
    """Name and spec."""
    unchanged: tuple[Existing, ...] = ()
    failures: tuple[Failure, ...] = ()
    duplicates: str = ""
    """The message of ``DuplicateTargets``; nothing is written then."""
    guard: str = ""
    """The message of ``DeletionGuard``; nothing is deleted then."""
    held: tuple[Existing, ...] = ()
    """What nobody wants any more and stays: because of a guard, an empty selection or a target that failed."""
    waiting: tuple[str, ...] = ()
    """Names that will be created once what has them now is gone."""
    digests: Mapping[Pair, str] = field(default_factory=dict)
    """``specs.spec_digest`` of every variant that there should be, also where it is there already."""
    waves: Mapping[Pair, int] = field(default_factory=dict)
    """Place in ``spec.rollout.waves`` of each of them; -1 where none matches."""
    names: Mapping[Pair, str] = field(default_factory=dict)
    """Name of each of them."""
    disputed: Mapping[Pair, str] = field(default_factory=dict)
    """What is wrong with each pair of which targets want different things; ``duplicates`` has the first of these."""

    blocked: bool = False
    """Whether nothing is written, whatever there is to write: because of duplicates, or failures without BestEffort."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.deletes or self.updates or self.creates)


def plan(
    set_body: Json,
    rendered: Sequence[Rendered],
    existing: Sequence[Existing],
    *,
    empty: Sequence[int] = (),
    defaults: GuardDefaults = NO_GUARDS,
) -> Plan:
    """Return what to write: what is intended, or nothing while something blocks that. Arguments as of ``intended``."""
    return held_back(intended(set_body, rendered, existing, empty=empty, defaults=defaults))


def held_back(whole: Plan) -> Plan:
    """Return a plan without its writes if it is blocked."""
    if not whole.blocked:
        return whole
    return replace(whole, deletes=(), updates=(), creates=(), unchanged=(), guard="", held=(), waiting=())


def intended(
    set_body: Json,
    rendered: Sequence[Rendered],
    existing: Sequence[Existing],
    *,
    empty: Sequence[int] = (),
    defaults: GuardDefaults = NO_GUARDS,
) -> Plan:
    """Return what would be written if nothing blocked it; of a disputed pair what its first target wants.

    Args:
        set_body: The set as it is on the wire, valid.
        rendered: What there should be, in the order of the targets.
        existing: The variants of the set, and those of others whose names may be wanted.
        empty: Targets that select nothing (``Unrolled.empty``).
        defaults: What guards say where the set says nothing.
    """
    failures = [*_render_failures(rendered)]
    wanted, disputed = _wanted(rendered, {(one.repo, one.package) for one in failures})
    matching = _matching(set_body["metadata"]["name"], wanted, existing)
    failures += matching.conflicts
    deletes, held, guard = _deletions(set_body, rendered, matching.superfluous, existing, empty, defaults)
    changed = [(have, one) for have, one in matching.pairs if have.digest != one.digest]
    return Plan(
        failures=tuple(failures),
        duplicates="; ".join(islice(disputed.values(), MOST_DUPLICATES)),
        disputed=disputed,
        blocked=bool(disputed) or (bool(failures) and not _is_best_effort(set_body)),
        digests={pair: one.digest for pair, one in wanted.items()},
        waves={pair: one.wave for pair, one in wanted.items()},
        names=matching.names,
        deletes=deletes,
        updates=tuple((have, _spec(one)) for have, one in sorted(changed, key=lambda pair: pair[0].name)),
        creates=tuple((name, _spec(one)) for name, one in sorted(matching.missing, key=lambda pair: pair[0])),
        unchanged=tuple(_by_name(have for have, one in matching.pairs if have.digest == one.digest)),
        guard=guard,
        held=held,
        waiting=tuple(sorted(matching.waiting)),
    )


def sought_names(set_name: str, rendered: Iterable[Rendered], ours: Iterable[Existing]) -> Collection[str]:
    """Return the names that new variants of a set may get: whoever plans has to know what has them already."""
    kept = {have.pair: have.name for have in ours if not have.terminating}
    missing = [
        (one.repo, one.package) for one in rendered if one.spec is not None and (one.repo, one.package) not in kept
    ]
    return names(set_name, missing, kept).values() if missing else ()


def paused(set_body: Json) -> bool:
    """Tell whether a person has paused the set: nothing is written but its status."""
    spec, meta = set_body.get("spec") or {}, set_body["metadata"]
    return bool(spec.get("suspend")) or (meta.get("annotations") or {}).get(PAUSED) == "true"


def _is_best_effort(set_body: Json) -> bool:
    return (set_body.get("spec") or {}).get("errorPolicy") == BEST_EFFORT


# --- what there should be ----------------------------------------------------------------------------


def _render_failures(rendered: Iterable[Rendered]) -> Iterator[Failure]:
    for one in rendered:
        if one.spec is None:
            yield Failure(one.repo, one.package, RENDER, one.error, one.target_index)


def _wanted(rendered: Iterable[Rendered], failed: Collection[Pair]) -> tuple[dict[Pair, Rendered], dict[Pair, str]]:
    """Return what each pair comes to, and what is wrong with those that come to different things; failed ones are neither."""
    wanted: dict[Pair, Rendered] = {}
    differing: dict[Pair, list[int]] = {}
    for one in rendered:
        pair = one.repo, one.package
        if one.spec is None or pair in failed:
            continue
        first = wanted.setdefault(pair, one)
        if first.digest != one.digest:
            differing.setdefault(pair, [first.target_index]).append(one.target_index)
    return wanted, {pair: _duplicate(pair, targets) for pair, targets in differing.items()}


def _duplicate(pair: Pair, targets: Sequence[int]) -> str:
    places = " and ".join(f"spec.targets[{index}]" for index in sorted(set(targets)))
    return f"{pair[0]}/{pair[1]}: {places} ask for different package variants of the same package"


def _spec(one: Rendered) -> Json:
    return one.spec or {}  # only what has one gets here


# --- what there is ------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Matching:
    """Which of the existing variants is which of the wanted ones."""

    pairs: list[tuple[Existing, Rendered]] = field(default_factory=list)
    missing: list[tuple[str, Rendered]] = field(default_factory=list)
    superfluous: list[Existing] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    conflicts: list[Failure] = field(default_factory=list)
    names: Mapping[Pair, str] = field(default_factory=dict)


def _matching(set_name: str, wanted: Mapping[Pair, Rendered], existing: Sequence[Existing]) -> _Matching:
    found = _Matching()
    kept = _kept(set_name, wanted, existing)
    others = {one.name: one for one in existing if one.ours and not one.terminating and kept.get(one.pair) is not one}
    going = {one.name for one in existing if one.ours and one.terminating}
    foreign = {one.name for one in existing if not one.ours}
    named = found.names = names(set_name, list(wanted), {pair: one.name for pair, one in kept.items()})
    for pair, one in wanted.items():
        name = named[pair]
        if pair in kept:
            found.pairs.append((kept[pair], one))
        elif name in foreign:
            found.conflicts.append(_conflict(name, one))
        elif name in others and not could_be_named(set_name, others[name].pair, name):
            found.pairs.append((others.pop(name), one))  # someone changed its downstream: it is put right where it is
        elif name in others or name in going:
            found.waiting.append(name)
        else:
            found.missing.append((name, one))
    found.superfluous = _by_name(others.values())
    return found


def _kept(set_name: str, wanted: Mapping[Pair, Rendered], existing: Iterable[Existing]) -> dict[Pair, Existing]:
    """Return what is there for each pair; of several, one that the set itself could have made for it."""
    kept: dict[Pair, Existing] = {}
    for one in _by_name(one for one in existing if one.ours and not one.terminating and one.pair in wanted):
        have = kept.setdefault(one.pair, one)
        if have is one or could_be_named(set_name, have.pair, have.name):
            continue
        if could_be_named(set_name, one.pair, one.name):
            kept[one.pair] = one
    return kept


def _conflict(name: str, one: Rendered) -> Failure:
    message = f'package variant "{name}" exists already, and is not of this set'
    return Failure(
        one.repo, one.package, APPLY, f"{prefix(one.target_index, one.repo, one.package)}{message}", one.target_index
    )


def _by_name(variants: Iterable[Existing]) -> list[Existing]:
    return sorted(variants, key=lambda one: one.name)


# --- what nobody wants any more -----------------------------------------------------------------------


def _deletions(
    set_body: Json,
    rendered: Iterable[Rendered],
    superfluous: Sequence[Existing],
    existing: Iterable[Existing],
    empty: Sequence[int],
    defaults: GuardDefaults,
) -> tuple[tuple[Existing, ...], tuple[Existing, ...], str]:
    """Return what is deleted, what is held although nobody wants it, and the message of the guard that holds it."""
    failed = [one for one in rendered if one.spec is None]
    unknown = any(not one.located for one in failed)
    spared = {(one.repo, one.package) for one in failed}
    if unknown or keeps_all(set_body, empty, defaults):
        return (), tuple(superfluous), ""
    deletes = [one for one in superfluous if one.pair not in spared]
    held = [one for one in superfluous if one.pair in spared]
    total = sum(one.ours and not one.terminating for one in existing)
    guard = refusal(set_body, [one.name for one in deletes], total, defaults)
    return ((), tuple(superfluous), guard) if guard else (tuple(deletes), tuple(held), "")
