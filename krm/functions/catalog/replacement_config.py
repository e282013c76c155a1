"""The configuration of ``apply-replacements``, decoded and checked. Source: ``kpt.md`` 4.7."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from krm.functions.catalog.config_values import FN_GROUP
from krm.functions.catalog.resource_ids import ResourceId, ResourceSelector
from krm.functions.runner import FunctionConfig
from krm.meta.errors import BadRequest
from krm.meta.selectors import LabelSelector

_KIND = "ApplyReplacements"
_API_VERSION = f"{FN_GROUP}/v1alpha1"
_DEFAULT_PATH = "metadata.name"
_LARGEST_INDEX = 10**9


class ReplacementConfigError(Exception):
    """The configuration cannot be used; the text says what is wrong."""


@dataclass(frozen=True, slots=True)
class Options:
    """Which part of a text counts, and whether missing fields are created."""

    delimiter: str = ""
    index: int = 0
    create: bool = False


@dataclass(frozen=True, slots=True)
class Source:
    """The one field a value is taken from."""

    resource_id: ResourceId
    field_path: str
    options: Options


@dataclass(frozen=True, slots=True)
class Target:
    """Fields of several resources that get the value."""

    select: ResourceSelector
    reject: tuple[ResourceSelector, ...]
    field_paths: tuple[str, ...]
    options: Options


@dataclass(frozen=True, slots=True)
class Replacement:
    """One value and where it goes."""

    source: Source | str
    """A string is the value itself."""
    targets: tuple[Target, ...]


def read_replacements(config: FunctionConfig | None) -> list[Replacement]:
    """Decode the configuration.

    Raises:
        ReplacementConfigError: it is missing, of another kind, or not as it should be.
    """
    if config is None:
        raise ReplacementConfigError(f"FunctionConfig is missing. Expect `{_KIND}`")
    kind, version = config.data.get("kind") or "", config.data.get("apiVersion") or ""
    if (kind, version) != (_KIND, _API_VERSION):
        raise ReplacementConfigError(
            f"received functionConfig of kind {kind} and apiVersion {version}, "
            f"only functionConfig of kind {_KIND} and apiVersion {_API_VERSION} is supported"
        )
    try:
        entries = _list(config.data, "replacements", "")
        return [_replacement(_map(entry, f"replacements[{place}]"), place) for place, entry in enumerate(entries)]
    except _DecodeError as error:
        raise ReplacementConfigError(f"unable to convert functionConfig to replacements:\n{error}") from None


class _DecodeError(Exception):
    """A field is not what it should be; the text names it."""


def _replacement(entry: dict[str, Any], place: int) -> Replacement:
    where = f"replacements[{place}]"
    literal = entry.get("sourceValue")
    if (entry.get("source") is None and literal is None) or not entry.get("targets"):
        raise ReplacementConfigError("replacements must specify a source and at least one target")
    targets = _list(entry, "targets", where)
    source: Source | str
    if literal is not None:
        if entry.get("source") is not None:
            raise _DecodeError(f"{where}: source and sourceValue cannot be given together")
        source = _text(entry, "sourceValue", where)
    else:
        source = _source(_map(entry["source"], f"{where}.source"), f"{where}.source")
    return Replacement(
        source,
        tuple(_target(_map(target, path), path) for target, path in _numbered(targets, f"{where}.targets")),
    )


def _source(entry: dict[str, Any], where: str) -> Source:
    return Source(_resource_id(entry, where), _text(entry, "fieldPath", where) or _DEFAULT_PATH, _options(entry, where))


def _target(entry: dict[str, Any], where: str) -> Target:
    if entry.get("select") is None:
        raise ReplacementConfigError("target must specify resources to select")
    reject = _numbered(_list(entry, "reject", where), f"{where}.reject")
    paths = _list(entry, "fieldPaths", where)
    if not all(isinstance(path, str) for path in paths):
        raise _DecodeError(f"{where}.fieldPaths: every path must be a string")
    return Target(
        _selector(_map(entry["select"], f"{where}.select"), f"{where}.select"),
        tuple(_selector(_map(rejected, path), path) for rejected, path in reject),
        tuple(path or _DEFAULT_PATH for path in paths) or (_DEFAULT_PATH,),
        _options(entry, where),
    )


def _selector(entry: dict[str, Any], where: str) -> ResourceSelector:
    labels, annotations = (_predicate(entry, key, where) for key in ("labelSelector", "annotationSelector"))
    return ResourceSelector(_resource_id(entry, where), labels, annotations)


def _predicate(entry: dict[str, Any], key: str, where: str) -> Callable[[Mapping[str, str]], bool] | None:
    text = _text(entry, key, where)
    if not text:
        return None
    try:
        return LabelSelector.parse(text).predicate()
    except BadRequest as error:
        raise _DecodeError(f"{where}.{key}: {error}") from None


def _resource_id(entry: dict[str, Any], where: str) -> ResourceId:
    fields = ("group", "version", "kind", "name", "namespace")
    return ResourceId(**{field: _text(entry, field, where) for field in fields})


def _options(entry: dict[str, Any], where: str) -> Options:
    where = f"{where}.options"
    options = _map(entry.get("options") or {}, where)
    create = _text(options, "create", where) or "false"
    if create not in ("true", "false"):
        raise _DecodeError(f"{where}.create: must be true or false, got {create}")
    return Options(_text(options, "delimiter", where), _index(options, where), create == "true")


def _index(options: dict[str, Any], where: str) -> int:
    text = _text(options, "index", where) or "0"
    try:
        index = int(text) if len(text) <= len(str(_LARGEST_INDEX)) else None
    except ValueError:
        index = None
    if index is None:
        raise _DecodeError(f"{where}.index: must be an integer, got {text[:80]}")
    return index


def _text(entry: dict[str, Any], key: str, where: str) -> str:
    value = entry.get(key)
    if value is not None and not isinstance(value, str):
        raise _DecodeError(f"{where}.{key}: must be a string")
    return value or ""


def _map(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _DecodeError(f"{where}: must be a map")
    return value


def _list(entry: dict[str, Any], key: str, where: str) -> list[Any]:
    value = entry.get(key)
    if value is not None and not isinstance(value, list):
        raise _DecodeError(f"{where}.{key}: must be a list".removeprefix("."))
    return value or []


def _numbered(entries: list[Any], where: str) -> list[tuple[Any, str]]:
    return [(entry, f"{where}[{place}]") for place, entry in enumerate(entries)]
