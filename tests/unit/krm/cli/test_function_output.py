"""What is printed of functions, to the letter."""

from io import StringIO
from typing import Any

import pytest

from krm.cli.function_output import FunctionOutput, result_line
from krm.functions.step_record import StepRecord
from krm.package.kptfile import Function


def _said(*records: StepRecord, root: str = "app", truncate: bool = True) -> str:
    stream = StringIO()
    output = FunctionOutput(stream, root, truncate=truncate)
    for record in records:
        output.enters(record.package)
        output.starts(record)
        output.ends(record)
    output.summary(failed=any(record.exit_code for record in records))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("result", "line"),
    [
        ({"message": "m"}, "[info]: m"),
        ({"message": "one\ntwo", "severity": "warning"}, "[warning]: one two"),
        (
            {
                "message": "got string, want integer",
                "severity": "error",
                "resourceRef": {"name": "n", "namespace": "ns", "kind": "Deployment", "apiVersion": "apps/v1"},
                "field": {"path": "spec.replicas"},
            },
            "[error] apps/v1/Deployment/ns/n spec.replicas: got string, want integer",
        ),
        ({"message": "m", "resourceRef": {"kind": "X", "name": "n"}}, "[info] X/n: m"),
        ({"message": "m", "field": {"currentValue": "1"}}, "[info]: m"),
    ],
)
def test_result_is_one_line(result: dict[str, Any], line: str) -> None:
    assert result_line(result) == line


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.04, "0s"), (1.26, "1.2s"), (59.99, "59.9s"), (60.0, "1m0s"), (301.55, "5m1.5s")]
)
def test_duration_is_shown_as_go_shows_it(seconds: float, shown: str) -> None:
    assert f'[PASS] "x" in {shown}\n' in _said(StepRecord(Function(image="x"), "x", seconds=seconds))


def test_packages_are_apart_by_a_blank_line() -> None:
    said = _said(
        StepRecord(Function(image="x"), "x", package="db", selected=2),
        StepRecord(Function(exec='sh -c "a"'), stderr="  note\n"),
    )

    assert said == (
        'Package "app/db":\n[RUNNING] "x" on 2 resource(s) on package "app/db"\n[PASS] "x" in 0s\n'
        '\nPackage "app":\n[RUNNING] "sh -c \\"a\\"" on package "app"\n[PASS] "sh -c \\"a\\"" in 0s\n'
        "  Stderr:\n    note\n\nSuccessfully executed 2 function(s) in 2 package(s).\n"
    )


def test_long_results_are_cut_unless_all_are_asked_for() -> None:
    record = StepRecord(Function(image="x"), "x", results=[{"message": str(number)} for number in range(6)])

    assert "    [info]: 3\n    ...(2 line(s) truncated, use '--truncate-output=false' to disable)\n" in _said(record)
    assert "    [info]: 4\n    [info]: 5\n" in _said(record, truncate=False)


def test_terminal_cannot_be_driven_by_what_functions_say() -> None:
    said = _said(StepRecord(Function(exec="\x1b[2J"), stderr="\x1b]0;title\x07\x9b1m", exit_code=1))

    assert not {"\x1b", "\x07", "\x9b"} & set(said)
    assert said.endswith("  Exit code: 1\n\nFailed to execute any functions in 1 package(s).\n")
