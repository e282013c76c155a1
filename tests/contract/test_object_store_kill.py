# ruff: noqa: F811 # fixtures are imported and then named as parameters
"""What a write acknowledged is there after ``kill -9``, and nothing is there by halves."""

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from object_store_cases import (
    RESOURCE,
    key,
    new_database,  # noqa: F401 # fixtures are found by name
    open_store,
    sqlite_template,  # noqa: F401
    target,  # noqa: F401
)

from storage.sql.migrate import Target

VICTIM = Path(__file__).with_name("object_store_victim.py")


def killed_output(target: Target, seconds: float) -> list[str]:
    """Let a victim write, kill it some time after its first acknowledgement, return its whole lines."""
    with subprocess.Popen([sys.executable, str(VICTIM), str(target)], stdout=subprocess.PIPE, text=True) as victim:
        assert victim.stdout is not None
        first = victim.stdout.readline()
        time.sleep(seconds)
        victim.kill()
        rest = victim.stdout.read()
    return [line for line in (first + rest).splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.timeout(300)
async def test_nothing_acknowledged_is_missing_and_nothing_is_half_done(target: Target) -> None:
    chance = random.Random(7)  # noqa: S311 # moments to kill at, no secret
    for _ in range(4):
        acknowledged = killed_output(target, chance.uniform(0.02, 0.3))
        async with open_store(target) as store:
            for line in acknowledged:
                name, rv, pair = line.split()
                entry, companion = store.get(key(name)), store.get(key(pair))

                assert entry is not None
                assert entry.rv >= int(rv)
                assert companion is not None
            everything = store.snapshot(RESOURCE)
            pairs = [entry for entry in everything if "-" in entry.name]
            rows = await store._database.changes(0, 10**6)
            assert len(rows) == 2 * len(pairs)
            assert [row.rv for row in rows] == list(range(1, store.rv + 1))
            assert len(acknowledged) > 1
