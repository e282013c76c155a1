"""Remembering what single functions made of their input, so that work that cannot differ is skipped.

For functions that take long: comparing the input costs about as much as a small function does. What takes
long is found out by running it. Source: ``kpt.md`` 8.2 point 9.
"""

import marshal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from time import perf_counter
from typing import NamedTuple

from krm.functions.resource import Resource
from krm.functions.runner import FunctionConfig, FunctionResult, ResourceList
from krm.functions.size_bound import SizeBound

_SLOW_CALL = 0.005
"""Seconds from which on a call may be worth remembering."""
_SLOW_RESOURCE = 0.0002
"""Seconds per resource, likewise; several times what comparing and copying one takes."""
_FORMAT = 2
"""Of ``marshal``: the last whose bytes depend on nothing but the values."""
_MOST_SLOW_IMAGES = 1000


@dataclass(frozen=True, slots=True)
class _Output:
    """One resource of a function's output, and which one of the input it is, if any."""

    place: int | None
    resource: Resource


class Lookup(NamedTuple):
    """What was looked for, and whether it was there; functions that are not known to be slow are not looked for."""

    image: str
    found: bool


class StepCache:
    """Outputs of deterministic functions by image, configuration and input; not for several threads at once."""

    def __init__(self, max_bytes: int) -> None:
        self._results: SizeBound[bytes, tuple[list[_Output], FunctionResult]] = SizeBound(max_bytes)
        self._slow: dict[str, None] = {}
        self._lookups: Counter[Lookup] = Counter()

    def run(
        self, image: str, resources: ResourceList, call: Callable[[ResourceList], FunctionResult]
    ) -> FunctionResult:
        """Return what ``call`` makes of ``resources``, from memory when it is there."""
        if image not in self._slow:
            return self._timed(image, resources, call)
        given = list(resources.items)
        key, size = _key(image, resources.config, given)
        found = self._results.get(key)
        self._lookups[Lookup(image, found is not None)] += 1
        if found is not None:
            return _applied(*found, given)
        result = call(resources)
        if not result.exit_code:
            places = {id(item): place for place, item in enumerate(given)}
            outputs = [_Output(places.get(id(item)), item.copy()) for item in result.items]
            summary = FunctionResult([], result.results, stderr=result.stderr)
            self._results.put(key, (outputs, summary), 3 * size + len(repr(result.results)))
        return result

    def take_lookups(self) -> dict["Lookup", int]:
        """Return how often outputs were looked for since the last time that this was asked."""
        taken = dict(self._lookups)
        self._lookups.clear()
        return taken

    def _timed(
        self, image: str, resources: ResourceList, call: Callable[[ResourceList], FunctionResult]
    ) -> FunctionResult:
        """Run a function that is not known to be slow, and find out whether it is."""
        limit = max(_SLOW_CALL, _SLOW_RESOURCE * len(resources.items))
        began = perf_counter()
        result = call(resources)
        if perf_counter() - began > limit and len(self._slow) < _MOST_SLOW_IMAGES:
            self._slow[image] = None
        return result


def _key(image: str, config: FunctionConfig | None, items: list[Resource]) -> tuple[bytes, int]:
    """Return the hash of a function's whole input, and about how many bytes the input has."""
    told = (config.data, config.path, config.typed, config.text) if config else None
    digest = blake2b(marshal.dumps((image, told), _FORMAT), digest_size=32)
    size = 0
    for item in items:
        state = marshal.dumps(item.state(), _FORMAT)
        size += len(state)
        digest.update(len(state).to_bytes(8, "big"))
        digest.update(state)
    return digest.digest(), size


def _applied(outputs: list[_Output], summary: FunctionResult, given: list[Resource]) -> FunctionResult:
    """Give the resources the state that the function left them in, the last time."""
    items = []
    for output in outputs:
        item = output.resource.copy()
        if output.place is not None:
            given[output.place].become(item)
            item = given[output.place]
        items.append(item)
    return FunctionResult(items, summary.results, stderr=summary.stderr)
