"""Every statement of the log and the outbox, built once with SQLAlchemy Core and compiled per dialect.

The drivers are used directly with the compiled text, because SQLAlchemy's own execution would be most
of the cost of a write (``libraries.md`` 7). All values are bound parameters.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import asyncpg
from sqlalchemy.engine import Dialect

from storage.sql.log import StateQuery
from storage.sql.schema import log, meta, outbox, turn

COLUMNS = ("rv", "gr", "ns", "name", "op", "prev_rv", "create_rv", "uid", "body")
"""What reads select, in the order in which rows are read back."""
WRITE_LOCK = 0x706F7263680001
"""PostgreSQL advisory lock held from before a revision is given out until its commit."""
MIGRATION_LOCK = 0x706F7263680002
"""PostgreSQL advisory lock held while the schema changes."""
CHANNEL = "k_log"
"""PostgreSQL notification channel; the payload is empty, listeners read the log."""
_ROW = [log.c[name] for name in COLUMNS]
_DELETE = 2


@dataclass(frozen=True, slots=True)
class Statement:
    """The text of a statement in one dialect, and what it binds in which order."""

    sql: str
    names: tuple[str, ...]
    fixed: Mapping[str, Any]

    def bind(self, **values: Any) -> tuple[Any, ...]:
        """Put values into the order in which the driver wants them."""
        return tuple(values[name] if name in values else self.fixed[name] for name in self.names)

    def bind_many(self, rows: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
        """Bind one tuple per row, for the driver's executemany."""
        return [tuple([row[name] for name in self.names]) for row in rows]


@dataclass(frozen=True, slots=True)
class TurnStatements:
    """What notes whose turn it was last; PostgreSQL only."""

    last_turn: Statement
    take_turn: Statement
    epochs: Statement


@dataclass(frozen=True, slots=True)
class Statements:
    """All statements of one dialect."""

    marks: Statement
    head_of: Statement
    append: Statement
    changes: Statement
    history: Statement
    history_of: Statement
    state: Statement
    state_of: Statement
    state_in: Statement
    raise_mark: Statement
    superseded: Statement
    remove: Statement
    next_version: Statement
    touch_parcel: Statement
    put_object: Statement
    drop_parcel: Statement
    forget_parcel: Statement
    parcels: Statement
    parcels_of: Statement
    heads_of: Statement
    parcel: Statement
    find_object: Statement
    owing: Statement

    def state_for(self, query: StateQuery) -> tuple[Statement, dict[str, Any]]:
        """Choose the narrowest statement for a state query, with its values."""
        values: dict[str, Any] = {
            "at": query.at,
            "after_gr": query.after.resource,
            "after_ns": query.after.namespace,
            "after_name": query.after.name,
            "limit": query.limit,
        }
        if query.resource is None:
            return self.state, values
        values["gr"] = query.resource
        if query.namespace is None:
            return self.state_of, values
        return self.state_in, values | {"ns": query.namespace}


@cache
def sqlite_statements() -> Statements:
    """Compile for the ``sqlite3`` driver (question marks)."""
    return _compile_all(sqlite.dialect())


@cache
def postgres_statements() -> Statements:
    """Compile for asyncpg (``$1``)."""
    return _compile_all(asyncpg.dialect())  # type: ignore[no-untyped-call]  # as above


@cache
def postgres_heads() -> Statement:
    """Read the newest row of many keys at once; PostgreSQL only, where each round trip costs."""
    texts = sa.ARRAY(sa.Text)
    keys = (
        sa.func.unnest(
            sa.bindparam("grs", type_=texts), sa.bindparam("nss", type_=texts), sa.bindparam("names", type_=texts)
        )
        .table_valued("gr", "ns", "name", with_ordinality="ord")
        .render_derived(name="keys")
    )
    newest = (
        sa.select(log.c.rv, log.c.op, log.c.create_rv)
        .where(log.c.gr == keys.c.gr, log.c.ns == keys.c.ns, log.c.name == keys.c.name)
        .order_by(log.c.rv.desc())
        .limit(sa.literal_column("1"))
        .lateral("newest")
    )
    statement = sa.select(newest.c.rv, newest.c.op, newest.c.create_rv).select_from(keys.outerjoin(newest, sa.true()))
    return _compile(statement.order_by(keys.c.ord), asyncpg.dialect())  # type: ignore[no-untyped-call]  # as above


@cache
def postgres_turns() -> TurnStatements:
    """Compile for asyncpg."""
    insert = postgresql.insert(turn).values(key=_text("which"), holder=_text("who"), epoch=sa.literal_column("1"))
    statements = {
        "last_turn": sa.select(turn.c.holder, turn.c.epoch).where(turn.c.key == _text("which")),
        "take_turn": insert.on_conflict_do_update(
            index_elements=[turn.c.key],
            set_={"holder": insert.excluded.holder, "epoch": turn.c.epoch + sa.literal_column("1")},
        ).returning(turn.c.epoch),
        # Whoever wants to take one of them waits for the end of the transaction that relies on it.
        "epochs": sa.select(turn.c.key, turn.c.epoch)
        .where(turn.c.key == sa.func.any(sa.bindparam("keys", type_=sa.ARRAY(sa.Text))))
        .order_by(turn.c.key)
        .with_for_update(read=True),
    }
    dialect = asyncpg.dialect()  # type: ignore[no-untyped-call]  # as above
    return TurnStatements(**{name: _compile(statement, dialect) for name, statement in statements.items()})


def _compile(statement: sa.ClauseElement, dialect: Dialect) -> Statement:
    compiled = statement.compile(dialect=dialect)
    names = tuple(getattr(compiled, "positiontup", None) or ())
    return Statement(str(compiled), names, {k: v for k, v in compiled.params.items() if v is not None})


