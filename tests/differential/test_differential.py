"""Porch answers what a real kube-apiserver answered, case by case.

The answers were recorded by ``make record-answers`` and are compared whole: code, headers that clients read, and
body. Where they may differ is listed in ``differences.py``, each with its reason.
"""

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self

import pytest
from answers import ask, recorded
from conversation import Case, Server, namespace_of
from differences import DIFFERENCES, Difference
from normal import differences
from porch_process import PorchProcess
from prelude import give
from table import AREAS

SHOWN = 12
"""Places that a failure prints."""
WATCHERS = 12
"""Watches that are open at the same time."""
LENGTH = 300
"""Characters of a value that a failure prints."""

_needed: set[Difference] = set()
_ran: set[str] = set()


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    """The answers of the real kube-apiserver, by case."""
    return {name: answer for area in AREAS for name, answer in recorded(area).items()}


@pytest.fixture(scope="module")
def porch(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Asked"]:
    """A Porch that was given the prelude."""
    process = PorchProcess(tmp_path_factory.mktemp("differential") / "data")
    process.start()
    try:
        with Asked(process) as asked:
            yield asked
    finally:
        process.stop()


class Asked:
    """Asks one Porch, case by case; watches, which do nothing but wait, all at once when the first is asked for."""

    def __init__(self, process: PorchProcess) -> None:
        self._process = process
        self._server = self._client()
        self._watches: dict[str, Future[dict[str, Any]]] = {}
        give(self._server)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def answer(self, case: Case) -> dict[str, Any]:
        """Return the answer to a case."""
        if case not in AREAS["watches"]:
            return ask(case, self._server)
        if not self._watches:
            with ThreadPoolExecutor(WATCHERS) as pool:
                self._watches = {each.name: pool.submit(self._ask_alone, each) for each in AREAS["watches"]}
        return self._watches[case.name].result()

    def _ask_alone(self, case: Case) -> dict[str, Any]:
        server = self._client()
        try:
            return ask(case, server)
        finally:
            server.close()

    def _client(self) -> Server:
        data = self._process.data
        return Server(self._process.url, ca=data / "ca.crt", certificate=(data / "admin.crt", data / "admin.key"))


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for cases in AREAS.values() for case in cases])
def test_porch_answers_as_kube_apiserver_did(case: Case, porch: Asked, answers: dict[str, Any]) -> None:
    _ran.add(case.name)
    found = differences(answers[case.name], porch.answer(case))
    unlisted = [each for each in found if not _is_listed(case.name, each[0])]

    assert not unlisted, _report(unlisted)


def test_every_answer_has_its_case(answers: dict[str, Any]) -> None:
    assert set(answers) == {case.name for cases in AREAS.values() for case in cases}


def test_no_two_cases_share_a_namespace() -> None:
    names = [namespace_of(case) for cases in AREAS.values() for case in cases]

    assert len(set(names)) == len(names)


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
