"""Kustomize's field specs of maps that get labels or annotations, created where a spec says so.

Source: ``kpt.md`` 4.5 (v0.1.x) and 4.8.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from krm.functions.runner import FunctionConfig

MAX_SPECS = 1000
"""In one configuration: each is walked in every resource."""
_SEPARATOR = re.compile(r"(?<!\\)/")


class MapSpecError(ValueError):
    """A spec, or the value it leads through, is not what it should be; the text names it."""


@dataclass(frozen=True, slots=True)
class MapSpec:
    """A map of some objects; an empty group, version or kind matches all. Lists on the way need no mention."""

    path: str
    """Separated by ``/``, which ``\\/`` escapes."""
    group: str = ""
    version: str = ""
    kind: str = ""
    create: bool = False
    names: tuple[str, ...] = field(init=False)
    """The steps of the path."""

    def __post_init__(self) -> None:
        steps = (name.replace("\\/", "/").removesuffix("[]") for name in _SEPARATOR.split(self.path))
        object.__setattr__(self, "names", tuple(step for step in steps if step))

    def applies_to(self, api_version: str, kind: str) -> bool:
        """Say whether objects of a kind have the map."""
        group, _, version = api_version.rpartition("/")
        return self.kind in ("", kind) and self.group in ("", group) and self.version in ("", version)

    def maps_in(self, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the maps of an object, created where they are missing and may be.

        Raises:
            MapSpecError: something on the way is neither a map nor a list of maps.
        """
        return self._below(data, 0)

    def _below(self, value: Any, done: int) -> Iterator[dict[str, Any]]:
        if isinstance(value, list):
            for item in value:
                yield from self._below(item, done)
            return
        if not isinstance(value, dict):
            raise MapSpecError(f"considering field '{self.path}': expected a map")
        if done == len(self.names):
            yield value
            return
        name = self.names[done]
        if value.get(name) is None:
            if not self.create:
                return
            value[name] = {}
        yield from self._below(value[name], done + 1)


class MapSpecs:
    """Several specs, chosen once for each kind."""

    def __init__(self, specs: Iterable[MapSpec]) -> None:
        self._specs = tuple(specs)
        self._by_kind: dict[tuple[str, str], tuple[MapSpec, ...]] = {}

    def of(self, data: dict[str, Any]) -> tuple[MapSpec, ...]:
        """Return the specs for objects like ``data``."""
        key = (str(data.get("apiVersion") or ""), str(data.get("kind") or ""))
        if key not in self._by_kind:
            self._by_kind[key] = tuple(spec for spec in self._specs if spec.applies_to(*key))
        return self._by_kind[key]


def read_map_specs(config: FunctionConfig, key: str, old_key: str) -> list[MapSpec]:
    """Read the specs of a configuration, whose scalars are text.

    Raises:
        MapSpecError: they are no list, too many, or one has no path; or both the old and the new key are there.
    """
    old, new = config.data.get(old_key), config.data.get(key)
    if old and new:
        raise MapSpecError(f"`{old_key}` has been deprecated, please rename it to `{key}`")
    specs = new or old or []
    if not isinstance(specs, list) or len(specs) > MAX_SPECS:
        raise MapSpecError(f"`{key}` must be a list of at most {MAX_SPECS} fields")
    return [_spec(spec, key) for spec in specs]


def _spec(spec: Any, key: str) -> MapSpec:
    if not isinstance(spec, dict) or not isinstance(spec.get("path"), str):
        raise MapSpecError(f"every entry of `{key}` needs a path")
    where = {name: str(spec.get(name) or "") for name in ("group", "version", "kind")}
    return MapSpec(spec["path"], **where, create=spec.get("create") in ("true", True))
