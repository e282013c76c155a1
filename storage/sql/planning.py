"""What a batch of transactions will write: compare-and-swap and revision numbers, before any row is inserted.

Both databases hold their write lock, read the newest row of every key in the batch, and let :func:`plan` decide. As
the losers are known before anything is written, a batch needs no savepoints. Pure; knows no SQL.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import orjson

from storage.interfaces import Mutation, NotOurTurn, ObjectKey, Op, StaleWrite
from storage.outbox import GitKind, OutboxChange
from storage.sql.log import Committed, Outcome, Stamp, Transaction

Row = dict[str, Any]
"""Values of one inserted row by column name."""


@dataclass(frozen=True, slots=True)
class Head:
    """The newest log row of a key."""

    rv: int
    op: Op
    create_rv: int

    @property
    def in_force(self) -> int:
        """The object's current revision; 0 when it is deleted."""
        return 0 if self.op is Op.DELETE else self.rv


NEVER = Head(0, Op.DELETE, 0)
"""The head of a key that has no row."""


@dataclass(slots=True)
class Plan:
    """What to insert, what to tell each caller, and the outbox changes of those that won."""

    outcomes: list[Outcome] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    outbox: list[OutboxChange] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Tell whether the transaction would write nothing."""
        return not self.rows and not self.outbox


def keys_of(batch: Iterable[Transaction]) -> list[ObjectKey]:
    """Return each key of a batch once."""
    return list(dict.fromkeys(mutation.key for transaction in batch for mutation in transaction.mutations))


def plan(
    batch: Sequence[Transaction],
    heads: Mapping[ObjectKey, Head],
    newest: int,
    now_ms: int,
    epochs: Mapping[str, int] = MappingProxyType({}),
) -> Plan:
    """Decide every transaction of a batch, in order; each sees the ones before it.

    ``newest`` is the highest revision given out so far, ``now_ms`` milliseconds since 1970, ``epochs`` those of the turns in
    which writes of the batch were decided.
    """
    result = Plan()
    current = dict(heads)
    for transaction in batch:
        turn = transaction.turn
        if turn is not None and turn.key and epochs.get(turn.key) != turn.epoch:
            result.outcomes.append(
                NotOurTurn(f"another replica has worked with {turn.key} meanwhile; nothing was changed")
            )
            continue
        outcome = _decide(transaction, current, newest + len(result.rows), now_ms, result.rows)
        result.outcomes.append(outcome)
        if isinstance(outcome, Committed):
            result.outbox.extend(transaction.outbox)
    return result


def _decide(
    transaction: Transaction, current: dict[ObjectKey, Head], newest: int, now_ms: int, rows: list[Row]
) -> Outcome:
    """Check one transaction and append its rows; on a loss nothing of it stays."""
    mine: dict[ObjectKey, Head] = {}
    new_rows: list[Row] = []
    stamps: list[Stamp] = []
    for rv, mutation in enumerate(transaction.mutations, newest + 1):
        head = mine.get(mutation.key) or current.get(mutation.key, NEVER)
        if not _wins(mutation, head):
            return StaleWrite(mutation.key, head.in_force)
        create_rv = rv if mutation.op is Op.CREATE else head.create_rv
        mine[mutation.key] = Head(rv, mutation.op, create_rv)
        stamps.append(Stamp(rv, create_rv))
        new_rows.append(_row(mutation, rv, head.rv, create_rv, now_ms))
    current.update(mine)
    rows.extend(new_rows)
    return Committed(stamps)


def _wins(mutation: Mutation, head: Head) -> bool:
    if mutation.op is Op.CREATE:
        return head.in_force == 0
    return head.in_force == mutation.prev_rv != 0


def _row(mutation: Mutation, rv: int, prev_rv: int, create_rv: int, now_ms: int) -> Row:
    key = mutation.key
    return {
        "rv": rv,
        "gr": key.resource,
        "ns": key.namespace,
        "name": key.name,
        "op": int(mutation.op),
        "prev_rv": prev_rv,
        "create_rv": create_rv,
        "uid": mutation.uid,
        "body": mutation.body,
        "actor": mutation.actor,
        "ts": now_ms,
    }


@dataclass(frozen=True, slots=True)
class OutboxStep:
    """Rows for one outbox statement, by its name in :class:`storage.sql.statements.Statements`."""

    statement: str
    rows: Sequence[Row]


KIND_NUMBERS: Mapping[GitKind, int] = {"commit": 1, "tree": 2, "blob": 3, "tag": 4}
"""Git kinds as the outbox stores them: the numbers that packs use; 0 marks a parcel's head."""


def outbox_steps(changes: Iterable[OutboxChange], version: int) -> list[OutboxStep]:
    """Turn outbox changes into statements to run in order; ``version`` marks the parcels they touch.

    Changes of different parcels share their statements, because on PostgreSQL each is a round trip under the write lock.
    """
    steps: list[OutboxStep] = []
    together: dict[tuple[str, str], OutboxChange] = {}
    for change in changes:
        parcel = change.repository, change.revision
        if parcel in together:
            steps += _steps_together(together.values(), version)
            together = {}
        together[parcel] = change
    return steps + _steps_together(together.values(), version)


def _steps_together(changes: Iterable[OutboxChange], version: int) -> list[OutboxStep]:
    """Return the statements for changes of which no two are of one parcel."""
    dropped: list[Row] = []
    heads: list[Row] = []
    objects: list[Row] = []
    for change in changes:
        parcel = {"repository": change.repository, "revision": change.revision}
        if change.drop:
            dropped.append(parcel)
        if change.seen is None and not change.objects:
            continue
        seen = orjson.dumps(dict(change.seen or {}))
        heads.append(parcel | {"oid": "", "kind": 0, "version": version, "data": seen})
        objects += [
            parcel | {"oid": one.oid, "kind": KIND_NUMBERS[one.kind], "version": version, "data": one.data}
            for one in change.objects
        ]
    steps = [OutboxStep("drop_parcel", dropped), OutboxStep("touch_parcel", heads), OutboxStep("put_object", objects)]
    return [step for step in steps if step.rows]
