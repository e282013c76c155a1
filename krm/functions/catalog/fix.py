"""``fix``: packages of the schemas v1alpha1 and v1alpha2 brought to v1. Source: ``kpt.md`` 4.17.

Packages with old Kptfiles are not rendered: run it by ``porch fn eval --image fix``.
"""

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from krm.functions.builtin import Builtin
from krm.functions.catalog.alpha_kptfile import V1, V1ALPHA1, V1ALPHA2, converted_kptfile, lost_fields
from krm.functions.catalog.alpha_setters import AlphaSetters, commented_setter, read_alpha_setters
from krm.functions.catalog.config_values import Json, file_of
from krm.functions.catalog.field_order import reorder
from krm.functions.catalog.line_comments import set_line_comments
from krm.functions.catalog.setter_comments import SetterError
from krm.functions.catalog.source_nodes import source_nodes
from krm.functions.go_text import bracketed
from krm.functions.images import parse_image
from krm.functions.resource import Resource
from krm.functions.runner import FunctionResult, ResourceList
from krm.package.comments import Path
from krm.package.resource_identity import annotations_of
from krm.package.yaml_positions import Node
from krm.package.yaml_reader import YamlError, read_document

_APPLY_SETTERS = "gcr.io/kpt-fn/apply-setters:v0.2"
_SETTERS_FILE = "setters.yaml"
_FUNCTION_ANNOTATIONS = ("config.kubernetes.io/function", "config.k8s.io/function")


@dataclass(slots=True)
class _Package:
    """One package: its Kptfile and its own resources."""

    kptfile: Resource
    resources: list[Resource] = field(default_factory=list)
    new: list[Resource] = field(default_factory=list)
    results: list[Json] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)
    """Of its resources."""
    added: int = 0
    """Names tried for files with setters."""

    @property
    def directory(self) -> str:
        return posixpath.dirname(self.kptfile.path)

    def note(self, message: str, resource: Resource, severity: str = "info") -> None:
        self.results.append({"message": message, "severity": severity, "file": file_of(resource.path, resource.index)})


def fix(resources: ResourceList) -> FunctionResult:
    """Run the function; doing it again changes nothing."""
    results: list[Json] = []
    items = list(resources.items)
    try:
        for package in _packages(resources.items):
            if package.kptfile.data.get("apiVersion") == V1ALPHA1:
                _fix_alpha1(package)
            elif package.kptfile.data.get("apiVersion") == V1ALPHA2:
                _fix_alpha2(package)
            items += package.new
            results += package.results
    except (SetterError, YamlError) as error:
        message = f"failed to fix the package: {error}"
        return FunctionResult.failure(resources, [{"message": message, "severity": "error"}], message)
    return FunctionResult(items, results or [{"message": "no package needs fixing", "severity": "info"}])


def _packages(items: list[Resource]) -> list[_Package]:
    """Return the packages, each with the resources that are in no package below it."""
    packages = {
        posixpath.dirname(item.root_path): _Package(item)
        for item in items
        if posixpath.basename(item.path) == "Kptfile" and item.data.get("kind") == "Kptfile"
    }
    for item in items:
        directory = posixpath.dirname(item.root_path)
        while directory not in packages and directory.strip("/"):
            directory = posixpath.dirname(directory)
        if directory in packages:
            packages[directory].resources.append(item)
            packages[directory].paths.add(item.path)
    return list(packages.values())


def _fix_alpha1(package: _Package) -> None:
    """Bring definitions, comments and function configurations into the pipeline."""
    kptfile = package.kptfile
    old = kptfile.data
    setters = read_alpha_setters(old, kptfile.text())
    mutators = []
    if setters.values:
        path = _add_setters(package, setters.values)
        mutators.append({"image": _APPLY_SETTERS, "configPath": path})
    for resource in package.resources:
        _fix_comments(package, resource, setters)
        mutators += _declared_functions(package, resource)
    if lost := lost_fields(old):
        package.note(f"dropped {bracketed(lost)}, for which {V1} has no place", kptfile, "warning")
    kptfile.data = converted_kptfile(old, mutators)
    _order_sections(kptfile)
    package.note(f"changed apiVersion from {V1ALPHA1} to {V1}", kptfile)
    for before, after in (("packageMetadata", "info"), ("upstream", "upstream and upstreamLock")):
        if old.get(before):
            package.note(f"transformed {before} to {after}", kptfile)
    if setters.substitutions or setters.values:
        package.note("transformed openAPI definitions to setters", kptfile)
    if mutators:
        package.note("added functions to the pipeline", kptfile)


