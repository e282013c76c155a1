"""Kustomize's field specs: a field of the resources of some kind, by a path that passes through lists.

Source: ``kpt.md`` 4.5 (v0.1.x), 4.8 (the path's syntax), 4.13 and 4.14.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from krm.functions.catalog.resource_ids import ResourceId, current_id
from krm.functions.runner import FunctionConfig

MAX_SPECS = 1000
"""In one configuration; each is looked for in every resource."""
MAX_PATH = 1024
"""Characters of a path."""
MAX_NAMES = 64
"""Names on a path."""
_SEPARATOR = re.compile(r"(?<!\\)/")


class FieldSpecError(Exception):
    """A field spec, or the value it leads through, is not what it should be; the text names it."""


@dataclass(frozen=True, slots=True)
class FoundField:
    """A field that a spec leads to."""

    owner: dict[str, Any]
    key: str
    path: tuple[str | int, ...]

    @property
    def value(self) -> Any:
        """The value now."""
        return self.owner[self.key]

    def set(self, value: Any) -> None:
        """Replace the value."""
        self.owner[self.key] = value


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A path, ``/``-separated, and the group, version and kind it is for; empty ones match all."""

    path: str
    group: str = ""
    version: str = ""
    kind: str = ""
    create: bool = False
    """Whether :meth:`maps_of` creates maps that are missing."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names on the path; ``[]`` behind a list's name says nothing that the data does not."""
        return _names(self.path)

    @property
    def wanted(self) -> ResourceId:
        """What a resource must be."""
        return ResourceId(self.group, self.version, self.kind)

    def applies_to(self, data: dict[str, Any]) -> bool:
        """Say whether the resource is of the group, version and kind."""
        return self.wanted.selects(current_id(data))

    def fields_in(self, data: dict[str, Any]) -> list[FoundField]:
        """Return the fields of a resource, whatever its kind, that are there.

        Raises:
            FieldSpecError: the path leads into a scalar.
        """
        return list(self._walk(data, 0, ()))

    def maps_of(self, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the maps at the path, of a resource of the kind; what of the path is there must be maps.

        Raises:
            FieldSpecError: something on the way is neither a map nor a list of maps.
        """
        return self._maps(data, self.names)

    def _maps(self, value: Any, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        if isinstance(value, list):
            for item in value:
                yield from self._maps(item, names)
            return
        if not isinstance(value, dict):
            raise FieldSpecError(f"considering field '{self.path}': expected a map")
        if not names:
            yield value
            return
        if value.get(names[0]) is None:
            if not self.create:
                return
            value[names[0]] = {}
        yield from self._maps(value[names[0]], names[1:])

    def _walk(self, value: Any, done: int, path: tuple[str | int, ...]) -> Iterator[FoundField]:
        names = self.names
        while isinstance(value, dict) and done < len(names):
            name = names[done]
            if name not in value:
                return
            path = (*path, name)
            done += 1
            if done == len(names):
                yield FoundField(value, name, path)
                return
            value = value[name]
        if isinstance(value, list):
            for place, item in enumerate(value):
                yield from self._walk(item, done, (*path, place))
        elif value is not None and not isinstance(value, dict):
            raise FieldSpecError(f"considering field '{self.path}': expected a map at {'.'.join(map(str, path))}")


class FieldSpecs:
    """Several specs, found by the kind they are for."""

    def __init__(self, specs: Iterable[FieldSpec]) -> None:
        self._specs = tuple(specs)
        self._by_kind: dict[tuple[str, str], tuple[FieldSpec, ...]] = {}

    def of(self, data: dict[str, Any]) -> tuple[FieldSpec, ...]:
        """Return the specs for resources of the kind of ``data``, in their order."""
        key = (str(data.get("apiVersion") or ""), str(data.get("kind") or ""))
        if key not in self._by_kind:
            self._by_kind[key] = tuple(spec for spec in self._specs if spec.applies_to(data))
        return self._by_kind[key]

    def fields_of(self, data: dict[str, Any]) -> list[FoundField]:
        """Return the fields of a resource, each once.

        Raises:
            FieldSpecError: a path leads into a scalar.
        """
        found = (field for spec in self.of(data) for field in spec.fields_in(data))
        return list({field.path: field for field in found}.values())


@lru_cache(maxsize=4096)
def _names(path: str) -> tuple[str, ...]:
    names = (name.replace("\\/", "/").removesuffix("[]") for name in _SEPARATOR.split(path))
    return tuple(name for name in names if name)


def read_field_specs(config: FunctionConfig, key: str, old_key: str = "") -> list[FieldSpec]:
    """Read the field specs of a configuration.

    Raises:
        FieldSpecError: they are no list, or one has no path; or both the old and the new key are there.
    """
    if old_key and config.data.get(old_key):
        if config.data.get(key):
            raise FieldSpecError(f"`{old_key}` has been deprecated, please rename it to `{key}`")
        key = old_key
    specs = config.data.get(key) or []
    if not isinstance(specs, list):
        raise FieldSpecError(f"`{key}` must be a list")
    if len(specs) > MAX_SPECS:
        raise FieldSpecError(f"`{key}` has more than {MAX_SPECS} entries")
    return [_field_spec(spec, key) for spec in specs]


def _field_spec(spec: Any, key: str) -> FieldSpec:
    if not isinstance(spec, dict) or not isinstance(spec.get("path"), str):
        raise FieldSpecError(f"every entry of `{key}` needs a path")
    path = spec["path"]
    if len(path) > MAX_PATH or len(_names(path)) > MAX_NAMES:
        raise FieldSpecError(
            f"a path in `{key}` is longer than {MAX_PATH} characters or {MAX_NAMES} names: {path[:80]}"
        )
    where = {field: str(spec.get(field) or "") for field in ("group", "version", "kind")}
    return FieldSpec(path, **where, create=spec.get("create") in ("true", True))
