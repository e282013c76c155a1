"""The pinned requirements: complete, hashed, matching pyproject.toml, and from nowhere in particular."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
OURS = {"apiserver", "controllers", "krm", "migrations", "storage"}
FILES = sorted((ROOT / "requirements").glob("*.txt"))


def pinned(name: str) -> dict[str, Version]:
    text = (ROOT / "requirements" / name).read_text()
    return {canonicalize_name(n): Version(v) for n, v in re.findall(r"^([\w.-]+)==([^\s;]+)", text, re.MULTILINE)}


def imported() -> set[str]:
    """Every top-level module that our sources import."""
    modules = set()
    for package in OURS:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Import):
                    modules |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                    modules.add(node.module.split(".")[0])
    return modules - OURS - sys.stdlib_module_names


@pytest.mark.parametrize(
    ("requirement", "file"),
    [
        *((requirement, "run.txt") for requirement in PROJECT["project"]["dependencies"]),
        *((requirement, "dev.txt") for requirement in PROJECT["project"]["optional-dependencies"]["dev"]),
        *((requirement, "build.txt") for requirement in PROJECT["build-system"]["requires"]),
    ],
)
def test_every_dependency_is_pinned_to_a_version_it_allows(requirement: str, file: str) -> None:
    """If this fails, run ``make requirements``."""
    wanted = Requirement(requirement)

    version = pinned(file).get(canonicalize_name(wanted.name))
    assert version is not None
    assert version in wanted.specifier


def test_running_and_developing_use_the_same_versions() -> None:
    run, dev = pinned("run.txt"), pinned("dev.txt")

    assert {name: dev[name] for name in run} == run


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_pin_has_hashes_and_nothing_names_a_place(path: Path) -> None:
    text = path.read_text()
    pins = re.findall(r"^[\w.-]+==\S+(?: ;[^\\\n]*)?( \\\n    --hash=sha256:[0-9a-f]{64})?", text, re.MULTILINE)

    assert pins
    assert all(pins)
    assert not re.search(r"https?:|--(extra-)?index-url|--find-links|--trusted-host|(?<!\S)/", text)


@pytest.mark.parametrize("module", sorted(imported()))
def test_what_is_imported_is_declared(module: str) -> None:
    """What comes along with something else may leave with its next version."""
    declared = {canonicalize_name(Requirement(text).name) for text in PROJECT["project"]["dependencies"]}
    brought_by = {canonicalize_name(name) for name in packages_distributions().get(module, ())}

    assert brought_by & declared
