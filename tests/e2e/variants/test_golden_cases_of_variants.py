"""Every golden case that needs a cluster, and every requirement on the server, has a test in this folder."""

from pathlib import Path

from golden import proven

INJECTION = [f"G-I{number:02}" for number in range(8, 25) if number != 14]  # 14 and 1 to 7 are functions of files
DISCOVERY = [f"G-D{number:02}" for number in range(1, 12)] + [f"G-X{number:02}" for number in range(1, 9)]
FLOW = [f"G-F{number:02}" for number in range(1, 19)]
READINESS = [f"G-G{number:02}" for number in range(1, 7)]
TAGS = ["G-U06", "G-U07", "G-U08", "G-U09", "2.4.1", "2.4.2", "2.4.3", "2.4.4"]
TAGS += [f"2.4.{rule}" for rule in ("backwards", "retag", "same-commit", "debounce", "allowDowngrade")]
REQUIREMENTS = [f"R{number}" for number in range(1, 12)]
INVARIANTS = ["I2", "I3", "I5", "I6", "I7", "I8"]  # I1 is the end of every case, I4 has tests of its own
WANTED = [*INJECTION, *DISCOVERY, *FLOW, *READINESS, *TAGS, *REQUIREMENTS, *INVARIANTS]


def test_every_golden_case_that_needs_a_cluster_has_a_test() -> None:
    found = proven(Path(__file__).parent)

    assert [name for name in WANTED if name not in found] == []
