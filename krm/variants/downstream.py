"""Which package revisions a variant keeps, which it takes over, and which it lets go.

Source: ``variants.md`` 2.5; ``decisions.md`` 16; C-06, C-11.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from krm.variants.revisions import Owner, Revision
from krm.variants.variant import Variant
from krm.variants.vocabulary import GROUP, KIND
from krm.variants.workspaces import next_workspace, workspace_number

__all__ = ["DEFAULT_BRANCH", "AdoptionConflict", "Discovery", "discover", "in_order", "next_workspace", "stale_owners"]

DEFAULT_BRANCH: Final = "main"
"""Of a Repository that cannot be read."""

Alive = Callable[[Owner], bool]


@dataclass(frozen=True, slots=True)
class AdoptionConflict:
    """A package revision that was to be adopted and is somebody else's."""

    revision: Revision
    owner: Owner

    @property
    def message(self) -> str:
        """Say who has it."""
        return (
            f'package revision "{self.revision.name}" cannot be adopted: {self.owner.kind} "{self.owner.name}" '
            "controls it"
        )


@dataclass(frozen=True, slots=True)
class Discovery:
    """What there is of a variant."""

    retire: tuple[Revision, ...]
    """Owned, and not of the target package."""
    adopt: tuple[Revision, ...]
    """Of the target package, and to be owned from now on."""
    targets: tuple[Revision, ...]
    """All drafts, those to be adopted included; without any the latest published revision; or nothing."""
    conflict: AdoptionConflict | None
    """The first that the policy would have adopted and somebody else controls."""
    exists_unowned: bool
    """The target package exists besides the targets: it cannot be cloned into place."""
    newest_published: Revision | None
    """Of the target package, whoever owns it."""

    def diverged_from(self, base: Revision) -> Revision | None:
        """Return the published revision that a draft made of ``base`` would drop the changes of (C-11)."""
        newest = self.newest_published
        return newest if newest is not None and newest.revision > base.revision else None


@dataclass(slots=True)
class _Sorting:
    """What becomes of each revision."""

    retire: list[Revision] = field(default_factory=list)
    adopt: list[Revision] = field(default_factory=list)
    kept: list[Revision] = field(default_factory=list)
    others: list[Revision] = field(default_factory=list)
    conflict: AdoptionConflict | None = None


def discover(variant: Variant, candidates: Iterable[Revision], branches: Mapping[str, str], alive: Alive) -> Discovery:
    """Sort the revisions of the target package, and all that the variant owns elsewhere.

    ``branches`` are those of the Repositories by name, whose placeholders are never touched; ``alive`` tells whether an
    owner still exists.
    """
    sorting = _Sorting()
    for one in in_order(candidates):
        _sort(variant, one, branches.get(one.repository) or DEFAULT_BRANCH, alive, sorting)
    published = [one for one in sorting.kept if one.is_published]
    drafts = tuple(one for one in sorting.kept if not one.is_published)
    latest = max(published, key=_age, default=None)
    every = [one for one in (*published, *sorting.others) if one.is_published and not _follows(one, branches)]
    return Discovery(
        retire=tuple(sorting.retire),
        adopt=tuple(sorting.adopt),
        targets=drafts or ((latest,) if latest else ()),
        conflict=sorting.conflict,
        exists_unowned=bool(sorting.others),
        newest_published=max(every, key=_age, default=None),
    )


def in_order(revisions: Iterable[Revision]) -> list[Revision]:
    """Return revisions in the order of their workspaces' numbers, then of their names."""
    return sorted(revisions, key=lambda one: (workspace_number(one.workspace), one.name))


def stale_owners(variant: Variant, revision: Revision, alive: Alive) -> tuple[Owner, ...]:
    """Return the references to a variant of this name that is no more: it was deleted and made again."""
    return tuple(one for one in revision.owners if _is_former_self(variant, one) and not alive(one))


def _sort(variant: Variant, one: Revision, branch: str, alive: Alive, sorting: _Sorting) -> None:
    owned = one.owned_by(variant.uid)
    if one.repository != variant.downstream_repo or one.package != variant.downstream_package:
        if owned and not one.is_placeholder(branch):
            sorting.retire.append(one)
    elif one.is_placeholder(branch) or one.deleting:
        sorting.others.append(one)
    elif owned:
        sorting.kept.append(one)
    else:
        _consider_adoption(variant, one, alive, sorting)


def _consider_adoption(variant: Variant, one: Revision, alive: Alive, sorting: _Sorting) -> None:
    stale = stale_owners(variant, one, alive)
    controller = next((owner for owner in one.owners if owner.controller and owner not in stale), None)
    restored = one.name in variant.known_targets and controller is None  # its owners went with a lost database
    if (variant.adopts or stale or restored) and controller is None:
        sorting.adopt.append(one)
        sorting.kept.append(one)
        return
    if controller is not None and variant.adopts and sorting.conflict is None:
        sorting.conflict = AdoptionConflict(one, controller)
    sorting.others.append(one)


def _is_former_self(variant: Variant, owner: Owner) -> bool:
    group = owner.api_version.partition("/")[0]
    return group == GROUP and owner.kind == KIND and owner.name == variant.name and owner.uid != variant.uid


def _follows(one: Revision, branches: Mapping[str, str]) -> bool:
    return one.is_placeholder(branches.get(one.repository) or DEFAULT_BRANCH)


def _age(one: Revision) -> tuple[int, str]:
    return one.revision, one.name
