"""The other controllers: that of variants brings them about, packages are published, the garbage collector takes what is nobody's.

Each does one thing at a time, when chance lets it: so that the controller of sets sees everything half done.
"""

import random
from typing import Any

from variant_model.porch import REVISIONS, VARIANTS, PorchModel, copied

from set_model.people import People, published_revision
from set_model.wanted import NAMESPACE, PAUSED, SET_LABEL, newest_upstream, pair_of, published, set_of

Json = dict[str, Any]


class Surroundings:
    """Everybody who works for variants, and never writes their specs."""

    def __init__(self, porch: PorchModel, people: People, chance: random.Random) -> None:
        self._porch, self._people, self._chance = porch, people, chance
        self.frozen = False
        """Nobody does anything."""

    def work(self) -> bool:
        """Do one of the things that there are to do; tell whether there was any."""
        todo = [] if self.frozen else [one for one in self._porch.all(VARIANTS) if self._is_to_do(one)]
        if todo:
            self._do(self._chance.choice(todo))
        return bool(todo)

    def _is_to_do(self, one: Json) -> bool:
        return self._is_orphan(one) or bool(one["metadata"].get("deletionTimestamp")) or self._is_behind(one)

    def _is_orphan(self, one: Json) -> bool:
        uid = (one["metadata"].get("labels") or {}).get(SET_LABEL)
        now = set_of(self._porch)
        return bool(uid) and (now is None or now["metadata"]["uid"] != uid)

    def _is_behind(self, one: Json) -> bool:
        if (one["metadata"].get("annotations") or {}).get(PAUSED) == "true":
            return False
        status = one.get("status") or {}
        is_told = status.get("observedGeneration") == one["metadata"]["generation"]
        return not is_told or status["conditions"] != self._conditions(one) or self._is_unpublished(one)

    def _do(self, one: Json) -> None:
        meta = one["metadata"]
        if meta.get("deletionTimestamp"):
            freed = copied(one)
            freed["metadata"].pop("finalizers", None)
            self._porch.update(VARIANTS, freed, by="variants' controller")
        elif self._is_orphan(one):
            self._porch.delete(VARIANTS, NAMESPACE, meta["name"], by="garbage collector")
        elif self._is_unpublished(one):
            self._publish(*pair_of(one), self._source(one))
        else:
            status = {"observedGeneration": meta["generation"], "conditions": self._conditions(one)}
            self._porch.update(VARIANTS, {**copied(one), "status": status}, "status", by="variants' controller")

    # --- how a variant is ---------------------------------------------------------------------------

    def _source(self, one: Json) -> int:
        """Return the number of the revision of the blueprint that a variant names; 0 where there is none."""
        newest, number = newest_upstream(self._porch), one["spec"]["upstream"]["revision"]
        number = newest if number == "latest" else number
        return number if number <= newest else 0

    def _fails(self, one: Json) -> bool:
        return pair_of(one)[0] in self._people.broken or not self._source(one)

    def _is_unpublished(self, one: Json) -> bool:
        return not self._fails(one) and published(self._porch, *pair_of(one)) != self._source(one)

    def _conditions(self, one: Json) -> list[Json]:
        ready = ("False", "MutationFailed") if self._fails(one) else ("True", "NoErrors")
        states = {"Stalled": ("False", "Valid"), "Ready": ready}
        return [{"type": kind, "status": status, "reason": why} for kind, (status, why) in states.items()]

    def _publish(self, repo: str, package: str, source: int) -> None:
        number = 1 + sum(1 for _ in self._porch.revisions_of(repo, package))
        self._porch.forge(REVISIONS, published_revision(repo, package, number, source))
