"""The Kptfile's schema, and strict decoding against it: unknown keys and wrong types are errors.

Source: ``kpt.md`` 1.1, 1.2 and 1.4.
"""

from dataclasses import dataclass
from typing import Any, Final

from krm.package.yaml_reader import YamlError, locate_keys

TEXT: Final = "string"
TEXTS: Final = "[]string"
TEXT_MAP: Final = "map[string]string"
ANY: Final = "any"

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Struct:
    """An object with known fields; ``name`` is the type's name in messages."""

    name: str
    fields: "dict[str, Shape]"


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list of objects."""

    item: Struct


Shape = str | Struct | ListOf

_SELECTOR = Struct(
    "v1.Selector",
    {
        "apiVersion": TEXT,
        "kind": TEXT,
        "name": TEXT,
        "namespace": TEXT,
        "labels": TEXT_MAP,
        "annotations": TEXT_MAP,
    },
)
_FUNCTION = Struct(
    "v1.Function",
    {
        "image": TEXT,
        "exec": TEXT,
        "configPath": TEXT,
        "configMap": TEXT_MAP,
        "name": TEXT,
        "tag": TEXT,
        "selectors": ListOf(_SELECTOR),
        "exclude": ListOf(_SELECTOR),
    },
)
_CONDITION = Struct("v1.Condition", dict.fromkeys(("type", "status", "reason", "message"), TEXT))
_GENERIC_LOCK = Struct("v1.GenericLock", dict.fromkeys(("storeID", "resourceID", "resourceVersion"), TEXT))

KPTFILE = Struct(
    "v1.KptFile",
    {
        "apiVersion": TEXT,
        "kind": TEXT,
        "metadata": Struct(
            "yaml.ResourceMeta", {"name": TEXT, "namespace": TEXT, "labels": TEXT_MAP, "annotations": TEXT_MAP}
        ),
        "upstream": Struct(
            "v1.Upstream",
            {
                "type": TEXT,
                "git": Struct("v1.Git", dict.fromkeys(("repo", "directory", "ref"), TEXT)),
                "updateStrategy": TEXT,
            },
        ),
        "upstreamLock": Struct(
            "v1.Locator",
            {
                "type": TEXT,
                "git": Struct("v1.GitLock", dict.fromkeys(("repo", "directory", "ref", "commit"), TEXT)),
                "generic": _GENERIC_LOCK,
            },
        ),
        "info": Struct(
            "v1.PackageInfo",
            {
                "site": TEXT,
                "emails": TEXTS,
                "license": TEXT,
                "licenseFile": TEXT,
                "description": TEXT,
                "keywords": TEXTS,
                "man": TEXT,
                "readinessGates": ListOf(Struct("v1.ReadinessGate", {"conditionType": TEXT})),
            },
        ),
        "pipeline": Struct("v1.Pipeline", {"mutators": ListOf(_FUNCTION), "validators": ListOf(_FUNCTION)}),
        "inventory": Struct(
            "v1.Inventory",
            {"namespace": TEXT, "name": TEXT, "inventoryID": TEXT, "labels": TEXT_MAP, "annotations": TEXT_MAP},
        ),
        "status": Struct("v1.Status", {"conditions": ListOf(_CONDITION), "renderStatus": ANY}),
    },
)
SECTIONS = tuple(KPTFILE.fields)
"""The order in which sections are written."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Where a Kptfile breaks its schema, and how, in the words of upstream's decoder."""

    path: Path
    problem: str


def find_fault(data: Any, shape: Shape = KPTFILE, path: Path = ()) -> Fault | None:
    """Return the first fault of ``data`` (read as text), or None. A null stands for an absent value."""
    if data is None or shape == ANY:
        return None
    if isinstance(shape, Struct):
        return _struct_fault(data, shape, path)
    if isinstance(shape, ListOf):
        if not isinstance(data, list):
            return _mistyped(data, f"[]{shape.item.name}", path)
        return next(filter(None, (find_fault(item, shape.item, (*path, i)) for i, item in enumerate(data))), None)
    if shape == TEXT:
        return None if isinstance(data, str) else _mistyped(data, shape, path)
    return _texts_fault(data, shape, path)


def describe(fault: Fault, text: bytes) -> tuple[str, int]:
    """Return the decoder's message for ``fault``, and the line (from 1; 0 unknown) it stands on."""
    try:
        lines = locate_keys(text).key_lines
    except YamlError:
        lines = {}
    place = fault.path
    while place and place not in lines:
        place = place[:-1]
    line = lines.get(place, 0)
    return f"yaml: unmarshal errors:\n  line {line}: {fault.problem}", line


def _struct_fault(data: Any, shape: Struct, path: Path) -> Fault | None:
    if not isinstance(data, dict):
        return _mistyped(data, shape.name, path)
    fields = shape.fields
    for key, value in data.items():
        known = fields.get(key)
        if known is None:
            return Fault((*path, key), f"field {key} not found in type {shape.name}")
        if (value.__class__ is not str or known is not TEXT) and (fault := find_fault(value, known, (*path, key))):
            return fault
    return None


def _texts_fault(data: Any, shape: Shape, path: Path) -> Fault | None:
    wanted = list if shape == TEXTS else dict
    if not isinstance(data, wanted):
        return _mistyped(data, str(shape), path)
    items = enumerate(data) if isinstance(data, list) else data.items()
    for key, item in items:
        if item is not None and not isinstance(item, str):
            return _mistyped(item, TEXT, (*path, key))
    return None


def _mistyped(data: Any, wanted: str, path: Path) -> Fault:
    tag = "!!map" if isinstance(data, dict) else "!!seq" if isinstance(data, list) else "!!str"
    shown = f" `{data[:10]}{'...' if len(data) > 10 else ''}`" if isinstance(data, str) else ""  # noqa: PLR2004
    return Fault(path, f"cannot unmarshal {tag}{shown} into {wanted}")
