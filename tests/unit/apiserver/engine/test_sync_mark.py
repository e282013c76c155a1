"""The note that lets a restart skip reading all revisions."""

from pathlib import Path

import pytest

from apiserver.engine.sync_mark import FORM, mark_holds, noted_ahead, write_mark

REFS = {"refs/heads/main": "a" * 40, "refs/tags/app/v1": "b" * 40}


def test_a_note_holds_for_the_same_refs_in_any_order(tmp_path: Path) -> None:
    write_mark(tmp_path, REFS, 7)

    assert mark_holds(tmp_path, dict(reversed(REFS.items())), 9)


def test_a_note_does_not_hold_for_other_refs(tmp_path: Path) -> None:
    write_mark(tmp_path, REFS, 7)

    assert not mark_holds(tmp_path, {**REFS, "refs/tags/app/v2": "c" * 40}, 9)


def test_a_note_does_not_hold_for_a_log_that_went_back(tmp_path: Path) -> None:
    """A database restored from a backup may lack what the clone has long seen."""
    write_mark(tmp_path, REFS, 7)

    assert not mark_holds(tmp_path, REFS, 6)


def test_a_missing_or_broken_note_does_not_hold(tmp_path: Path) -> None:
    assert not mark_holds(tmp_path, REFS, 7)
    (tmp_path / "porch-synced").write_text("what is this")
    assert not mark_holds(tmp_path, REFS, 7)


def test_a_note_of_another_form_does_not_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_mark(tmp_path, REFS, 7)
    monkeypatch.setattr("apiserver.engine.sync_mark.FORM", FORM + 1)

    assert not mark_holds(tmp_path, REFS, 9)


def test_a_note_is_about_one_incarnation_of_the_database(tmp_path: Path) -> None:
    write_mark(tmp_path, REFS, 7, "one")

    assert mark_holds(tmp_path, REFS, 7, "one")
    assert not mark_holds(tmp_path, REFS, 2_000_000_000, "two")
    assert not mark_holds(tmp_path, REFS, 7)


def test_a_note_that_is_ahead_of_the_log_tells_that_the_log_was_cut_off(tmp_path: Path) -> None:
    assert noted_ahead(tmp_path, 6) == 0, "there is none"
    write_mark(tmp_path, REFS, 7, "one")

    assert noted_ahead(tmp_path, 6, "one") == 7
    assert noted_ahead(tmp_path, 7, "one") == 0
    assert noted_ahead(tmp_path, 6, "two") == 0, "it was put back, and said so"
