"""kpt's own render cases, driven as its harness drives kpt: the command line, its messages and its exit code."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kpt_cases import DATA, case_config, differences, directory_name, expected_package, load_package

from krm.cli.fn import cli
from krm.package.yaml_reader import read_document

CASES = sorted((DATA / "kpt" / "fn-render").iterdir())
_DURATION = re.compile(r" in [0-9.]+m?s$", re.MULTILINE)


def _render(case: Path, work: Path) -> tuple[Path, Result]:
    package = work / directory_name(case)
    shutil.copytree(case, package, ignore=shutil.ignore_patterns(".expected"))
    config = case_config(case)
    options = ["--results-dir", str(work / "results")]
    if config.get("disableOutputTruncate"):
        options.append("--truncate-output=false")
    if config.get("allowNetwork"):
        options.append("--allow-network")
    return package, CliRunner().invoke(cli, ["render", str(package), *options], catch_exceptions=False)


def _comparable(text: str, config: dict[str, Any]) -> str:
    """Return what a program said as kpt's harness compares it; lines without their indentation."""
    left_out = {line.strip() for line in config.get("stdErrStripLines") or ()}
    lines = (line.strip() for line in _DURATION.sub(" in 0s", text).strip().splitlines())
    return "\n".join(line for line in lines if line not in left_out)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_command_says_and_leaves_what_kpt_does(case: Path, tmp_path: Path) -> None:
    config = case_config(case)

    package, result = _render(case, tmp_path)

    assert result.exit_code == int(config.get("exitCode") or 0), result.stderr
    said = result.stderr.replace(f"{tmp_path}/results/", "results/")
    assert _comparable(str(config.get("stdErr") or ""), config) in _comparable(said, config)
    assert differences(load_package(package), expected_package(case, tmp_path / "expected"), ignore_status=False) == []
    if (expected := case / ".expected" / "results.yaml").exists():
        assert read_document((tmp_path / "results" / "results.yaml").read_bytes()) == read_document(
            expected.read_bytes()
        )