def _order_sections(kptfile: Resource) -> None:
    """Bring the sections that stayed and the new ones into the order of v1."""
    places = {name: place for place, name in enumerate(kptfile.data)}

    def order(path: Path, entries: Sequence[Node]) -> Sequence[Node]:
        return entries if path else sorted(entries, key=lambda entry: places[str(entry.step)])

    reorder(kptfile, order, kptfile.data)


def _fix_alpha2(package: _Package) -> None:
    """Move the setters into a file; all else is as in v1."""
    kptfile = package.kptfile
    pipeline = kptfile.data.get("pipeline")
    mutators = pipeline.get("mutators") if isinstance(pipeline, dict) else None
    for mutator in mutators if isinstance(mutators, list) else []:
        if isinstance(mutator, dict) and mutator.get("configMap") and _is_apply_setters(mutator.get("image")):
            config = mutator.pop("configMap")
            values = {name: "" if value is None else str(value) for name, value in config.items()}
            mutator["configPath"] = _add_setters(package, values)
            package.note("moved setters from configMap to configPath", kptfile)
    kptfile.data["apiVersion"] = V1
    package.note(f"changed apiVersion from {V1ALPHA2} to {V1}", kptfile)


def _is_apply_setters(image: Any) -> bool:
    try:
        return isinstance(image, str) and parse_image(image).base == "apply-setters"
    except ValueError:
        return False


def _add_setters(package: _Package, values: Mapping[str, str]) -> str:
    """Add a file with the setters under a name that is free; return its path in the package."""
    name = _numbered(package)
    while posixpath.join(package.directory, name) in package.paths:
        name = _numbered(package)
    data: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "setters"}, "data": dict(values)}
    path = posixpath.join(package.directory, name)
    config = Resource(data, path=path, index=0, package=package.kptfile.package)
    package.new.append(config)
    package.note("added setters", config)
    return name


def _numbered(package: _Package) -> str:
    package.added += 1
    return _SETTERS_FILE if package.added == 1 else _SETTERS_FILE.replace(".", f"-{package.added}.")


def _fix_comments(package: _Package, resource: Resource, setters: AlphaSetters) -> None:
    """Rewrite the comments that name setters."""
    text = resource.text()
    if "{" not in text or "#" not in text:
        return
    named = {node.path: name for node in source_nodes(text) if (name := commented_setter(node.comment))}
    if not named or resource is package.kptfile:
        return
    set_line_comments(resource, {path: f"kpt-set: {setters.pattern(name)}" for path, name in named.items()})
    for name in named.values():
        package.note(f'transformed setter comment of "{name}" to "kpt-set: {setters.pattern(name)}"', resource)


def _declared_functions(package: _Package, resource: Resource) -> Iterator[Json]:
    """Yield the function that a resource declares to be the configuration of."""
    annotations = annotations_of(resource.data)
    for key in _FUNCTION_ANNOTATIONS:
        if isinstance(text := annotations.get(key), str):
            try:
                declared = read_document(text)
            except YamlError:
                declared = None
            container = declared.get("container") if isinstance(declared, dict) else None
            image = container.get("image") if isinstance(container, dict) else None
            if isinstance(image, str):
                yield {"image": image, "configPath": posixpath.relpath(resource.path, package.directory or ".")}
                package.note(f"transformed function {image} to a mutator of the pipeline", resource)
            else:
                package.note(f"function in annotation {key} is no container image: add it by hand", resource, "warning")
            return


FUNCTION = Builtin(
    name="fix",
    run=lambda resources, *_: fix(resources),
    summary="Brings packages with Kptfiles of v1alpha1 or v1alpha2 to v1; for `porch fn eval`, as old packages cannot be "
    "rendered.",
    source="kpt.md 4.17",
    tags=("v0.1.0", "v0.2.0", "v0.2.1"),
)
