"""The laws of reading, editing and comments on documents that Hypothesis writes."""

import re
from typing import Any

from corpus_documents import VALUES, Place, added, check_edit, owner_of, places, removed, replaced
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from yaml_texts import document_texts, file_texts

from krm.package.comments import Comment, read_comments, write_comments
from krm.package.documents import Document, read_file
from krm.package.yaml_edit_text import edit_document
from krm.package.yaml_reader import plain_copy, read_document, same

_COMMENT_BELOW_A_BLOCK = re.compile(r"[|>](.|\n)*\n +#")
_RANDOM = st.randoms(use_true_random=False)
_GENERATED = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def _place(text: str, chance: Any) -> Place | None:
    picked = places(text.encode(), 1, chance)
    return picked[0] if picked else None


@_GENERATED
@given(file_texts())
def test_files_are_the_sum_of_their_documents(text: str) -> None:
    data = text.encode()
    pieces, documents = read_file(data)

    assert "".join(pieces).encode() == data
    assert all(edit_document(each.text, plain_copy(each.data), each.data) is each.text for each in documents)


@_GENERATED
@given(document_texts(aliases=False), _RANDOM, st.sampled_from(VALUES))
def test_replaced_scalar_changes_its_own_lines(text: str, chance: Any, value: Any) -> None:
    if place := _place(text, chance):
        wanted, lines = replaced(place, value)

        assert check_edit(place.document, wanted, lines) == ""


@_GENERATED
@given(document_texts(aliases=False), _RANDOM)
def test_deleted_scalar_changes_its_own_lines(text: str, chance: Any) -> None:
    if place := _place(text, chance):
        wanted, lines = removed(place)
        if "|+" in text or _COMMENT_BELOW_A_BLOCK.search(text):
            # Blank lines and comments that were nobody's may become part of such a scalar, unless they move, too.
            lines = range(text.count("\n") + 1)

        assert check_edit(place.document, wanted, lines) == ""


@_GENERATED
@given(document_texts(aliases=False), _RANDOM, st.sampled_from(VALUES))
def test_added_scalar_changes_no_other_line(text: str, chance: Any, value: Any) -> None:
    if place := _place(text, chance):
        wanted, lines = added(place, value)
        if not text.endswith("\n"):
            # A line break behind a literal scalar that ends the text may need another header.
            lines = range(text.count("\n") + 1)

        assert check_edit(place.document, wanted, lines) == ""


_NESTED = st.recursive(
    st.sampled_from(VALUES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@_GENERATED
@given(document_texts(), _RANDOM, st.lists(_NESTED, min_size=1, max_size=4))
def test_any_edit_gives_what_was_meant_and_keeps_the_comments(text: str, chance: Any, values: list[Any]) -> None:
    document = read_file(text.encode())[1][0]
    if not document.data:
        return
    wanted = plain_copy(document.data)
    for value in values:
        picked = places(text.encode(), 1, chance)
        if not picked:
            return
        try:
            owner = owner_of(wanted, picked[0].path)
            if chance.random() < 0.5:
                owner[picked[0].path[-1]] = plain_copy(value)
            else:
                del owner[picked[0].path[-1]]
        except (LookupError, TypeError):
            continue  # an earlier change took the place away

    edited = edit_document(document.text, wanted, document.data)

    assert same(read_document(edited), wanted)
    assert read_comments(edited) is not None


@_GENERATED
@given(document_texts())
def test_comments_can_be_taken_out_and_put_back(text: str) -> None:
    document = Document(text, read_document(text), 1)
    comments = read_comments(text)
    bare = write_comments(text, dict.fromkeys(comments, Comment()))

    assert write_comments(text, comments) == text
    assert same(read_document(bare), document.data)
    back = write_comments(bare, comments)
    assert same(read_document(back), document.data)


@_GENERATED
@given(document_texts(), st.sampled_from(("# new", "two\nlines", "# a\n\n# b", "it's: {", "")), _RANDOM)
def test_written_comments_change_no_data(text: str, comment: str, chance: Any) -> None:
    data = read_document(text)
    picked = places(text.encode(), 3, chance)
    wanted = {place.path[: chance.randint(0, len(place.path))]: Comment(comment, comment, comment) for place in picked}

    assert same(read_document(write_comments(text, wanted)), data)
