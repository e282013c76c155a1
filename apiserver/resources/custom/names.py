"""Which names a CustomResourceDefinition gets: those that no other definition of its group has.

Pure: decoded definitions in, names and a condition out. A name once accepted stays with its owner until that goes.
Source: ``kube-api.md`` 2.15.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from apiserver.machinery.definition import Json
from krm.meta.conditions import Condition


@dataclass(slots=True)
class TakenNames:
    """Names that other definitions of a group hold: of resources (plural, singular, short) and of kinds."""

    resources: set[str] = field(default_factory=set)
    kinds: set[str] = field(default_factory=set)

    def add(self, names: Json) -> None:
        """Take what a definition was given."""
        self.resources.update(name for name in (names.get("plural"), names.get("singular")) if name)
        self.resources.update(names.get("shortNames") or ())
        self.kinds.update(name for name in (names.get("kind"), names.get("listKind")) if name)


@dataclass(frozen=True, slots=True)
class Given:
    """The names that one definition has been given in its group."""

    group: str
    names: Json

    @classmethod
    def of(cls, crd: Json) -> "Given":
        """Read them from a definition's status."""
        return cls(crd["spec"]["group"], (crd.get("status") or {}).get("acceptedNames") or {})


def taken_by_others(crd: Json, given: Mapping[str, Given]) -> TakenNames:
    """Return the names that other definitions of the same group have; ``given`` is by name of the definition."""
    taken = TakenNames()
    for name, other in given.items():
        if other.group == crd["spec"]["group"] and name != crd["metadata"]["name"]:
            taken.add(other.names)
    return taken


def accept_names(crd: Json, taken: TakenNames) -> tuple[Json, Condition]:
    """Return the names a definition has from now on, and its NamesAccepted condition.

    Each name is accepted for itself; one that is taken leaves the former name in force, and the condition names it.
    """
    wanted = crd["spec"]["names"]
    accepted = dict((crd.get("status") or {}).get("acceptedNames") or {"plural": "", "kind": ""})
    reason, message = "NoConflicts", "no conflicts found"
    for key, used, conflict in (
        ("plural", taken.resources, "PluralConflict"),
        ("singular", taken.resources, "SingularConflict"),
        ("shortNames", taken.resources, "ShortNamesConflict"),
        ("kind", taken.kinds, "KindConflict"),
        ("listKind", taken.kinds, "ListKindConflict"),
    ):
        problem = _problem(wanted.get(key), accepted.get(key), used)
        if problem:
            reason, message = conflict, problem
        else:
            _put(accepted, key, wanted.get(key))
    _put(accepted, "categories", wanted.get("categories"))
    status = "True" if reason == "NoConflicts" else "False"
    ordered = {key: accepted[key] for key in _ORDER if key in accepted}
    return ordered, Condition(type="NamesAccepted", status=status, reason=reason, message=message)


_ORDER = ("plural", "singular", "shortNames", "kind", "listKind", "categories")


def _problem(wanted: str | list[str] | None, accepted: str | list[str] | None, used: set[str]) -> str:
    if wanted == accepted or not wanted:
        return ""
    if isinstance(wanted, str):
        return f'"{wanted}" is already in use' if wanted in used else ""
    before = accepted or ()
    problems = [f'"{name}" is already in use' for name in wanted if name not in before and name in used]
    return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]" if problems else ""


def _put(names: Json, key: str, value: str | list[str] | None) -> None:
    if value:
        names[key] = value
    else:
        names.pop(key, None)
