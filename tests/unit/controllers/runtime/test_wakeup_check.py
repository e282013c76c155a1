"""The check of the mapping of events suspects every event, and reports only what a variant really had to do."""

import pytest

from controllers.runtime.finished_passes import FinishedPasses
from controllers.runtime.wakeup_check import WakeupCheck

Key = tuple[str, str]
A, B, C = (("default", name) for name in "abc")


class Rig:
    def __init__(self) -> None:
        self.writes: dict[Key, int] = {}
        self.looks: list[Key] = []
        self.finished = FinishedPasses(lambda key: key)
        self.check = WakeupCheck(
            lambda: [A, B, C], self.looks.append, self.finished, lambda key: self.writes.get(key, 0)
        )
        for key in (A, B):
            self.finished.finish(key, self.finished.begin(key))


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_those_who_had_nothing_to_do_and_were_not_woken_are_looked_at(rig: Rig) -> None:
    rig.check.happened("packagerevisions/x", {A})

    assert rig.looks == [B]
    assert [rig.check.suspects(key) for key in (A, B, C)] == [False, True, False]


def test_one_that_finds_nothing_to_write_was_rightly_left_alone(rig: Rig) -> None:
    rig.check.happened("packagerevisions/x", {A})
    rig.check.looked(B)

    assert rig.check.missed == 0
    assert not rig.check.suspects(B)


def test_one_that_writes_was_forgotten(rig: Rig) -> None:
    rig.check.happened("packagerevisions/x", {A})
    rig.writes[B] = 1
    rig.check.looked(B)
    rig.check.looked(B)

    assert rig.check.missed == 1


def test_one_that_another_event_woke_meanwhile_proves_nothing(rig: Rig) -> None:
    rig.check.happened("packagerevisions/x", {A})
    rig.finished.woken(B)
    rig.writes[B] = 1
    rig.check.looked(B)

    assert rig.check.missed == 0


def test_one_that_an_earlier_event_woke_is_not_suspected(rig: Rig) -> None:
    rig.finished.woken(B)
    rig.check.happened("packagerevisions/x", {A})

    assert rig.looks == []


def test_a_failure_proves_nothing(rig: Rig) -> None:
    rig.check.happened("packagerevisions/x", {A})
    rig.check.forget(B)
    rig.writes[B] = 1
    rig.check.looked(B)

    assert rig.check.missed == 0


def test_one_that_was_woken_may_write(rig: Rig) -> None:
    rig.check.happened("packagerevisions/x", {A})
    rig.writes[A] = 1
    rig.check.looked(A)

    assert rig.check.missed == 0
