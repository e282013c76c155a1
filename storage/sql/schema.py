"""The tables, once for both dialects: the log of every object, one row of marks, and the outbox.

``k_log`` is append-only (only compaction deletes). ``rv`` is given out by the writer under the write lock, not by a
sequence, so revisions are without gaps in commit order and a replica knows from the numbers alone whether it has
missed one. ``k_outbox`` holds parcels and their Git objects in one table: a parcel's head is the row without
object id, whose data is the ``seen`` refs as JSON; parcel and objects come and go together, so a second table
would only add a join. ``k_meta.incarnation`` changes when a backup is put back (ADR 0027). ``k_turn`` notes which replica had a turn last; only PostgreSQL uses it. Source: ``kube-api.md`` 5.2, ``decisions.md`` 5 and 8.
"""

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import TEXT

REVISION = "0001.2"
"""The migration that makes this schema; a database at it is never migrated (and Alembic never imported).

What stands before the point rises when servers of the schema before could not work with it any more, what stands behind it when
something was only added: then they can, side by side with new ones, while replicas are upgraded one after the other.
"""

# Bytewise order, as Kubernetes orders keys, whatever the locale of the server is.
_KEY = sa.Text().with_variant(TEXT(collation="C"), "postgresql")
# Only INTEGER makes a SQLite primary key the rowid itself.
_RV = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

metadata = sa.MetaData(
    naming_convention={"pk": "pk_%(table_name)s", "uq": "uq_%(table_name)s", "ix": "ix_%(table_name)s"},
)

log = sa.Table(
    "k_log",
    metadata,
    sa.Column("rv", _RV, primary_key=True, autoincrement=False),
    sa.Column("gr", _KEY, nullable=False),
    sa.Column("ns", _KEY, nullable=False),
    sa.Column("name", _KEY, nullable=False),
    sa.Column("op", sa.SmallInteger(), nullable=False),
    sa.Column("prev_rv", sa.BigInteger(), nullable=False),
    sa.Column("create_rv", sa.BigInteger(), nullable=False),
    sa.Column("uid", sa.Text(), nullable=False),
    sa.Column("body", sa.LargeBinary(), nullable=False),
    sa.Column("actor", sa.Text(), nullable=False),
    sa.Column("ts", sa.BigInteger(), nullable=False, comment="milliseconds since 1970, an aid to audits"),
    sa.UniqueConstraint("gr", "ns", "name", "prev_rv", name="uq_k_log_compare_and_swap"),
    sa.Index("ix_k_log_key", "gr", "ns", "name", "rv"),
)

meta = sa.Table(
    "k_meta",
    metadata,
    sa.Column("id", sa.SmallInteger(), primary_key=True, autoincrement=False, comment="always 1"),
    sa.Column("compact_rv", sa.BigInteger(), nullable=False),
    sa.Column("outbox_version", sa.BigInteger(), nullable=False),
    sa.Column("cluster_id", sa.Text(), nullable=False),
    sa.Column("incarnation", sa.Text(), nullable=False, server_default=""),
)

outbox = sa.Table(
    "k_outbox",
    metadata,
    sa.Column("repository", _KEY, primary_key=True),
    sa.Column("revision", _KEY, primary_key=True),
    sa.Column("oid", _KEY, primary_key=True, comment="empty for the head of the parcel"),
    sa.Column("kind", sa.SmallInteger(), nullable=False),
    sa.Column("version", sa.BigInteger(), nullable=False),
    sa.Column("data", sa.LargeBinary(), nullable=False),
    sa.Index("ix_k_outbox_object", "repository", "oid"),
)

turn = sa.Table(
    "k_turn",
    metadata,
    sa.Column("key", _KEY, primary_key=True),
    sa.Column("holder", sa.Text(), nullable=False),
    sa.Column("epoch", sa.BigInteger(), nullable=False),
)
