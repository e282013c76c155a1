"""The packages people really have: those of Nephio's catalog whose pipelines need only built-in functions."""

import posixpath
import tarfile
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from kpt_cases import DATA, differences

from krm.functions.builtins import BuiltinRunner
from krm.functions.images import parse_image
from krm.functions.pipeline import render
from krm.functions.runner import FunctionNotFound
from krm.package.comments import read_comments
from krm.package.contents import Contents, File
from krm.package.documents import read_file
from krm.package.kptfile import parse_kptfile
from krm.package.yaml_reader import read_document, same

Path = tuple[str | int, ...]

STARLARK = "starlark"
CHANGED_BY = {
    "apply-setters": ("# kpt-set:",),
    "set-annotations": ("annotations",),
    "set-image": ("image",),
    "set-labels": ("labels", "matchLabels", "selector"),
    "set-namespace": ("namespace", "config.kubernetes.io/depends-on"),
}
"""A name on the path of everything the function may change."""


@cache
def _catalog() -> dict[str, File]:
    files = {}
    with tarfile.open(DATA / "nephio-catalog.tar.xz") as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None:
                files[posixpath.normpath(member.name)] = File(content.read())
    return files


@cache
def _packages() -> dict[str, dict[str, File]]:
    """Return all packages of the catalog, each with its subpackages."""
    packages: dict[str, dict[str, File]] = {
        posixpath.dirname(path): {} for path in _catalog() if posixpath.basename(path) == "Kptfile"
    }
    for path, file in _catalog().items():
        directory = posixpath.dirname(path)
        while directory:
            if directory in packages:
                packages[directory][posixpath.relpath(path, directory)] = file
            directory = posixpath.dirname(directory)
    return packages


def _steps(contents: Contents) -> Iterator[tuple[str, str, str]]:
    """Yield image, directory and configuration of every step of a package and its subpackages."""
    for path, file in contents.items():
        if posixpath.basename(path) == "Kptfile":
            kptfile = parse_kptfile(file.data, path)
            for function in (*kptfile.mutators, *kptfile.validators):
                yield str(parse_image(function.image)), posixpath.dirname(path), function.config_path or ""


def _is_built_in(contents: Contents) -> bool:
    try:
        for image, _, _ in _steps(contents):
            BuiltinRunner().require(image)
    except FunctionNotFound:
        return False
    return True


RENDERABLE = sorted(path for path, contents in _packages().items() if any(_steps(contents)) and _is_built_in(contents))


def test_every_other_pipeline_needs_a_function_of_nephio_s_own() -> None:
    others = [contents for path, contents in _packages().items() if any(_steps(contents)) and path not in RENDERABLE]

    assert len(_packages()) == 85
    assert len(RENDERABLE) == 17
    assert all(any("/nephio/" in image for image, _, _ in _steps(contents)) for contents in others)


@pytest.mark.parametrize("path", RENDERABLE)
def test_a_package_renders_and_a_second_time_changes_nothing(path: str) -> None:
    rendered = render(_packages()[path], BuiltinRunner())

    assert rendered.error == ""
    assert rendered.contents["Kptfile"].data != _packages()[path]["Kptfile"].data, "the render is noted in the Kptfile"
    again = render(rendered.contents, BuiltinRunner())
    assert differences(again.contents, rendered.contents, ignore_status=True) == []
    assert {name for name in again.contents if again.contents[name] != rendered.contents[name]} <= {"Kptfile"}


@pytest.mark.parametrize("path", RENDERABLE)
def test_a_render_changes_only_what_its_functions_say(path: str) -> None:
    before = _packages()[path]
    after = render(before, BuiltinRunner()).contents
    names = {parse_image(image).base for image, _, _ in _steps(before)}

    assert set(before) <= set(after)
    assert set(before) == set(after) or STARLARK in names
    for name in before:
        if after[name] == before[name]:
            continue
        old, new = read_file(before[name].data)[1], read_file(after[name].data)[1]
        assert len(old) == len(new)
        for one, other in zip(old, new, strict=True):
            assert read_comments(one.text) == read_comments(other.text)
            for changed in _changes(one.data, other.data, ()):
                assert _is_explained(changed, one.data, one.text, names, _targets(before)), f"{name}: {changed}"


def _changes(old: Any, new: Any, path: Path) -> Iterator[Path]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in old.keys() | new.keys():
            yield from _changes(old.get(key), new.get(key), (*path, key))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _changes(one, other, (*path, place))
    elif not same(old, new):
        yield path


def _targets(contents: Contents) -> set[str]:
    """Return the last names of the paths that the package's replacements go to."""
    targets = set()
    for image, directory, config in _steps(contents):
        if parse_image(image).base == "apply-replacements":
            for replacement in read_document(contents[posixpath.join(directory, config)].data)["replacements"]:
                for target in replacement["targets"]:
                    targets |= {path.rpartition(".[")[2].rpartition(".")[2] for path in target["fieldPaths"]}
                    targets |= {path.rpartition("[")[2].removesuffix("]") for path in target["fieldPaths"]}
    return targets


def _is_explained(path: Path, data: Any, text: str, names: set[str], targets: set[str]) -> bool:
    if data["kind"] == "Kptfile" and path[0] == "status":
        return True
    allowed = {field for name in names for field in CHANGED_BY.get(name, ())}
    if data["kind"] == "Namespace" and "set-namespace" in names:
        allowed.add("name")
    is_set = "# kpt-set:" in allowed and "kpt-set:" in text
    return STARLARK in names or is_set or path[-1] in targets or not allowed.isdisjoint(map(str, path))


@pytest.mark.parametrize("path", ["workloads/ric/pkg-example-ric", "infra/gcp/nephio-workload-cluster-gke"])
def test_some_packages_need_the_lenient_replacements_that_they_ask_for(path: str) -> None:
    contents = dict(_packages()[path])
    strict = contents["Kptfile"].data.replace(b"apply-replacements:v0.1.1", b"apply-replacements:v0.1.5")
    contents["Kptfile"] = File(strict)

    assert path in RENDERABLE
    assert "in replacement target" in render(contents, BuiltinRunner()).error
