"""Nothing changes in real packages but what is meant; every case has its seed in its name."""

from collections.abc import Callable
from typing import Any

import pytest
from corpus_documents import VALUES, Place, added, check_edit, places, removed, replaced, seeded, yaml_files

from krm.package.comments import Comment, read_comments, write_comments
from krm.package.documents import read_file
from krm.package.yaml_edit_text import EDIT_WAYS, edit_document
from krm.package.yaml_reader import plain_copy, read_document, same

PLACES = 20
"""Per file; ``make fidelity`` takes more."""
SHARES = 8

_CHANGES: dict[str, Callable[[Place, Any], tuple[Any, range]]] = {
    "set": added,
    "replace": replaced,
    "delete": lambda place, _: removed(place),
}


def test_loading_and_saving_is_the_identity() -> None:
    count = 0
    for name, data in yaml_files():
        pieces, documents = read_file(data)
        count += 1

        assert "".join(pieces).encode() == data, name
        assert all(edit_document(each.text, plain_copy(each.data), each.data) is each.text for each in documents)
    assert count == 918


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("change", _CHANGES)
def test_one_scalar_changes_its_own_lines(change: str, share: int) -> None:
    faults = []
    for name, data in yaml_files()[share::SHARES]:
        chance = seeded(f"{change} {name}")
        for place in places(data, PLACES, chance):
            wanted, lines = _CHANGES[change](place, chance.choice(VALUES))
            if fault := check_edit(place.document, wanted, lines):
                faults.append(f"{name} {place.path}: {fault}")

    assert faults == []


def test_edits_of_the_corpus_need_no_second_way() -> None:
    """What is not spliced loses time at best and layout at worst."""
    before = EDIT_WAYS.copy()
    for name, data in yaml_files():
        chance = seeded(name)
        for place in places(data, 2, chance):
            wanted, _ = replaced(place, chance.choice(VALUES))
            edit_document(place.document.text, wanted, place.document.data)
    made = EDIT_WAYS - before

    assert made["spliced"] > 1000
    assert set(made) == {"spliced"}


def test_comments_of_the_corpus_can_be_taken_out_and_put_back() -> None:
    count = 0
    for name, data in yaml_files():
        for document in read_file(data)[1]:
            comments = read_comments(document.text) if document.data is not None else {}
            if not comments:
                continue
            count += len(comments)
            bare = write_comments(document.text, dict.fromkeys(comments, Comment()))

            assert write_comments(document.text, comments) == document.text, name
            assert read_comments(bare) == {}, name
            assert same(read_document(bare), document.data), name
            assert read_comments(write_comments(bare, comments)) == comments, name
    assert count > 600
