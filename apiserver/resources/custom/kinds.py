"""What a CustomResourceDefinition says, as definitions that the machinery serves: one per served version.

Pure: a decoded definition in, definitions out. Source: ``kube-api.md`` 2.15.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from apiserver.machinery.definition import Column, Definition, Json
from apiserver.machinery.discovery import version_rank
from apiserver.resources.columns import AGE, path_value
from krm.meta.errors import ResourceName
from krm.meta.jsonpath import compile_path

_NAME: Final = Column(
    "Name", "string", path_value("metadata", "name"), "Unique within the resource and namespace.", format="name"
)


def resource_name(crd: Json) -> ResourceName:
    """Return the resource that a definition defines."""
    return ResourceName(crd["spec"]["names"]["plural"], crd["spec"]["group"])


def storage_version(crd: Json) -> str:
    """Return the version that objects are stored in; a valid definition has exactly one."""
    return str(next(version["name"] for version in crd["spec"]["versions"] if version.get("storage")))


def served_definitions(crd: Json) -> list[Definition]:
    """Return a definition per served version, the preferred one first, under the names that were accepted."""
    versions = [version for version in crd["spec"]["versions"] if version.get("served")]
    versions.sort(key=lambda version: version_rank(version["name"]), reverse=True)
    return [_definition(crd, version) for version in versions]


def storage_definition(crd: Json) -> Definition:
    """Return the definition of the storage version, which need not be served; it indexes for all versions."""
    name = storage_version(crd)
    definition = _definition(crd, next(version for version in crd["spec"]["versions"] if version["name"] == name))
    return replace(definition, selectable=dict(_selectable(crd["spec"]["versions"])))


def scale_paths(crd: Json, version: str) -> Mapping[str, str] | None:
    """Return the paths of a version's scale subresource, by their names in the definition; None: it has none."""
    found = next(one for one in crd["spec"]["versions"] if one["name"] == version)
    scale: Mapping[str, str] | None = (found.get("subresources") or {}).get("scale")
    return scale


def _definition(crd: Json, version: Json) -> Definition:
    spec = crd["spec"]
    names = (crd.get("status") or {}).get("acceptedNames") or spec["names"]
    return Definition(
        group=spec["group"],
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        singular=names.get("singular") or "",
        schema=(version.get("schema") or {}).get("openAPIV3Schema") or {},
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        columns=(_NAME, *_columns(version.get("additionalPrinterColumns") or ())),
        status=(version.get("subresources") or {}).get("status") is not None,
        selectable=dict(_selectable([version])),
        indexed=tuple(dict(_selectable(spec["versions"]))),
        list_kind_name=names.get("listKind") or "",
        stored_version=storage_version(crd),
        deprecation=_deprecation(spec, version),
        custom=True,
    )


def _columns(columns: Sequence[Json]) -> Iterator[Column]:
    for column in columns:
        yield Column(
            name=column["name"],
            type=column["type"],
            value=_cell(column["type"], column["jsonPath"]),
            description=column.get("description") or _described(column),
            format=column.get("format") or "",
            priority=column.get("priority") or 0,
        )
    if not columns:
        yield AGE


def _described(column: Json) -> str:
    return f"Custom resource definition column (in JSONPath format): {column['jsonPath']}"


def _cell(type_: str, text: str) -> Callable[[Json], Any]:
    """Return the extractor of a column; what does not have the column's type leaves the cell empty."""
    path = compile_path(text)
    convert = _CELLS[type_]

    def extract(obj: Json) -> Any:
        value = path.first(obj)
        return None if value is None else convert(value)

    return extract


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _as_integer(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _as_number(value: Any) -> int | float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _as_boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _as_date(value: Any) -> str | None:
    return value if isinstance(value, str) else None


_CELLS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "string": _as_text,
    "integer": _as_integer,
    "number": _as_number,
    "boolean": _as_boolean,
    "date": _as_date,
}


def _selectable(versions: Sequence[Json]) -> Iterator[tuple[str, Callable[[Json], str]]]:
    """Yield the selectable fields of versions; all versions share one index, as they share what is stored."""
    for version in versions:
        for field in version.get("selectableFields") or ():
            yield field["jsonPath"].removeprefix("."), _field(field["jsonPath"])


def _field(text: str) -> Callable[[Json], str]:
    path = compile_path(text)

    def extract(obj: Json) -> str:
        value = path.first(obj)
        if isinstance(value, bool):
            return "true" if value else "false"
        return "" if value is None else str(value)

    return extract


def _deprecation(spec: Json, version: Json) -> str:
    """Return what clients of a deprecated version are warned with: what replaces it, unless the definition says more."""
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning") is not None:
        return str(version["deprecationWarning"])
    group, kind, name = spec["group"], spec["names"]["kind"], version["name"]
    newer = [
        other["name"]
        for other in spec["versions"]
        if other.get("served") and not other.get("deprecated") and version_rank(other["name"]) > version_rank(name)
    ]
    warning = f"{group}/{name} {kind} is deprecated"
    return f"{warning}; use {group}/{max(newer, key=version_rank)} {kind}" if newer else warning
