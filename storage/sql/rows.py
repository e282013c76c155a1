"""Rows of the two drivers as the port's values, and the parcels that outbox rows make up."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from storage.interfaces import LogRow, ObjectKey, Op
from storage.outbox import GitKind, GitObject, Parcel
from storage.sql.log import Change
from storage.sql.planning import KIND_NUMBERS, Head
from storage.sql.statements import COLUMNS

KINDS: Mapping[int, GitKind] = {number: kind for kind, number in KIND_NUMBERS.items()}


OPERATIONS: Sequence[Op] = tuple(Op)
"""By the number that is stored; a start reads a hundred thousand of them."""


def log_row(values: Sequence[Any]) -> LogRow:
    """Read a row of :data:`COLUMNS`; strings that repeat in every row are interned."""
    rv, resource, namespace, name, op, prev_rv, create_rv, uid, body = values
    key = ObjectKey(sys.intern(resource), sys.intern(namespace), name)
    return LogRow(rv, key, OPERATIONS[op], prev_rv, create_rv, uid, body)


def change(values: Sequence[Any]) -> Change:
    """Read a row beside the one it superseded."""
    width = len(COLUMNS)
    previous = values[width : 2 * width]
    return Change(log_row(values[:width]), None if previous[0] is None else log_row(previous))


def head(values: Sequence[Any]) -> Head:
    """Read (rv, op, create_rv)."""
    rv, op, create_rv = values
    return Head(rv, OPERATIONS[op], create_rv)


def git_object(values: Sequence[Any]) -> GitObject:
    """Read an outbox row that holds a Git object."""
    _, _, oid, kind, _, data = values
    return GitObject(KINDS[kind], data, oid)


def parcels(rows: Iterable[Sequence[Any]]) -> list[Parcel]:
    """Put ordered outbox rows together; a parcel's head comes before its objects."""
    found: list[Parcel] = []
    objects: list[GitObject] = []
    for values in rows:
        repository, revision, oid, _, version, data = values
        if oid:
            objects.append(git_object(values))
        else:
            objects = []
            found.append(Parcel(repository, revision, orjson.loads(data), version, objects))
    return found