def _compile_all(dialect: Dialect) -> Statements:
    statements = _log_reads() | _log_writes() | _outbox_statements(dialect.name)
    return Statements(**{name: _compile(statement, dialect) for name, statement in statements.items()})


def _number(name: str) -> sa.BindParameter[int]:
    return sa.bindparam(name, type_=sa.BigInteger)


def _text(name: str) -> sa.BindParameter[str]:
    return sa.bindparam(name, type_=sa.Text)


def _log_reads() -> dict[str, sa.ClauseElement]:
    head = sa.select(sa.func.coalesce(sa.func.max(log.c.rv), 0)).scalar_subquery()
    changes = sa.select(*_ROW).where(log.c.rv > _number("after")).order_by(log.c.rv).limit(_number("limit"))
    before = log.alias("before")
    history = (
        sa.select(*_ROW, *[before.c[name] for name in COLUMNS])
        .select_from(log.outerjoin(before, sa.and_(before.c.rv == log.c.prev_rv, before.c.op != _DELETE)))
        .where(log.c.rv > _number("after"), log.c.rv <= _number("upto"))
        .order_by(log.c.rv)
        .limit(_number("limit"))
    )
    one = sa.and_(log.c.gr == _text("gr"), log.c.ns == _text("ns"), log.c.name == _text("name"))
    state = _state_at()
    return {
        "marks": sa.select(head, meta.c.compact_rv, meta.c.incarnation),
        "head_of": sa.select(log.c.rv, log.c.op, log.c.create_rv).where(one).order_by(log.c.rv.desc()).limit(1),
        "changes": changes,
        "history": history,
        "history_of": history.where(log.c.gr == _text("gr")),
        "state": state,
        "state_of": state.where(log.c.gr == _text("gr")),
        "state_in": state.where(log.c.gr == _text("gr"), log.c.ns == _text("ns")),
    }


def _state_at() -> sa.Select[Any]:
    """Select the objects in force at a revision, in key order, beyond a key."""
    newer = log.alias("newer")
    superseded = (
        sa.select(newer.c.rv)
        .where(newer.c.gr == log.c.gr, newer.c.ns == log.c.ns, newer.c.name == log.c.name)
        .where(newer.c.rv > log.c.rv, newer.c.rv <= _number("at"))
        .exists()
    )
    key = sa.tuple_(log.c.gr, log.c.ns, log.c.name)
    beyond = sa.tuple_(_text("after_gr"), _text("after_ns"), _text("after_name"))
    return (
        sa.select(*_ROW)
        .where(key > beyond, log.c.rv <= _number("at"), log.c.op != _DELETE, ~superseded)
        .order_by(log.c.gr, log.c.ns, log.c.name)
        .limit(_number("limit"))
    )


def _log_writes() -> dict[str, sa.ClauseElement]:
    newer = log.alias("newer")
    superseded = (
        sa.select(newer.c.rv)
        .where(newer.c.gr == log.c.gr, newer.c.ns == log.c.ns, newer.c.name == log.c.name)
        .where(newer.c.rv > log.c.rv, newer.c.rv <= _number("target"))
        .exists()
    )
    return {
        "append": log.insert(),
        "raise_mark": meta.update()
        .where(meta.c.compact_rv == _number("old"))
        .values(compact_rv=_number("target"))
        .returning(meta.c.compact_rv),
        # In ascending order, so that an object's rows are gone before its tombstone is.
        "superseded": sa.select(log.c.rv)
        .where(log.c.rv > _number("after"), log.c.rv <= _number("target"))
        .where(sa.or_(log.c.op == _DELETE, superseded))
        .order_by(log.c.rv)
        .limit(_number("limit")),
        "remove": log.delete().where(log.c.rv == _number("rv")),
    }


def _outbox_statements(dialect: str) -> dict[str, sa.ClauseElement]:
    insert = postgresql.insert(outbox) if dialect == "postgresql" else sqlite.insert(outbox)
    key = [outbox.c.repository, outbox.c.revision, outbox.c.oid]
    of_repository = outbox.c.repository == _text("repository")
    of_parcel = sa.and_(of_repository, outbox.c.revision == _text("revision"))
    head = outbox.alias("head")
    still_at = (
        sa.select(head.c.version)
        .where(head.c.repository == _text("repository"), head.c.revision == _text("revision"), head.c.oid == "")
        .where(head.c.version == _number("version"))
        .exists()
    )
    columns = sa.select(
        outbox.c.repository, outbox.c.revision, outbox.c.oid, outbox.c.kind, outbox.c.version, outbox.c.data
    )
    ordered = columns.order_by(*key)
    new = insert.excluded
    return {
        "next_version": meta.update()
        .values(outbox_version=meta.c.outbox_version + sa.literal_column("1"))
        .returning(meta.c.outbox_version),
        "touch_parcel": insert.on_conflict_do_update(index_elements=key, set_={"version": new.version}),
        "put_object": insert.on_conflict_do_nothing(index_elements=key),
        "drop_parcel": outbox.delete().where(of_parcel),
        "forget_parcel": outbox.delete().where(of_parcel, still_at),
        "parcels": ordered,
        "parcels_of": ordered.where(of_repository),
        "heads_of": ordered.where(of_repository, outbox.c.oid == sa.literal_column("''")),
        "parcel": ordered.where(of_parcel),
        "owing": sa.select(outbox.c.repository).where(outbox.c.oid == sa.literal_column("''")).distinct(),
        "find_object": columns.where(of_repository, outbox.c.oid == _text("oid"), outbox.c.kind != 0).limit(
            sa.literal_column("1")
        ),
    }
