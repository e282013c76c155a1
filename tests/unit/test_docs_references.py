"""What the documentation names exists: linked pages, source files, functions and classes, make targets."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SOURCE = r"(?:apiserver|bench|krm|migrations|storage|tests)/[\w/]+\.py"


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


def names_in(module: Path) -> set[str]:
    tree = ast.parse(module.read_text())
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = {node.name for node in ast.walk(tree) if isinstance(node, defined)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())

    missing = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_source_files_exist(page: Path) -> None:
    missing = [path for path in re.findall(rf"`({SOURCE})`", page.read_text()) if not (ROOT / path).is_file()]

    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_a_name_beside_a_source_file_is_defined_in_it(page: Path) -> None:
    """The form is `file.py` `Class.method`."""
    wrong = [
        f"{path} {name}"
        for path, name in re.findall(rf"`({SOURCE})`\s+`([A-Za-z_][\w.]*)`", page.read_text())
        if not set(name.split(".")) <= names_in(ROOT / path)
    ]

    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_make_targets_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    # In code only: the word also occurs in sentences.
    named = set(re.findall(r"(?:`|^\s*)make ([a-z]+)", page.read_text(), re.MULTILINE))

    assert named <= targets


def test_the_architecture_page_names_enough_to_be_worth_checking() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()

    assert len(set(re.findall(rf"`({SOURCE})`", text))) > 25
