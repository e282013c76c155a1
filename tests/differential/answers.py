"""The answer to a case as it is recorded and compared."""

import json
from http import HTTPStatus
from pathlib import Path
from typing import Any

from conversation import Case, Server, have
from normal import Normaliser
from views import VIEWS

DATA = Path(__file__).resolve().parent.parent / "data" / "differential"


def ask(case: Case, server: Server) -> dict[str, Any]:
    """Have a case with a server; return the codes of its steps and the compared answer, normalised.

    Raises:
        SetupFailed: a step before the compared request was refused.
    """
    answers = have(case, server)
    normaliser = Normaliser()
    normaliser.see(answers[:-1])
    view = VIEWS[case.view if answers[-1].code == HTTPStatus.OK else ""]
    return {"setup": [answer.code for answer in answers[:-1]], **normaliser.answer(answers[-1], view)}


def recorded(area: str) -> dict[str, Any]:
    """Return the answers of an area, by case, as the real kube-apiserver gave them."""
    answers: dict[str, Any] = json.loads((DATA / f"{area}.json").read_text())
    return answers
