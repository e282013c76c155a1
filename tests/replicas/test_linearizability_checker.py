"""The checker finds what is wrong with a history, and nothing wrong with one that is right."""

import random

import pytest
from linearizability import (
    ABSENT,
    NEVER,
    Operation,
    State,
    created,
    read,
    refused_create,
    refused_write,
    violation,
    written,
)

A, B, C = State("a", "Draft"), State("b", "Draft"), State("c", "Draft")


def test_overlapping_writes_and_reads_may_have_happened_in_any_order() -> None:
    history = [
        Operation(0, 1, created("a"), "create a"),
        Operation(2, 6, written(A, B), "a to b"),
        Operation(3, 4, read(A), "read a"),
        Operation(4.5, 5, read(B), "read b"),
        Operation(3, 7, refused_write(A), "a to c, refused"),
        Operation(8, 9, written(B, ABSENT), "delete b"),
        Operation(8.5, 10, refused_create, "create, refused"),
    ]

    assert violation(history) is None


@pytest.mark.parametrize(
    "wrong",
    [
        [Operation(2, 3, written(A, B), "a to b"), Operation(4, 5, read(A), "an older state")],
        [Operation(2, 3, written(A, B), "a to b"), Operation(2, 3, written(A, C), "a to c: both won")],
        [
            Operation(2, 5, written(A, B), "a to b"),
            Operation(2, 3, read(B), ""),
            Operation(3.5, 4, read(A), "back again"),
        ],
        [Operation(2, 3, read(C), "what nobody wrote")],
        [Operation(2, 3, refused_write(A), "refused, and nobody else wrote")],
        [Operation(2, 3, written(A, ABSENT), "delete"), Operation(4, 5, read(A), "deleted, and there")],
        [Operation(2, 3, created("b"), "created twice")],
        [Operation(2, 3, read(ABSENT), "lost")],
    ],
)
def test_planted_violations_are_found(wrong: list[Operation]) -> None:
    found = violation([Operation(0, 1, created("a"), "create a"), *wrong])

    assert found is not None
    assert "can be explained" in found


def test_a_write_without_an_answer_may_have_happened_or_not() -> None:
    base = [Operation(0, 1, created("a"), "create a"), Operation(2, NEVER, written(A, B), "a to b, no answer")]

    assert violation([*base, Operation(9, 10, read(A), "")]) is None
    assert violation([*base, Operation(9, 10, read(A), ""), Operation(11, 12, read(B), "")]) is None
    assert violation([*base, Operation(9, 10, read(B), ""), Operation(11, 12, read(A), "")]) is not None


def test_a_long_history_with_eight_clients_is_checked_and_one_changed_answer_in_it_is_found() -> None:
    chance = random.Random(7)  # noqa: S311 # repeatable, not secret
    history, state = [Operation(0, 0.5, created("t0"), "")], State("t0", "Draft")
    for number in range(
        1, 500
    ):  # each takes effect at its number, and its call and answer lie up to four to either side
        called, returned = number - chance.random() * 4, number + chance.random() * 4
        if chance.random() < 0.5:
            history.append(Operation(max(called, 0.6), returned, read(state), f"read {state.token}"))
        else:
            new = State(f"t{number}", "Draft")
            history.append(Operation(max(called, 0.6), returned, written(state, new), f"to {new.token}"))
            state = new
    assert violation(history) is None

    changed = history[250]
    history[250] = Operation(changed.called, changed.returned, read(State("t1", "Draft")), "read t1")
    assert violation(history) is not None
