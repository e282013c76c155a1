"""A short contest of controllers; ``make soak`` runs long ones."""

from pathlib import Path

import pytest
from contest import Contest
from git_server import GitServer
from porch_process import PorchProcess
from variant_place import new_place, with_blueprint


@pytest.mark.timeout(600)
def test_whoever_is_killed_or_stopped_nothing_is_left_undone_nor_done_twice(
    porch_server: PorchProcess, git_http: GitServer, tmp_path: Path
) -> None:
    place = with_blueprint(new_place(porch_server, git_http, "contest"))
    contest = Contest(place, tmp_path, seed=7, variants=20)
    contest.run(20)

    place.porch.close()
    assert sum(contest.acts.values()) > 5
