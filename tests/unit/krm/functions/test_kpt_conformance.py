"""kpt's own render cases and those of its function catalog, as far as no outside tool is needed."""

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from kpt_cases import DATA, case_config, differences, directory_name, expected_package, load_package

from krm.cli.function_output import FunctionOutput
from krm.functions.builtins import BuiltinRunner
from krm.functions.pipeline import Rendered, render
from krm.package.yaml_reader import read_document

FN_RENDER = sorted((DATA / "kpt" / "fn-render").iterdir())
CATALOG = sorted((DATA / "kpt" / "catalog").iterdir())
_SECONDS = re.compile(r"(?<= in )[0-9.]+s$", re.MULTILINE)

_WHERE_RESULTS_ARE = "For complete results, see results/results.yaml"
"""The command line's part."""


def _ids(case: Path) -> str:
    return case.name


def _render(case: Path) -> tuple[Rendered, str]:
    """Render a case; return what a terminal shows of it too, without what the case says to leave out."""
    config = case_config(case)
    output = FunctionOutput(StringIO(), directory_name(case), truncate=not config.get("disableOutputTruncate"))
    rendered = render(load_package(case), BuiltinRunner(), shown=directory_name(case), observer=output)
    output.summary(failed=rendered.failed)
    text = f"{output.stream.getvalue()}Error: {rendered.cause}\n"  # type: ignore[attr-defined] # a StringIO
    lines = [line for line in text.splitlines() if line not in config.get("stdErrStripLines", [])]
    return rendered, _SECONDS.sub("0s", "\n".join(lines))


def _results(case: Path) -> Any:
    file = case / ".expected" / "results.yaml"
    return read_document(file.read_bytes()) if file.exists() else None


@pytest.mark.parametrize("case", FN_RENDER, ids=_ids)
def test_render_does_what_kpt_does(case: Path, tmp_path: Path) -> None:
    """Files, Kptfile status, results, exit code and what the terminal shows; the same for failures."""
    config = case_config(case)

    rendered, shown = _render(case)

    assert int(rendered.failed) == config.get("exitCode", 0)
    assert differences(rendered.contents, expected_package(case, tmp_path), ignore_status=False) == []
    said = str(config.get("stdErr") or "").replace(_WHERE_RESULTS_ARE, "")
    assert said.strip() in shown
    if (results := _results(case)) is not None:
        assert rendered.results == results


@pytest.mark.parametrize("case", CATALOG, ids=_ids)
def test_function_gives_what_the_catalog_gives(case: Path, tmp_path: Path) -> None:
    rendered, _ = _render(case)

    assert int(rendered.failed) == case_config(case).get("exitCode", 0)
    assert differences(rendered.contents, expected_package(case, tmp_path), ignore_status=True) == []
    if (results := _results(case)) is not None:
        assert rendered.results == results
