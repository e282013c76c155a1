"""Stops a variant that makes draft after draft, whatever the cause (``variants.md`` 2.15 I4, 6.11).

What was made is remembered here; that a variant was stopped is also read back from its condition Ready, so that a restart
does not start it again.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from controllers.packagevariant.cached_values import CachedVariant, Key
from krm.variants.revisions import Revision
from krm.variants.vocabulary import WORKSPACE_PREFIX

MOST_DRAFTS: Final = 3
"""Drafts of one variant within the window; with one more it is stopped."""
WINDOW_SECONDS: Final = 600.0
DRAFT_CHURN: Final = "DraftChurn"


@dataclass(slots=True)
class _Made:
    """The drafts of one variant under one spec."""

    generation: int
    at: deque[float] = field(default_factory=deque)
    """Unix times, seconds."""
    stopped: bool = False


class ChurnGuard:
    """Counts the drafts that each variant made in the last ten minutes, and refuses further ones until its spec changes.

    ``variant`` and ``owned`` read the caches; drafts that they show and that are not published count, too, so that
    neither a restart nor another leader begins at nothing. ``clock`` gives Unix time in seconds.
    """

    def __init__(
        self,
        variant: Callable[[Key], CachedVariant | None],
        owned: Callable[[str, str], Iterable[Revision]],
        *,
        most: int = MOST_DRAFTS,
        window: float = WINDOW_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._variant, self._owned = variant, owned
        self._most, self._window, self._clock = most, window, clock
        self._made: dict[Key, _Made] = {}

    def made(self, key: Key, generation: int) -> None:
        """Count a draft that was made just now."""
        self._of(key, generation).at.append(self._clock())

    def refusal(self, key: Key, generation: int) -> str:
        """Return why the variant may make no further draft now; empty where it may."""
        variant, made = self._variant(key), self._of(key, generation)
        made.stopped = made.stopped or self._was_stopped(variant, generation) or self._count(variant, made) > self._most
        if not made.stopped:
            return ""
        return (
            f"more than {self._most} drafts were made within {self._window / 60:g} minutes; "
            "no further one is made until the spec changes"
        )

    def forget(self, key: Key) -> None:
        """Drop what is known of a variant that is gone."""
        self._made.pop(key, None)

    def _of(self, key: Key, generation: int) -> _Made:
        made = self._made.get(key)
        if made is None or made.generation != generation:
            made = self._made[key] = _Made(generation)
        return made

    def _was_stopped(self, variant: CachedVariant | None, generation: int) -> bool:
        ready = variant.condition("Ready") if variant else None
        return ready is not None and ready.reason == DRAFT_CHURN and ready.generation == generation

    def _count(self, variant: CachedVariant | None, made: _Made) -> int:
        since = self._clock() - self._window
        while made.at and made.at[0] < since:
            made.at.popleft()
        return max(len(made.at), self._unpublished(variant, since))

    def _unpublished(self, variant: CachedVariant | None, since: float) -> int:
        """Count the drafts in the cache; a variant that does as it should has one at most."""
        if variant is None:
            return 0
        owned = self._owned(variant.namespace, variant.uid)
        return sum(not one.is_published and _is_ours(one) and _created(one) >= since for one in owned)


def _is_ours(revision: Revision) -> bool:
    return revision.workspace.startswith(WORKSPACE_PREFIX)


def _created(revision: Revision) -> float:
    try:
        return datetime.fromisoformat(revision.created).timestamp()
    except ValueError:
        return 0.0
