"""The resources of a package that ask for configuration from the cluster.

Source: ``variants.md`` 2.9.3 steps 1 to 3; seed 000, "Configuration injection details".
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

from krm.package.documents import Document, is_resource_file, read_resources
from krm.package.krmignore import KrmIgnore
from krm.package.resource_identity import annotations_of, krm_problem
from krm.package.yaml_reader import YamlError, read_document
from krm.variants.kptfile import KPTFILE
from krm.variants.mutation_error import MutationError
from krm.variants.vocabulary import CONFIG_INJECTION, INJECTED_NAME, INJECTED_NAME_OF_UPSTREAM, INJECTION_CONDITION

_REQUIRED, _OPTIONAL = "required", "optional"
_IGNORE_FILE = ".krmignore"
_MOST_PROBLEMS = 20
"""That one message names."""
MAX_POINTS: Final = 1000
"""Of one package: each may get a copy of the same object, so that a small file could ask for endless copies."""
_MOST_SCANNED = 10_000
"""Files whose annotated resources are remembered; some hundred bytes each."""


@dataclass(frozen=True, slots=True)
class InjectionPoint:
    """A resource of a package that configuration may be copied into."""

    file: str
    api_version: str
    kind: str
    name: str
    required: bool
    condition_type: str
    document: int = 0
    """Its place among the documents of the file, from 0."""
    injected: bool = False
    """Whether it says that something was copied into it, by this variant or one before it in a chain."""


@dataclass(frozen=True, slots=True)
class _Annotated:
    """A resource with the annotation, wherever its file lies."""

    document: int
    api_version: str
    kind: str
    name: str
    value: str
    injected: bool


_Scanned = tuple[_Annotated, ...] | str
"""The annotated resources of a file, or why it cannot be read."""
_SCANNED: dict[tuple[str, bytes], _Scanned] = {}
"""By name and digest: thousands of variants hold the same files of the same upstream package."""


def injection_points(resources: Mapping[str, str]) -> list[InjectionPoint]:
    """Return the injection points of a package, by file and place.

    Raises:
        MutationError: a file of resources cannot be read, an annotation has another value, two points would
            have the same condition, or there are more than ``MAX_POINTS``.
    """
    points: list[InjectionPoint] = []
    problems: list[str] = []
    holders: dict[str, str] = {}
    for path in _resource_files(resources):
        for found in _scanned(path, resources[path]):
            if problem := _problem(path, found):
                problems.append(problem)
            point = _point(path, found)
            before = holders.get(point.condition_type)
            if before is not None:
                files = f"({before} and {path})"
                problems.append(f'duplicate injection conditionType "{point.condition_type}" {files}')
            holders[point.condition_type] = path
            points.append(point)
    if problems:
        more = [f"and {len(problems) - _MOST_PROBLEMS} more"] if len(problems) > _MOST_PROBLEMS else []
        raise MutationError(f"errors in injection points: {', '.join(problems[:_MOST_PROBLEMS] + more)}")
    if len(points) > MAX_POINTS:
        raise MutationError(f"the package has {len(points)} injection points, more than {MAX_POINTS}")
    return points


def _point(path: str, found: _Annotated) -> InjectionPoint:
    return InjectionPoint(
        file=path,
        api_version=found.api_version,
        kind=found.kind,
        name=found.name,
        required=found.value == _REQUIRED,
        condition_type=f"{INJECTION_CONDITION}.{found.kind}.{found.name}",
        document=found.document,
        injected=found.injected,
    )


def _problem(path: str, found: _Annotated) -> str:
    if found.value not in (_REQUIRED, _OPTIONAL):
        resource = f"{found.kind}/{found.name}"
        return f'{path}: {resource} has invalid "{CONFIG_INJECTION}" annotation value of "{found.value}"'
    if not (found.api_version and found.kind and found.name):
        return f'{path}: a resource with the annotation "{CONFIG_INJECTION}" has no apiVersion, kind or name'
    return ""


def _resource_files(texts: Mapping[str, str]) -> Iterator[str]:
    """Yield the sorted paths of files that hold resources of the package or its subpackages."""
    ignores = {
        path[: -len(_IGNORE_FILE)]: KrmIgnore(text)
        for path, text in texts.items()
        if path.rpartition("/")[2] == _IGNORE_FILE
    }
    packages = {path[: -len(KPTFILE)] for path in texts if path.rpartition("/")[2] == KPTFILE} if ignores else set()
    for path in sorted(filter(is_resource_file, texts)):
        if not ignores:
            yield path
            continue
        owner = next((directory for directory in _directories(path) if directory in packages), "")
        ignore = ignores.get(owner)
        if ignore is None or not ignore.ignores(path[len(owner) :]):
            yield path


def _directories(path: str) -> Iterator[str]:
    """Yield the directories that a file lies in, with a slash at the end, the nearest first."""
    while path:
        path = path.rstrip("/").rpartition("/")[0]
        path = f"{path}/" if path else ""
        yield path


def _scanned(path: str, text: str) -> tuple[_Annotated, ...]:
    """Return the annotated resources of a file.

    Raises:
        MutationError: it cannot be read.
    """
    key = path.rpartition("/")[2], blake2b(text.encode(), digest_size=20).digest()
    scanned = _SCANNED.get(key)
    if scanned is None:
        if len(_SCANNED) >= _MOST_SCANNED:
            _SCANNED.clear()
        scanned = _SCANNED[key] = _scan(path, text)
    if isinstance(scanned, str):
        raise MutationError(f"{path}: {scanned}")
    return scanned


def _scan(path: str, text: str) -> _Scanned:
    try:
        _, documents, is_json = read_resources(path, text.encode())
        for document in documents:
            if document.data is not None and not isinstance(document.data, dict) and krm_problem(document.data, path):
                form = "a list" if isinstance(document.data, list) else "a scalar"
                return f"yaml: line {document.line}: a resource is a mapping, this is {form}"
        return tuple(
            _annotated(place, document, is_json=is_json)
            for place, document in enumerate(documents)
            if isinstance(document.data, dict) and CONFIG_INJECTION in annotations_of(document.data)
        )
    except YamlError as error:
        return str(error)


def _annotated(place: int, document: Document, *, is_json: bool) -> _Annotated:
    data = document.data if is_json else read_document(document.text, as_text=True)
    annotations = annotations_of(data)
    return _Annotated(
        document=place,
        api_version=_text(data.get("apiVersion")),
        kind=_text(data.get("kind")),
        name=_text(data["metadata"].get("name")),
        value=_text(annotations[CONFIG_INJECTION]),
        injected=INJECTED_NAME in annotations or INJECTED_NAME_OF_UPSTREAM in annotations,
    )


def _text(value: Any) -> str:
    """Return a scalar as text; anything else names nothing."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (str, int, float)) else ""
