"""What the targets of each set came to, kept so that nothing is rendered twice: compact, for ten thousand of them.

Source: ``variants.md`` 6.9.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from controllers.packagevariantset.cached_values import Key
from krm.variants.sets.rendering import Rendered
from krm.variants.sets.targets import Context, SelectedObject

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that a rendering is made of."""

    uid: str
    generation: int
    """Of the set."""
    source: Json
    """``spec.upstream``, as variants get it."""
    upstream: Json
    """What expressions see of the upstream."""
    contexts: Sequence[Context]
    repositories: Mapping[str, SelectedObject]
    """Those of the namespace, by name."""

    def same_set(self, other: "Inputs") -> bool:
        """Tell whether the set and its source are as they were."""
        return (self.uid, self.generation, self.source, self.upstream) == (
            other.uid,
            other.generation,
            other.source,
            other.upstream,
        )


class Rendering:
    """What the targets of a set came to; specs are text until they are written."""

    def __init__(self, inputs: Inputs, rendered: Sequence[Rendered]) -> None:
        self._used = {name: inputs.repositories.get(name) for name in {one.repo for one in rendered}}
        self._inputs = replace(inputs, repositories={})
        self._specs = {(one.repo, one.package): orjson.dumps(one.spec) for one in rendered if one.spec is not None}
        self.rendered: Sequence[Rendered] = [_outline(one) for one in rendered]
        """In the order of the targets; of each spec only ``downstream``."""

    def spec(self, outline: Json) -> Json:
        """Return the whole spec of one of ``rendered`` that has no other for the same pair; a new copy at each call."""
        downstream = outline["downstream"]
        spec: Json = orjson.loads(self._specs[downstream["repo"], downstream["package"]])
        return spec

    def is_of(self, inputs: Inputs) -> bool:
        """Tell whether it was made of the same; of Repositories only those count that variants go to."""
        return (
            self._inputs.same_set(inputs)
            and self._inputs.contexts == inputs.contexts
            and all(inputs.repositories.get(name) == one for name, one in self._used.items())
        )


class Renderings:
    """The last rendering of each set."""

    def __init__(self) -> None:
        self._known: dict[Key, Rendering] = {}

    def __len__(self) -> int:
        return len(self._known)

    def find(self, key: Key, inputs: Inputs) -> Rendering | None:
        """Return what a set came to, if it was made of the same."""
        known = self._known.get(key)
        return known if known is not None and known.is_of(inputs) else None

    def keep(self, key: Key, inputs: Inputs, rendered: Sequence[Rendered]) -> Rendering:
        """Take what a set came to, and return it as it is kept."""
        kept = self._known[key] = Rendering(inputs, rendered)
        return kept

    def forget(self, key: Key) -> None:
        """Drop what is known of a set; repeating it changes nothing."""
        self._known.pop(key, None)


def _outline(one: Rendered) -> Rendered:
    if one.spec is None:
        return one
    return replace(one, spec={"downstream": {"repo": one.repo, "package": one.package}})
