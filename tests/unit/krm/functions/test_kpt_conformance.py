"""kpt's own render cases, as far as they need only the functions that are built in."""

from pathlib import Path
from typing import Any

import pytest
from kpt_cases import DATA, case_config, differences, expected_package, load_package

from krm.functions.builtins import builtin_runner
from krm.functions.pipeline import render
from krm.package.contents import File
from krm.package.kptfile import KptfileEdit, edit_kptfile
from krm.package.yaml_reader import read_document

FN_RENDER = sorted((DATA / "kpt" / "fn-render").iterdir())
CATALOG = sorted((DATA / "kpt" / "catalog").iterdir())
SUCCESSES = [case for case in FN_RENDER if not case_config(case).get("exitCode")]
FAILURES = [case for case in FN_RENDER if case_config(case).get("exitCode")]


def _ids(case: Path) -> str:
    return case.name


@pytest.mark.parametrize("case", SUCCESSES, ids=_ids)
def test_render_gives_what_kpt_gives(case: Path, tmp_path: Path) -> None:
    rendered = render(load_package(case), builtin_runner())

    assert rendered.error == ""
    assert differences(rendered.contents, expected_package(case, tmp_path), ignore_status=False) == []


@pytest.mark.parametrize("case", FAILURES, ids=_ids)
def test_render_fails_where_kpt_fails_and_says_the_same(case: Path, tmp_path: Path) -> None:
    contents = load_package(case)

    rendered = render(contents, builtin_runner())

    assert rendered.failed
    assert rendered.contents == contents
    stderr = str(case_config(case).get("stdErr") or "")
    if stderr and "[RUNNING]" not in stderr and case.name != "missing-fnconfig":
        assert stderr.removeprefix("Error: ").removeprefix("can't be read.\n\nDetails:\n").strip() in rendered.error
    if (case / ".expected" / "diff.patch").exists() and rendered.status is not None:
        wanted = expected_package(case, tmp_path)["Kptfile"]
        noted = edit_kptfile(contents["Kptfile"].data, KptfileEdit(rendered=rendered.status))
        assert _status(File(noted)) == _status(wanted)


@pytest.mark.parametrize("case", CATALOG, ids=_ids)
def test_function_gives_what_the_catalog_gives(case: Path, tmp_path: Path) -> None:
    rendered = render(load_package(case), builtin_runner())

    assert rendered.failed == bool(case_config(case).get("exitCode"))
    assert differences(rendered.contents, expected_package(case, tmp_path), ignore_status=True) == []
    results = case / ".expected" / "results.yaml"
    if results.exists():
        assert rendered.results == read_document(results.read_bytes())


def _status(file: File) -> Any:
    status = read_document(file.data)["status"]
    for condition in status["conditions"]:
        condition["message"] = condition["message"].strip()
    return status
