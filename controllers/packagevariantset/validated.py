"""What validation said of the spec of each set, asked once for each generation. Source: ``variants.md`` 1.5, 6.9."""

import asyncio
from dataclasses import dataclass
from typing import Any

from controllers.packagevariantset.cached_values import CachedSet, Key
from krm.variants.sets.validation import problems

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Validated:
    uid: str
    generation: int
    spec: Json
    problems: tuple[str, ...]


class ValidatedSpecs:
    """The specs of sets, each the same object as long as its generation lasts, and what is wrong with them."""

    def __init__(self) -> None:
        self._known: dict[Key, _Validated] = {}
        self._turn = asyncio.Lock()

    async def of(self, one: CachedSet) -> tuple[Json, tuple[str, ...]]:
        """Return the spec of a set and what is wrong with it; compiling expressions takes up to a second, in a thread."""
        known = self._known.get(one.key)
        if known is None or (known.uid, known.generation) != (one.uid, one.generation):
            async with self._turn:
                found = await asyncio.to_thread(problems, one.body)
            known = _Validated(one.uid, one.generation, one.body.get("spec") or {}, tuple(found))
            self._known[one.key] = known
        return known.spec, known.problems

    def forget(self, key: Key) -> None:
        """Drop what is known of a set; repeating it changes nothing."""
        self._known.pop(key, None)
