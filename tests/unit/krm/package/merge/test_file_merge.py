"""Files that are merged as a whole, bytes and mode."""

import pytest

from krm.package.contents import EXECUTABLE, SYMLINK, File
from krm.package.merge.conflicts import MAX_SHOWN, Kept
from krm.package.merge.file_merge import file_conflict, merge_files

_A, _B, _C = File(b"a"), File(b"b"), File(b"c")
_A_RUN = File(b"a", EXECUTABLE)


@pytest.mark.parametrize(
    ("origin", "updated", "local", "merged", "is_conflict"),
    [
        pytest.param(None, None, _A, _A, False, id="added here"),
        pytest.param(None, _A, None, _A, False, id="added upstream"),
        pytest.param(None, _A, _A, _A, False, id="added alike on both sides"),
        pytest.param(None, _A, _B, _B, True, id="added differently on both sides"),
        pytest.param(_A, _A, _A, _A, False, id="untouched"),
        pytest.param(_A, _B, _A, _B, False, id="changed upstream"),
        pytest.param(_A, _A, _B, _B, False, id="changed here"),
        pytest.param(_A, _B, _B, _B, False, id="changed alike"),
        pytest.param(_A, _B, _C, _C, True, id="changed on both sides"),
        pytest.param(_A, None, _A, None, False, id="removed upstream"),
        pytest.param(_A, None, _B, _B, True, id="removed upstream, changed here"),
        pytest.param(_A, _A, None, None, False, id="removed here"),
        pytest.param(_A, _B, None, None, True, id="removed here, changed upstream"),
        pytest.param(_A, None, None, None, False, id="removed on both sides"),
        pytest.param(_A, _A_RUN, _A, _A_RUN, False, id="made executable upstream"),
        pytest.param(_A, _B, _A_RUN, File(b"b", EXECUTABLE), False, id="made executable here, changed upstream"),
        pytest.param(_A, _B, File(b"a", SYMLINK), File(b"a", SYMLINK), True, id="made a link here"),
    ],
)
def test_upstream_replaces_only_what_nobody_touched_here(
    origin: File | None, updated: File | None, local: File | None, merged: File | None, is_conflict: bool
) -> None:
    trees = [{"f": file} if file else {} for file in (origin, updated, local)]

    files, conflicts = merge_files(*trees)

    assert files.get("f") == merged
    assert [conflict.file for conflict in conflicts] == ["f"] * is_conflict
    assert merge_files(trees[1], trees[1], files) == (files, [])


def test_a_conflict_shows_text_and_counts_the_bytes_of_binaries() -> None:
    conflict = file_conflict("f", File(b"\0" * 7), File("é".encode() * 9000, EXECUTABLE), None, Kept.LOCAL)

    assert conflict.origin == "7 bytes"
    assert conflict.updated is not None
    assert conflict.updated.startswith('mode 100755 "éé')
    assert len(conflict.updated) < MAX_SHOWN + 20
    assert conflict.local is None
    assert str(conflict).startswith("f: both sides changed it")
