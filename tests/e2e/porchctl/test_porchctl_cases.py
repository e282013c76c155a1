"""Upstream's cases of its command-line client, as upstream states them (``porch-api.md`` 11.2)."""

from pathlib import Path

import pytest
from porch_process import PorchProcess
from porchctl_cases import CASES, place_of, steps
from porchctl_shell import Shell, wrong

STATED = sorted(path.parent.name for path in CASES.glob("*/config.yaml"))


@pytest.mark.parametrize("case", STATED)
def test_a_case_prints_what_upstream_says(case: str, tmp_path: Path, porch_server: PorchProcess) -> None:
    for name in ("remotes", "work"):
        (tmp_path / name).mkdir()
    with place_of(case, tmp_path / "remotes", porch_server) as place:
        shell = Shell(place, porch_server, tmp_path / "work")
        for number, step in enumerate(steps(case), 1):
            found = wrong(step, shell.run(step.arguments, step.stdin))
            assert not found, f"step {number}, {' '.join(step.arguments)}: {found}"
