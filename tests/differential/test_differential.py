"""Porch answers what a real kube-apiserver answered, case by case.

The answers were recorded by ``make record-answers`` and are compared whole: code, headers that clients read, and
body. Where they may differ is listed in ``differences.py``, each with its reason.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from answers import ask, recorded
from conversation import Case, Server
from differences import DIFFERENCES, Difference
from normal import differences
from porch_process import PorchProcess
from prelude import give
from table import AREAS

SHOWN = 12
"""Places that a failure prints."""
LENGTH = 300
"""Characters of a value that a failure prints."""

_needed: set[Difference] = set()
_ran: set[str] = set()


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """The answers of the real kube-apiserver, by case."""
    return {name: answer for area in AREAS for name, answer in recorded(area).items()}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Porch that was given the prelude."""
    porch = PorchProcess(tmp_path_factory.mktemp("differential") / "data")
    porch.start()
    administrator = porch.data / "admin.crt", porch.data / "admin.key"
    client = Server(porch.url, ca=porch.data / "ca.crt", certificate=administrator)
    give(client)
    yield client
    client.close()
    porch.stop()


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for cases in AREAS.values() for case in cases])
def test_porch_answers_as_kube_apiserver_did(case: Case, server: Server, answers: dict[str, Any]) -> None:
    _ran.add(case.name)
    found = differences(answers[case.name], ask(case, server))
    unlisted = [each for each in found if not _is_listed(case.name, each[0])]

    assert not unlisted, _report(unlisted)


def test_every_answer_has_its_case(answers: dict[str, Any]) -> None:
    assert set(answers) == {case.name for cases in AREAS.values() for case in cases}


def test_every_listed_difference_is_still_there() -> None:
    """Runs last; rows about cases that were not run are left alone."""
    names = [case.name for cases in AREAS.values() for case in cases]
    about = {row: {name for name in names if row.is_about(name)} for row in DIFFERENCES}

    unneeded = [f"{row.case}: {row.path}" for row, cases in about.items() if cases <= _ran and row not in _needed]
    assert not unneeded, "\n".join(["take these rows out:", *unneeded])


def _is_listed(case: str, path: str) -> bool:
    rows = [row for row in DIFFERENCES if row.covers(case, path)]
    _needed.update(rows)
    return bool(rows)


def _report(found: list[tuple[str, Any, Any]]) -> str:
    lines = [f"{path}\n  real:  {_show(real)}\n  porch: {_show(ours)}" for path, real, ours in found[:SHOWN]]
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return "\n".join(["the answers differ:", *lines, *more])


def _show(value: Any) -> str:
    return "(absent)" if value is ... else json.dumps(value, ensure_ascii=False)[:LENGTH]
