"""Every request that porchctl sent while upstream passed its cases gets the same answer from us."""

from collections.abc import Callable
from pathlib import Path

import pytest
from porch_process import PorchProcess
from porchctl_cases import CASES, Place, place_of, transcript
from porchctl_differences import ALLOWED, Allowed
from porchctl_replay import Replay

RECORDED = sorted(path.parent.name for path in CASES.glob("*/transcript.json.xz"))


@pytest.mark.parametrize("case", RECORDED)
def test_porchctl_gets_the_answers_that_upstream_gave(
    case: str, tmp_path: Path, porch_server: PorchProcess, request: pytest.FixtureRequest
) -> None:
    with place_of(case, tmp_path, porch_server) as place:
        unexpected, used = replayed(case, place)

    assert not unexpected, unexpected
    if request.config.getoption("--cluster"):
        return  # some differences are those of a standalone server alone, which has the Repositories itself
    unneeded = [row for row in ALLOWED if row.is_about(case) and row not in used]
    assert not unneeded, "these differences are gone: take their rows out"


def test_answers_are_the_same_from_a_server_that_is_killed_in_between(
    tmp_path: Path, porch_server: PorchProcess
) -> None:
    case = "rpkg-unready"  # from a clone to the second approved revision, with a gate
    with place_of(case, tmp_path, porch_server) as place:

        def kill(number: int) -> None:
            if number in {2, 6}:
                porch_server.restart()
                place.client.close()

        unexpected, _ = replayed(case, place, kill)

    assert not unexpected, unexpected


def test_every_difference_is_one_of_a_recorded_case() -> None:
    assert [row for row in ALLOWED if not any(row.is_about(case) for case in RECORDED)] == []


def replayed(case: str, place: Place, before: Callable[[int], None] | None = None) -> tuple[str, set[Allowed]]:
    """Replay a case; return its unexpected differences, each once, and the expected ones.

    ``before`` is called with the number of each command.
    """
    replay = Replay(place)
    unexpected: dict[str, list[str]] = {}
    used: set[Allowed] = set()
    for number, recording in enumerate(transcript(case)):
        if before is not None:
            before(number)
        for exchange, difference in replay.differences(recording):
            request = f"{exchange.method} {exchange.path}"
            rows = [row for row in ALLOWED if row.is_about(case) and row.covers(request, difference.place)]
            used.update(rows)
            if not rows:
                unexpected.setdefault(str(difference), []).append(f"{request} of {recording.command}")
    return "\n".join(f"{what}\n    {len(where)} x {where[0]}" for what, where in unexpected.items()), used
