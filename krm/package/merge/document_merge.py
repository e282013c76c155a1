"""Three-way merge of one YAML document: its data, applied to the local text as the smallest edit, and its comments.

Source: ``kpt.md`` 3.4, 3.6 and 3.8.
"""

import re
from dataclasses import dataclass

from krm.package.comments import Comment, Path, read_comments
from krm.package.documents import Document
from krm.package.merge.associative_lists import ListKeys, inline_schemas, may_have_inline
from krm.package.merge.comment_merge import MERGE_KEY, merge_comments
from krm.package.merge.conflicts import ABSENT, Conflict, ConflictLog, Kept, OnConflict, shown
from krm.package.merge.field_merge import FieldMerge, merge_fields
from krm.package.merge.spelling import keep_spelling
from krm.package.resource_identity import UPSTREAM_IDENTIFIER
from krm.package.yaml_edit_text import edit_document
from krm.package.yaml_reader import read_document, same

_COMMENT_LIKE = re.compile(r"#[^\n]*")
_BOOKKEEPING = frozenset(
    (
        UPSTREAM_IDENTIFIER,
        "config.kubernetes.io/path",
        "config.kubernetes.io/index",
        "config.kubernetes.io/merge-source",
        "internal.config.kubernetes.io/path",
        "internal.config.kubernetes.io/index",
        "internal.config.kubernetes.io/annotations-migration-resource-id",
        "cnrm.cloud.google.com/blueprint",
    )
)
"""Annotations that tools write about a resource; they make no difference to whether someone edited it."""


@dataclass(frozen=True, slots=True)
class MergedDocument:
    """The result of a merge; ``text`` is None when the document is gone."""

    text: str | None
    conflicts: tuple[Conflict, ...] = ()


def merge_documents(
    origin: str | None, updated: str | None, local: str | None, *, lists: ListKeys | None = None
) -> MergedDocument:
    """Merge the three states of one resource; None or a text without content is a state without it.

    What upstream added, or changed in what is still here, is merged in; what upstream removed goes if it
    was not edited here; what was removed here stays removed. A text that upstream did not change is
    returned as it is. Merging again gives the same.

    Raises:
        YamlError: a text is not one YAML document.

    Source: the table of ``kpt.md`` 3.4.
    """
    log = ConflictLog()
    states = [_document(text) for text in (origin, updated, local)]
    text = merge_states(*states, lists=lists or ListKeys(), on_conflict=log)
    return MergedDocument(text, tuple(log.conflicts))


def merge_states(
    origin: Document | None,
    updated: Document | None,
    local: Document | None,
    *,
    lists: ListKeys,
    on_conflict: OnConflict,
) -> str | None:
    """Do the same with documents that are read already, each with content."""
    if updated is None:
        if origin is None or local is None:
            return local.text if local else None
        if is_unedited(origin, local):
            return None
        on_conflict(_of_whole(origin, updated, local))
        return local.text
    if local is None:
        if origin is None:
            return updated.text
        if not same(origin.data, updated.data):
            on_conflict(_of_whole(origin, updated, local))
        return None
    return _merged_text(origin, updated, local, lists, on_conflict)


def is_unedited(origin: Document, local: Document) -> bool:
    """Say whether ``local`` still says what ``origin`` says; what tools record in it does not count.

    Source: ``kpt.md`` 3.4, which recommends to leave out merge comment and identifier as well.
    """
    if origin.text == local.text:
        return True
    return same(_without_bookkeeping(origin.data), _without_bookkeeping(local.data)) and (
        _people_comments(origin.text) == _people_comments(local.text)
    )


def _merged_text(
    origin: Document | None, updated: Document, local: Document, lists: ListKeys, on_conflict: OnConflict
) -> str | None:
    if (origin is not None and origin.text == updated.text) or updated.text == local.text:
        return local.text
    texts = [state.text for state in (local, updated, origin) if state]
    if any(map(may_have_inline, texts)):
        lists = lists.with_inline(inline_schemas(*map(read_comments, texts)))
    merged = merge_fields(
        origin.data if origin else ABSENT, updated.data, local.data, lists=lists, on_conflict=on_conflict
    )
    if merged.value is ABSENT:
        return None
    states = origin, updated, local
    text = keep_spelling(edit_document(local.text, merged.value, local.data), merged, states)
    if _may_change_comments(origin, updated, local, text, merged):
        text = merge_comments(text, merged, states)
    return text


def _may_change_comments(
    origin: Document | None, updated: Document, local: Document, text: str, merged: FieldMerge
) -> bool:
    """Say whether comments are to be looked at: not if all that changed is scalars in their places.

    Goes by everything that looks like a comment, so as not to read texts that hold none.
    """
    before, upstream, here, now = (
        _COMMENT_LIKE.findall(part) for part in (origin.text if origin else "", updated.text, local.text, text)
    )
    if before != upstream or here != now or (upstream and not _is_same_shape(origin and origin.data, updated.data)):
        return True
    if all(MERGE_KEY in comment for comment in here):
        # No edit of anything else reaches the merge key.
        return False
    is_moved = any(place.local != index for places in merged.elements.values() for index, place in enumerate(places))
    return is_moved or not _is_same_shape(local.data, merged.value)


def _is_same_shape(one: object, other: object) -> bool:
    """Say whether two states differ in nothing but scalars of objects."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(map(_is_same_shape, one.values(), map(other.__getitem__, one)))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same_element, one, other))
    return not isinstance(one, (dict, list)) and not isinstance(other, (dict, list))


def _is_same_element(one: object, other: object) -> bool:
    return _is_same_shape(one, other) and (isinstance(one, (dict, list)) or same(one, other))


def _document(text: str | None) -> Document | None:
    data = None if text is None else read_document(text)
    return None if text is None or data is None else Document(text, data, 1)


def _of_whole(origin: Document, updated: Document | None, local: Document | None) -> Conflict:
    upstream, here = (shown(state.data if state else ABSENT) for state in (updated, local))
    return Conflict("", shown(origin.data), upstream, here, Kept.LOCAL)


def _without_bookkeeping(data: object) -> object:
    metadata = data.get("metadata") if isinstance(data, dict) else None
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if not isinstance(data, dict) or not isinstance(metadata, dict) or not isinstance(annotations, dict):
        return data
    kept = {name: value for name, value in annotations.items() if name not in _BOOKKEEPING}
    metadata = {name: value for name, value in metadata.items() if name != "annotations"}
    return {**data, "metadata": {**metadata, "annotations": kept} if kept else metadata}


def _people_comments(text: str) -> dict[Path, Comment]:
    """Return the comments of a document without the merge key."""
    comments = read_comments(text)
    here = comments.get(("metadata",))
    if here is not None and MERGE_KEY in here.line:
        here = Comment(here.head, "", here.foot)
        comments[("metadata",)] = here
        if here == Comment():
            del comments[("metadata",)]
    return comments
