"""The Kptfile's schema, and strict decoding against it: unknown keys and wrong types are errors.

Source: ``kpt.md`` 1.1, 1.2 and 1.4.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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


def find_faults(data: Any, shape: Shape = KPTFILE, path: Path = ()) -> Iterator[Fault]:
    """Yield the faults of ``data`` (read as text), in its order. A null stands for an absent value."""
    if data is None or shape == ANY:
        return
    if isinstance(shape, Struct):
        yield from _struct_faults(data, shape, path)
    elif isinstance(shape, ListOf):
        if isinstance(data, list):
            for place, item in enumerate(data):
                yield from find_faults(item, shape.item, (*path, place))
        else:
            yield _mistyped(data, f"[]{shape.item.name}", path)
    elif shape == TEXT:
        if not isinstance(data, str):
            yield _mistyped(data, shape, path)
    else:
        yield from _texts_faults(data, shape, path)


def lines_of(faults: Sequence[Fault], text: bytes) -> list[int]:
    """Return the lines (from 1; 0 unknown) on which faults stand."""
    try:
        lines = locate_keys(text).key_lines
    except YamlError:
        lines = {}
    return [_line_of(fault.path, lines) for fault in faults]


def decoder_message(problems: Iterable[tuple[int, str]]) -> str:
    """Return the decoder's message for problems and their lines, as upstream's users know it."""
    return "yaml: unmarshal errors:" + "".join(f"\n  line {line}: {problem}" for line, problem in problems)


def _line_of(path: Path, lines: Mapping[Path, int]) -> int:
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 0)


def _struct_faults(data: Any, shape: Struct, path: Path) -> Iterator[Fault]:
    if not isinstance(data, dict):
        yield _mistyped(data, shape.name, path)
        return
    fields = shape.fields
    for key, value in data.items():
        known = fields.get(key)
        if known is None:
            yield Fault((*path, key), f"field {key} not found in type {shape.name}")
        elif value.__class__ is not str or known is not TEXT:
            yield from find_faults(value, known, (*path, key))


def _texts_faults(data: Any, shape: str, path: Path) -> Iterator[Fault]:
    if not isinstance(data, list if shape == TEXTS else dict):
        yield _mistyped(data, shape, path)
        return
    items = enumerate(data) if isinstance(data, list) else data.items()
    for key, item in items:
        if item is not None and not isinstance(item, str):
            yield _mistyped(item, TEXT, (*path, key))


def _mistyped(data: Any, wanted: str, path: Path) -> Fault:
    tag = "!!map" if isinstance(data, dict) else "!!seq" if isinstance(data, list) else "!!str"
    shown = f" `{data[:10]}{'...' if len(data) > 10 else ''}`" if isinstance(data, str) else ""  # noqa: PLR2004
    return Fault(path, f"cannot unmarshal {tag}{shown} into {wanted}")
