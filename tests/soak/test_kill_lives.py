"""Twenty of the kill test's deaths (``make soak`` has two hundred): five lives that meet every kind of death once."""

from pathlib import Path

import pytest
from kill_life import Options
from kill_run import run_life
from tight_disk import can_mount

LIVES = range(1, 6)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", LIVES)
def test_nothing_acknowledged_is_lost_and_nothing_half_done_is_left_by_sudden_deaths(seed: int, tmp_path: Path) -> None:
    life = run_life(seed, tmp_path / "life", Options(mounts=can_mount(tmp_path)))

    assert sum(life.done().values()) > 10, "the rounds were long enough to mean something"
