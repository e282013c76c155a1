"""Three-way merge of comments, onto a text whose data is merged already. Source: ``kpt.md`` 3.8.

What upstream changed, added or removed is taken over unless the comment was changed here too; then the
local one stays, but for a scalar whose value comes from upstream as well. Values that upstream added
bring their comments along, and an element's comments go where the element goes.
"""

from collections.abc import Mapping
from typing import Any

from krm.package.comments import Comment, Path, read_comments, write_comments
from krm.package.documents import Document
from krm.package.merge.alignment import LOCAL, Alignment, value_at
from krm.package.merge.conflicts import ABSENT
from krm.package.merge.field_merge import FieldMerge
from krm.package.yaml_reader import YamlError, same

Comments = Mapping[Path, Comment]
MERGE_KEY = "kpt-merge:"
"""Marks the comment that holds a resource's upstream identity, which must outlive every merge."""
_NOTHING = Comment()


def merge_comments(text: str, merged: FieldMerge, states: tuple[Document | None, Document, Document]) -> str:
    """Return ``text``, which reads as ``merged``, with the comments merged.

    ``states`` are origin, updated and local. Comments that cannot be written where they belong are left out.
    """
    alignments = [Alignment(merged, place, state.data if state else ABSENT) for place, state in enumerate(states)]
    found = [
        _moved(alignment, read_comments(state.text) if state else {})
        for alignment, state in zip(alignments, states, strict=True)
    ]
    current = read_comments(text)
    local, data = alignments[LOCAL], states[LOCAL].data
    wanted = {}
    for path in dict.fromkeys(path for comments in (*found, current) for path in comments):
        origin, updated, here = (comments.get(path, _NOTHING) for comments in found)
        place = local.source(path)
        if place is None:
            comment = updated
        else:
            before, now = value_at(data, place), value_at(merged.value, path)
            comment = _merged(origin, updated, here, is_taken=_is_changed_scalar(before, now))
        if comment != current.get(path, _NOTHING):
            wanted[path] = comment
    try:
        return write_comments(text, wanted) if wanted else text
    except YamlError:
        return text


def _moved(alignment: Alignment, comments: Comments) -> dict[Path, Comment]:
    """Return comments by their paths in the merged value; those of values that are gone are left out."""
    found = {}
    for path, comment in comments.items():
        new = alignment.target(path)
        if new is not None:
            found[new] = comment
    return found


def _merged(origin: Comment, updated: Comment, local: Comment, *, is_taken: bool) -> Comment:
    return Comment(
        _part(origin.head, updated.head, local.head, is_taken=False),
        _part(origin.line, updated.line, local.line, is_taken=is_taken),
        _part(origin.foot, updated.foot, local.foot, is_taken=False),
    )


def _part(origin: str, updated: str, local: str, *, is_taken: bool) -> str:
    """Merge one comment; ``is_taken`` says that its value is upstream's now."""
    if updated == origin or MERGE_KEY in local:
        return local
    return updated if local == origin or is_taken else local


def _is_changed_scalar(before: Any, now: Any) -> bool:
    return not isinstance(before, (dict, list)) and not isinstance(now, (dict, list)) and not same(before, now)
