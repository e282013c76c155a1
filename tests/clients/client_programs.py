"""Where the programs lie that ``make test-clients`` builds, and what they are tested with."""

from pathlib import Path

import pytest

BUILD = Path(__file__).resolve().parents[2] / ".build"


def built(name: str) -> Path:
    """Return a program of ``.build``; skip the test where it was not built."""
    program = BUILD / name
    if not program.exists():
        pytest.skip(f".build/{name} is not there; make test-clients builds it (it needs Go)")
    return program
